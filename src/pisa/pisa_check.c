/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of pisa.h, checked before a program runs. */
#include "pisa/pisa.h"

#include <stdio.h>
#include <string.h>

static const char *const rule_names[] = {
	[PISA_OBEYS] = "none",
	[PISA_RULE_STAGES] = "stages",
	[PISA_RULE_MEMORY] = "memory",
	[PISA_RULE_ONE_ACCESS] = "one access",
	[PISA_RULE_HOME_STAGE] = "home stage",
	[PISA_RULE_FORWARD] = "forward",
	[PISA_RULE_OPERATION] = "operation",
	[PISA_RULE_INDEX] = "index",
	[PISA_RULE_ACTIONS] = "actions",
	[PISA_RULE_RECIRCULATION] = "recirculation",
	[PISA_RULE_FORM] = "form",
};

static const char *const lacking[] = {
	[0] = "a switch does not multiply",
	[PISA_DIVIDE - PISA_MULTIPLY] = "a switch does not divide",
	[PISA_REMAINDER - PISA_MULTIPLY] = "a switch does not divide, so it has no remainder",
	[PISA_ADD_FLOAT - PISA_MULTIPLY] = "a switch has no floats",
};

/* What is being checked. */
struct checking {
	const struct pisa_program *program;
	const struct pisa_limits *limits;
	const struct pisa_pass *pass;
	const struct pisa_step *step;
	char *why;
};

const char *pisa_rule_name(enum pisa_rule rule)
{
	return rule < PISA_RULES_END ? rule_names[rule] : "unknown";
}

struct pisa_limits pisa_limits_default(void)
{
	return (struct pisa_limits){ .stages = 4,
		                     .blocks = 72,
		                     .budget = 51,
		                     .block_bits = 16 * 1024 * 8,
		                     .recirculations = 64 };
}

static enum pisa_rule refuse(const struct checking *check, enum pisa_rule rule, int stage,
                             const char *array, const char *what)
{
	char at[24] = "none";

	if (stage >= 0)
		snprintf(at, sizeof(at), "%d", stage);
	snprintf(check->why, PISA_WHY_MAX,
	         "Program %s breaks the rule '%s': pass %s, stage %s, register %s: %s.",
	         check->program->name, pisa_rule_name(rule),
	         check->pass ? check->pass->name : "none", at, array ? array : "none", what);
	return rule;
}

static enum pisa_rule step_refuse(const struct checking *check, enum pisa_rule rule,
                                  const char *what)
{
	const struct pisa_step *step = check->step;
	bool has = step->op == PISA_REGISTER && step->array < check->program->n_arrays;

	return refuse(check, rule, step->stage,
	              has ? check->program->arrays[step->array].name : NULL, what);
}

/* ---- memory ---- */

static uint32_t array_blocks(const struct pisa_array *array, const struct pisa_limits *limits)
{
	uint64_t bits = (uint64_t)array->entries * array->bits;

	return (uint32_t)((bits + limits->block_bits - 1) / limits->block_bits) + 1;
}

uint32_t pisa_stage_blocks(const struct pisa_program *program, const struct pisa_limits *limits,
                           unsigned stage)
{
	uint32_t blocks = 0;

	for (uint32_t i = 0; i < program->n_arrays; i++)
		if (program->arrays[i].stage == stage)
			blocks += array_blocks(&program->arrays[i], limits);
	return blocks;
}

uint32_t pisa_table_blocks(const struct pisa_program *program, const struct pisa_limits *limits,
                           unsigned stage)
{
	uint32_t blocks = 0;

	for (uint32_t i = 0; i < program->n_tables; i++) {
		const struct pisa_table *table = &program->tables[i];
		uint64_t bits = (uint64_t)table->n_rows * table->bits;

		if (table->stage == stage)
			blocks += (uint32_t)((bits + limits->block_bits - 1) / limits->block_bits);
	}
	return blocks;
}

/* In hundredths of a percent, rounded. */
static uint64_t share(uint64_t blocks, const struct pisa_limits *limits)
{
	return (blocks * 10000 + limits->blocks / 2) / limits->blocks;
}

