/* SPDX-License-Identifier: Apache-2.0 */
#include "pisa/pisa.h"

#include <stdio.h>
#include <string.h>

/* A pass that runs. */
struct running {
	struct pisa_switch *sw;
	struct pisa_packet *packet;
	const struct pisa_pass *pass;
	uint64_t accessed;                     /* arrays, as bits */
	uint64_t looked[PISA_TABLES_MAX / 64]; /* large tables, as bits */
	unsigned stage;
	enum pisa_fate fate;
};

static uint64_t low_bits(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

static uint32_t operand(const struct pisa_packet *packet, struct pisa_operand from)
{
	return from.is_field ? packet->field[from.value] : from.value;
}

static void field_set(const struct pisa_program *program, struct pisa_packet *packet,
                      unsigned number, uint32_t value)
{
	if (number)
		packet->field[number] = value & (uint32_t)low_bits(program->fields[number].bits);
}

static enum pisa_fate broke(struct running *run, const struct pisa_step *step, enum pisa_rule rule,
                            const char *what)
{
	struct pisa_switch *sw = run->sw;
	const char *array =
		step->op == PISA_REGISTER ? sw->program->arrays[step->array].name : "none";

	snprintf(sw->why, sizeof(sw->why),
	         "A packet broke the rule '%s' of program %s: pass %s, stage %u, register %s: %s.",
	         pisa_rule_name(rule), sw->program->name, run->pass->name, step->stage, array,
	         what);
	run->packet->why = sw->why;
	sw->counters.broken++;
	sw->counters.broke[rule]++;
	return PISA_BROKEN;
}

/* ---- registers ---- */

static uint64_t wide(const struct pisa_packet *packet, struct pisa_operand low,
                     struct pisa_operand high)
{
	return (uint64_t)operand(packet, high) << 32 | operand(packet, low);
}

/* Does the action on an entry, and gives what the packet gets. */
static uint64_t entry_act(uint64_t *entry, enum pisa_action action, uint64_t a, uint64_t b,
                          uint64_t mask)
{
	uint64_t old = *entry;

	switch (action) {
	case PISA_ENTRY_WRITE:
		*entry = a & mask;
		return *entry;
	case PISA_ENTRY_ADD:
		*entry = (old + a) & mask;
		return *entry;
	case PISA_ENTRY_OR:
		*entry = (old | a) & mask;
		return *entry;
	case PISA_ENTRY_AND:
		*entry = old & a;
		return *entry;
	case PISA_ENTRY_MAX:
		*entry = (int32_t)a > (int32_t)old ? a & mask : old;
		return *entry;
	case PISA_ENTRY_SWAP:
		*entry = old == (a & mask) ? b & mask : old;
		return old;
	default:
		return old;
	}
}

/* What is wrong with an access; NULL: nothing. */
static const char *access_fault(const struct running *run, const struct pisa_step *step,
                                enum pisa_rule *rule)
{
	const struct pisa_array *array = &run->sw->program->arrays[step->array];

	*rule = PISA_RULE_ONE_ACCESS;
	if (run->accessed >> step->array & 1)
		return "it was accessed before in this pass";
	*rule = PISA_RULE_HOME_STAGE;
	if (array->stage != step->stage)
		return "it lives in another stage";
	*rule = PISA_RULE_INDEX;
	if (operand(run->packet, step->index) >= array->entries)
		return "the index is beyond its end";
	*rule = PISA_RULE_OPERATION;
	if (step->n_actions > 1 && run->packet->field[step->select] >= step->n_actions)
		return "no such action is selected";
	return NULL;
}

static void register_act(struct running *run, const struct pisa_step *step)
{
	const struct pisa_program *program = run->sw->program;
	struct pisa_packet *packet = run->packet;
	unsigned which = step->n_actions > 1 ? packet->field[step->select] : 0;
	enum pisa_rule rule;
	const char *fault = access_fault(run, step, &rule);
	uint64_t *entry, out;

	if (fault) {
		run->fate = broke(run, step, rule, fault);
		return;
	}
	run->accessed |= 1ull << step->array;
	entry = &run->sw->registers[step->array][operand(packet, step->index)];
	out = entry_act(entry, step->actions[which], wide(packet, step->a, step->ah),
	                wide(packet, step->b, step->bh),
	                low_bits(program->arrays[step->array].bits));
	field_set(program, packet, step->dst, (uint32_t)out);
	field_set(program, packet, step->dst_high, (uint32_t)(out >> 32));
}

/* ---- steps ---- */

static void look_up(struct running *run, const struct pisa_step *step)
{
	const struct pisa_table *table = &run->sw->program->tables[step->table];
	uint64_t *looked = &run->looked[step->table / 64], bit = 1ull << step->table % 64;
	uint32_t row = operand(run->packet, step->a), value = 0;

	if (table->bits && (*looked & bit || table->stage != step->stage)) {
		run->fate = broke(run, step,
		                  *looked & bit ? PISA_RULE_ONE_ACCESS : PISA_RULE_HOME_STAGE,
		                  "a match table is in another stage, or was looked up before");
		return;
	}
	*looked |= bit;
	if (row < table->n_rows)
		value = table->rows ? table->rows[row] : table->halves[row];
	field_set(run->sw->program, run->packet, step->dst, value);
}

static uint32_t compute(enum pisa_op op, uint32_t a, uint32_t b)
{
	switch (op) {
	case PISA_ADD:
		return a + b;
	case PISA_SUB:
		return a - b;
	case PISA_AND:
		return a & b;
	case PISA_ANDNOT:
		return a & ~b;
	case PISA_OR:
		return a | b;
	case PISA_XOR:
		return a ^ b;
	case PISA_SHL:
		return a << (b & 31);
	case PISA_SHR:
		return a >> (b & 31);
	case PISA_EQ:
		return a == b;
	case PISA_NE:
		return a != b;
	case PISA_LT:
		return a < b;
	case PISA_GT:
		return a > b;
	case PISA_LT_SIGNED:
		return (int32_t)a < (int32_t)b;
	case PISA_GT_SIGNED:
		return (int32_t)a > (int32_t)b;
	default:
		return a;
	}
}

/* The packet's fate, or its next pass. */
static void fate_set(struct running *run, const struct pisa_step *step)
{
	static const enum pisa_fate fates[] = {
		[PISA_DROP] = PISA_DROPPED,      [PISA_TO_ONE] = PISA_ONE,
		[PISA_TO_SOME] = PISA_SOME,      [PISA_TO_ALL] = PISA_ALL,
		[PISA_RECIRCULATE] = PISA_AGAIN, [PISA_REFUSE] = PISA_REFUSED
	};

	run->fate = fates[step->op];
	run->packet->to = operand(run->packet, step->a);
	run->packet->pass = step->pass;
	run->packet->why = step->text;
}

static void step_run(struct running *run, const struct pisa_step *step)
{
	const struct pisa_program *program = run->sw->program;
	struct pisa_packet *packet = run->packet;
	uint32_t a = operand(packet, step->a);

	if ((step->when && !packet->field[step->when]) ||
	    (step->unless && packet->field[step->unless]))
		return;
	if (step->stage < run->stage) {
		run->fate = broke(run, step, PISA_RULE_FORWARD, "a packet does not go back");
		return;
	}
	run->stage = step->stage;
	if (step->op >= PISA_HAS_END)
		run->fate = broke(run, step, PISA_RULE_OPERATION, "a switch lacks the operation");
	else if (step->op >= PISA_DROP)
		fate_set(run, step);
	else if (step->op == PISA_REGISTER)
		register_act(run, step);
	else if (step->op == PISA_LOOKUP)
		look_up(run, step);
	else
		field_set(program, packet, step->dst,
		          compute(step->op, a, operand(packet, step->b)));
}

/* ---- packets ---- */

/* The first word of the payload that this pass sees. */
static uint32_t window_start(const struct pisa_program *program, const struct pisa_packet *packet)
{
	return program->window * packet->field[program->chunk_field];
}

static void parse(const struct pisa_program *program, struct pisa_packet *packet)
{
	uint32_t start = window_start(program, packet);

	for (uint32_t i = program->n_headers; i < program->n_fields; i++)
		packet->field[i] = 0;
	for (uint32_t i = 0; i < program->window; i++)
		packet->field[program->first_word + i] =
			start + i < packet->n_words ? packet->words[start + i] : 0;
}

static void deparse(const struct pisa_program *program, struct pisa_packet *packet, uint32_t start)
{
	for (uint32_t i = 0; i < program->window && start + i < packet->room; i++)
		packet->words[start + i] = packet->field[program->first_word + i];
}

void pisa_begin(struct pisa_switch *sw, struct pisa_packet *packet)
{
	const struct pisa_program *program = sw->program;

	for (uint32_t i = 0; i < program->n_headers; i++)
		field_set(program, packet, i, packet->field[i]);
	packet->field[0] = 0;
	packet->to = packet->recirculated = 0;
	packet->why = NULL;
	packet->pass = packet->field[program->parse_field] & program->parse_mask
	                       ? program->pass_if
	                       : program->pass_else;
	sw->counters.packets++;
}

static enum pisa_fate pass_end(struct running *run)
{
	struct pisa_counters *counters = &run->sw->counters;

	if (run->fate == PISA_DROPPED)
		counters->drops++;
	if (run->fate == PISA_REFUSED)
		counters->refused++;
	if (run->fate != PISA_AGAIN)
		return run->fate;
	if (run->packet->recirculated == run->sw->limits.recirculations) {
		const struct pisa_step last = { .op = PISA_RECIRCULATE,
			                        .stage = (uint8_t)run->stage };

		return broke(run, &last, PISA_RULE_RECIRCULATION, "it was recirculated too often");
	}
	run->packet->recirculated++;
	counters->recirculations++;
	return PISA_AGAIN;
}

enum pisa_fate pisa_pass(struct pisa_switch *sw, struct pisa_packet *packet)
{
	const struct pisa_program *program = sw->program;
	struct running run = { .sw = sw,
		               .packet = packet,
		               .pass = &program->passes[packet->pass],
		               .fate = PISA_DROPPED };
	uint32_t start = window_start(program, packet);

	sw->counters.passes++;
	parse(program, packet);
	for (uint32_t i = 0; i < run.pass->n_steps && run.fate != PISA_BROKEN; i++)
		step_run(&run, &run.pass->steps[i]);
	deparse(program, packet, start);
	return pass_end(&run);
}

enum pisa_fate pisa_run(struct pisa_switch *sw, struct pisa_packet *packet)
{
	enum pisa_fate fate;

	pisa_begin(sw, packet);
	do
		fate = pisa_pass(sw, packet);
	while (fate == PISA_AGAIN);
	return fate;
}

uint64_t pisa_peek(const struct pisa_switch *sw, unsigned array, uint32_t index)
{
	return sw->registers[array][index];
}

void pisa_poke(struct pisa_switch *sw, unsigned array, uint32_t index, uint64_t value)
{
	sw->registers[array][index] = value & low_bits(sw->program->arrays[array].bits);
}

/* ---- loading ---- */

size_t pisa_memory(const struct pisa_program *program)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < program->n_arrays; i++)
		bytes += program->arrays[i].entries * sizeof(uint64_t);
	return bytes;
}

enum pisa_rule pisa_load(struct pisa_switch *sw, const struct pisa_program *program,
                         const struct pisa_limits *limits, void *memory, char *why)
{
	enum pisa_rule rule = limits->trusts ? PISA_OBEYS : pisa_check(program, limits, why);
	uint64_t *next = memory;

	if (rule)
		return rule;
	*sw = (struct pisa_switch){ .program = program, .limits = *limits };
	memset(memory, 0, pisa_memory(program));
	for (uint32_t i = 0; i < program->n_arrays; i++) {
		sw->registers[i] = next;
		next += program->arrays[i].entries;
	}
	return PISA_OBEYS;
}