void pisa_stage_tell(const struct pisa_program *program, const struct pisa_limits *limits,
                     unsigned stage, char *text, size_t size)
{
	uint64_t part = share(pisa_stage_blocks(program, limits, stage) +
	                              pisa_table_blocks(program, limits, stage),
	                      limits);

	snprintf(text, size, "stage %u: %llu.%02llu %% of its memory", stage,
	         (unsigned long long)part / 100, (unsigned long long)part % 100);
}

static enum pisa_rule check_memory(const struct checking *check)
{
	const struct pisa_limits *limits = check->limits;
	uint64_t budget = share(limits->budget, limits);

	for (unsigned stage = 0; stage < limits->stages; stage++) {
		const char *last = NULL;
		char tells[64], what[160];

		if (pisa_stage_blocks(check->program, limits, stage) <= limits->budget)
			continue;
		for (uint32_t i = 0; i < check->program->n_arrays; i++)
			if (check->program->arrays[i].stage == stage)
				last = check->program->arrays[i].name;
		pisa_stage_tell(check->program, limits, stage, tells, sizeof(tells));
		snprintf(what, sizeof(what), "%s, and the budget is %llu.%02llu %%", tells,
		         (unsigned long long)budget / 100, (unsigned long long)budget % 100);
		return refuse(check, PISA_RULE_MEMORY, (int)stage, last, what);
	}
	return PISA_OBEYS;
}

static enum pisa_rule check_table_memory(const struct checking *check)
{
	const struct pisa_limits *limits = check->limits;

	for (unsigned stage = 0; stage < limits->stages; stage++) {
		uint32_t blocks = pisa_table_blocks(check->program, limits, stage);
		char what[80];

		if (blocks <= limits->blocks - limits->budget)
			continue;
		snprintf(what, sizeof(what), "match tables take %u blocks, and %u are left", blocks,
		         limits->blocks - limits->budget);
		return refuse(check, PISA_RULE_MEMORY, (int)stage, NULL, what);
	}
	return PISA_OBEYS;
}

/* ---- declarations ---- */

static enum pisa_rule check_array(const struct checking *check, const struct pisa_array *array)
{
	if (array->bits == 0 || array->bits > 64)
		return refuse(check, PISA_RULE_OPERATION, array->stage, array->name,
		              "an entry has 1 to 64 bits");
	if (array->entries == 0)
		return refuse(check, PISA_RULE_INDEX, array->stage, array->name,
		              "it has no entries");
	if (array->stage >= check->limits->stages)
		return refuse(check, PISA_RULE_STAGES, array->stage, array->name,
		              "the switch has fewer stages");
	return PISA_OBEYS;
}

static bool is_field(const struct pisa_program *program, uint32_t number)
{
	return number < program->n_fields;
}

static const char *shape_fault(const struct pisa_program *program)
{
	if (!program->n_passes || program->n_passes > PISA_PASSES_MAX || !program->n_fields ||
	    program->n_fields > PISA_FIELDS_MAX || program->n_arrays > PISA_ARRAYS_MAX ||
	    program->n_tables > PISA_TABLES_MAX || program->n_headers > program->n_fields)
		return "there are too many fields, arrays, tables or passes, or too few";
	for (uint32_t i = 0; i < program->n_fields; i++)
		if (program->fields[i].bits > 32)
			return "a field has at most 32 bits";
	if (!is_field(program, program->parse_field) || !is_field(program, program->chunk_field) ||
	    program->first_word + program->window > program->n_fields)
		return "the parser names a field that does not exist";
	if (program->pass_if >= program->n_passes || program->pass_else >= program->n_passes)
		return "the parser names a pass that does not exist";
	return NULL;
}

static enum pisa_rule check_shape(const struct checking *check)
{
	const struct pisa_program *program = check->program;
	const char *fault = shape_fault(program);
	enum pisa_rule rule;

	if (fault)
		return refuse(check, PISA_RULE_FORM, -1, NULL, fault);
	for (uint32_t i = 0; i < program->n_arrays; i++) {
		rule = check_array(check, &program->arrays[i]);
		if (rule)
			return rule;
	}
	if (program->recirculations > check->limits->recirculations)
		return refuse(check, PISA_RULE_RECIRCULATION, -1, NULL,
		              "it recirculates a packet more often than the switch may");
	return PISA_OBEYS;
}

/* ---- steps ---- */

static bool operand_exists(const struct pisa_program *program, struct pisa_operand operand)
{
	return !operand.is_field || is_field(program, operand.value);
}

static enum pisa_rule check_names(const struct checking *check)
{
	const struct pisa_program *program = check->program;
	const struct pisa_step *step = check->step;

	if (!is_field(program, step->dst) || !is_field(program, step->dst_high) ||
	    !is_field(program, step->when) || !is_field(program, step->unless) ||
	    !is_field(program, step->select) || !operand_exists(program, step->a) ||
	    !operand_exists(program, step->b) || !operand_exists(program, step->ah) ||
	    !operand_exists(program, step->bh) || !operand_exists(program, step->index))
		return step_refuse(check, PISA_RULE_FORM, "it names a field that does not exist");
	if (step->op == PISA_REGISTER && step->array >= program->n_arrays)
		return step_refuse(check, PISA_RULE_FORM, "it names an array that does not exist");
	if (step->op == PISA_LOOKUP && step->table >= program->n_tables)
		return step_refuse(check, PISA_RULE_FORM, "it names a table that does not exist");
	if (step->op == PISA_RECIRCULATE && step->pass >= program->n_passes)
		return step_refuse(check, PISA_RULE_FORM, "it names a pass that does not exist");
	return PISA_OBEYS;
}

static enum pisa_rule check_operation(const struct checking *check)
{
	const struct pisa_step *step = check->step;

	if (step->op > PISA_HAS_END && step->op < PISA_OPS_END)
		return step_refuse(check, PISA_RULE_OPERATION, lacking[step->op - PISA_MULTIPLY]);
	if (step->op >= PISA_HAS_END)
		return step_refuse(check, PISA_RULE_OPERATION, "there is no such operation");
	if ((step->op == PISA_SHL || step->op == PISA_SHR) && step->b.is_field)
		return step_refuse(check, PISA_RULE_OPERATION,
		                   "a switch does not shift by a variable");
	return PISA_OBEYS;
}

static enum pisa_rule check_action(const struct checking *check, uint8_t action)
{
	const struct pisa_array *array = &check->program->arrays[check->step->array];

	if (action == PISA_ENTRY_MULTIPLY)
		return step_refuse(check, PISA_RULE_OPERATION, lacking[0]);
	if (action == PISA_ENTRY_ADD_FLOAT)
		return step_refuse(check, PISA_RULE_OPERATION,
		                   lacking[PISA_ADD_FLOAT - PISA_MULTIPLY]);
	if (action >= PISA_ENTRY_HAS_END)
		return step_refuse(check, PISA_RULE_OPERATION, "there is no such action");
	if (array->bits > 32 && (action == PISA_ENTRY_ADD || action == PISA_ENTRY_MAX))
		return step_refuse(check, PISA_RULE_OPERATION,
		                   "a switch adds and compares up to 32 bits");
	if (array->bits < 32 && action == PISA_ENTRY_MAX)
		return step_refuse(check, PISA_RULE_OPERATION,
		                   "a signed maximum needs entries of 32 bits");
	return PISA_OBEYS;
}

/* A field may have no more bits than the array needs. */
static bool index_fits(const struct checking *check)
{
	const struct pisa_array *array = &check->program->arrays[check->step->array];
	struct pisa_operand index = check->step->index;
	unsigned bits;

	if (!index.is_field)
		return index.value < array->entries;
	bits = check->program->fields[index.value].bits;
	return bits == 0 || 1ull << (bits - 1) < array->entries;
}

static enum pisa_rule check_register(const struct checking *check, uint64_t *accessed)
{
	const struct pisa_step *step = check->step;
	enum pisa_rule rule = PISA_OBEYS;

	if (step->n_actions == 0 || step->n_actions > PISA_ACTIONS_MAX)
		return step_refuse(check, PISA_RULE_ACTIONS, "a step has one to four actions");
	for (unsigned i = 0; i < step->n_actions && !rule; i++)
		rule = check_action(check, step->actions[i]);
	if (rule)
		return rule;
	if (*accessed >> step->array & 1)
		return step_refuse(check, PISA_RULE_ONE_ACCESS, "it is accessed twice in a pass");
	*accessed |= 1ull << step->array;
	if (check->program->arrays[step->array].stage != step->stage)
		return step_refuse(check, PISA_RULE_HOME_STAGE,
		                   "it lives in another stage than it is accessed in");
	if (!index_fits(check))
		return step_refuse(check, PISA_RULE_INDEX, "the index may be beyond its end");
	return PISA_OBEYS;
}

static enum pisa_rule check_look_up(const struct checking *check, bool *looked)
{
	const struct pisa_table *table = &check->program->tables[check->step->table];

	if (!table->bits)
		return PISA_OBEYS;
	if (looked[check->step->table])
		return step_refuse(check, PISA_RULE_ONE_ACCESS,
		                   "a match table is looked up twice in a pass");
	looked[check->step->table] = true;
	if (table->stage != check->step->stage)
		return step_refuse(check, PISA_RULE_HOME_STAGE,
		                   "a match table lives in another stage");
	return PISA_OBEYS;
}

/* What a pass has accessed so far. */
struct accesses {
	uint64_t arrays; /* as bits */
	bool tables[PISA_TABLES_MAX];
	unsigned stage;
};

static enum pisa_rule check_step(const struct checking *check, struct accesses *accesses)
{
	const struct pisa_step *step = check->step;
	enum pisa_rule rule = check_names(check);

	if (!rule)
		rule = check_operation(check);
	if (rule)
		return rule;
	if (step->stage >= check->limits->stages)
		return step_refuse(check, PISA_RULE_STAGES, "the switch has fewer stages");
	if (step->stage < accesses->stage)
		return step_refuse(check, PISA_RULE_FORWARD, "a packet does not go back");
	accesses->stage = step->stage;
	if (step->op == PISA_LOOKUP)
		return check_look_up(check, accesses->tables);
	return step->op == PISA_REGISTER ? check_register(check, &accesses->arrays) : PISA_OBEYS;
}

/* Each array has few different actions, over all passes. */
static enum pisa_rule check_actions(const struct checking *check)
{
	uint32_t used[PISA_ARRAYS_MAX] = { 0 };

	for (uint32_t p = 0; p < check->program->n_passes; p++) {
		const struct pisa_pass *pass = &check->program->passes[p];

		for (uint32_t i = 0; i < pass->n_steps; i++) {
			const struct pisa_step *step = &pass->steps[i];
			struct checking at = *check;

			if (step->op != PISA_REGISTER)
				continue;
			for (unsigned a = 0; a < step->n_actions; a++)
				used[step->array] |= 1u << step->actions[a];
			at.pass = pass;
			at.step = step;
			if ((unsigned)__builtin_popcount(used[step->array]) > PISA_ACTIONS_MAX)
				return step_refuse(&at, PISA_RULE_ACTIONS,
				                   "it has more than four different actions");
		}
	}
	return PISA_OBEYS;
}

static enum pisa_rule check_pass(struct checking *check, const struct pisa_pass *pass)
{
	struct accesses accesses = { 0 };
	enum pisa_rule rule = PISA_OBEYS;

	check->pass = pass;
	for (uint32_t i = 0; i < pass->n_steps && !rule; i++) {
		check->step = &pass->steps[i];
		rule = check_step(check, &accesses);
	}
	return rule;
}

enum pisa_rule pisa_check(const struct pisa_program *program, const struct pisa_limits *limits,
                          char *why)
{
	struct checking check = { .program = program, .limits = limits, .why = why };
	enum pisa_rule rule = check_shape(&check);

	if (!rule)
		rule = check_memory(&check);
	if (!rule)
		rule = check_table_memory(&check);
	for (uint32_t i = 0; i < program->n_passes && !rule; i++)
		rule = check_pass(&check, &program->passes[i]);
	if (rule)
		return rule;
	check.pass = NULL;
	return check_actions(&check);
}
