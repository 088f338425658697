/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a programmable switch. A tiny program breaks each rule once, and is refused by name:
 * before it runs, and while it runs. The paper's arrays take 70.83 % of a stage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pisa/pisa.h"

#define F(number) PISA_FIELD(number)
#define K(constant) PISA_CONST(constant)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { X = 1, Y, WIDE_INDEX, INDEX, FIELDS };
enum { COUNTER, PAIR, LATE, ODD, ARRAYS };

static const struct pisa_field fields[FIELDS] = {
	{ "none", 0 }, { "x", 32 }, { "y", 32 }, { "wide index", 5 }, { "index", 4 },
};
static const struct pisa_array arrays[ARRAYS] = {
	[COUNTER] = { "counter", 0, 32, 16 },
	[PAIR] = { "pair", 0, 64, 16 },
	[LATE] = { "late", 2, 32, 16 },
	[ODD] = { "odd", 3, 32, 10 },
};
static const uint32_t rows[] = { 5, 6, 7 };
static const struct pisa_table tables[] = {
	{ .name = "table", .rows = rows, .n_rows = COUNT(rows) }
};

/* A program of one pass. */
struct one {
	struct pisa_pass pass;
	struct pisa_program program;
};

static struct pisa_program *one_pass(struct one *one, const struct pisa_step *steps, size_t n)
{
	one->pass = (struct pisa_pass){ "only", steps, (uint32_t)n };
	one->program = (struct pisa_program){ .name = "tiny",
		                              .fields = fields,
		                              .arrays = arrays,
		                              .tables = tables,
		                              .passes = &one->pass,
		                              .n_fields = FIELDS,
		                              .n_arrays = ARRAYS,
		                              .n_tables = 1,
		                              .n_passes = 1,
		                              .n_headers = FIELDS };
	return &one->program;
}

#define ACCESS(in_stage, of, at, does)                                                  \
	{                                                                               \
		.op = PISA_REGISTER, .stage = (in_stage), .array = (of), .index = (at), \
		.actions = { (does) }, .n_actions = 1, .a = F(X), .dst = Y              \
	}

static void expect(const struct pisa_program *program, const struct pisa_limits *limits,
                   enum pisa_rule rule, const char *words)
{
	char why[PISA_WHY_MAX] = "";
	enum pisa_rule broken = pisa_check(program, limits, why);

	if (broken != rule || !strstr(why, words))
		fail_msg("expected '%s' with \"%s\", got '%s' with \"%s\"", pisa_rule_name(rule),
		         words, pisa_rule_name(broken), why);
}

static void refuse(const struct pisa_step *steps, size_t n, enum pisa_rule rule, const char *words)
{
	struct pisa_limits limits = pisa_limits_default();
	struct one one;

	expect(one_pass(&one, steps, n), &limits, rule, words);
}

static void refuses_accesses(void **state)
{
	const struct pisa_step twice[] = { ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_READ),
		                           ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_ADD) };
	const struct pisa_step elsewhere[] = { ACCESS(1, COUNTER, F(INDEX), PISA_ENTRY_READ) };
	const struct pisa_step back[] = { ACCESS(2, LATE, F(INDEX), PISA_ENTRY_READ),
		                          ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_READ) };
	const struct pisa_step beyond[] = { ACCESS(0, COUNTER, K(16), PISA_ENTRY_READ) };
	const struct pisa_step perhaps[] = { ACCESS(0, COUNTER, F(WIDE_INDEX), PISA_ENTRY_READ) };

	(void)state;
	refuse(twice, 2, PISA_RULE_ONE_ACCESS,
	       "Program tiny breaks the rule 'one access': pass only, stage 0, register counter: "
	       "it is accessed twice in a pass.");
	refuse(elsewhere, 1, PISA_RULE_HOME_STAGE, "stage 1, register counter: it lives in");
	refuse(back, 2, PISA_RULE_FORWARD, "stage 0, register counter: a packet does not go back");
	refuse(beyond, 1, PISA_RULE_INDEX, "register counter: the index may be beyond its end");
	refuse(perhaps, 1, PISA_RULE_INDEX, "register counter: the index may be beyond its end");
}

static void refuses_operations(void **state)
{
	static const struct {
		enum pisa_op op;
		const char *words;
	} lacking[] = {
		{ PISA_MULTIPLY, "a switch does not multiply" },
		{ PISA_DIVIDE, "a switch does not divide" },
		{ PISA_REMAINDER, "no remainder" },
		{ PISA_ADD_FLOAT, "a switch has no floats" },
		{ PISA_HAS_END, "there is no such operation" },
		{ PISA_OPS_END, "there is no such operation" },
	};
	const struct pisa_step shift[] = { { .op = PISA_SHL, .dst = Y, .a = F(X), .b = F(X) } };
	const struct pisa_step wide[] = { ACCESS(0, PAIR, F(INDEX), PISA_ENTRY_ADD) };
	const struct pisa_step max[] = { ACCESS(0, PAIR, F(INDEX), PISA_ENTRY_MAX) };
	const struct pisa_step product[] = { ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_MULTIPLY) };
	const struct pisa_step floats[] = { ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_ADD_FLOAT) };

	(void)state;
	for (size_t i = 0; i < COUNT(lacking); i++) {
		const struct pisa_step steps[] = {
			{ .op = (uint8_t)lacking[i].op, .stage = 1, .dst = Y, .a = F(X), .b = F(X) }
		};

		refuse(steps, 1, PISA_RULE_OPERATION, lacking[i].words);
	}
	refuse(shift, 1, PISA_RULE_OPERATION, "does not shift by a variable");
	refuse(wide, 1, PISA_RULE_OPERATION, "register pair: a switch adds and compares up to 32");
	refuse(max, 1, PISA_RULE_OPERATION, "register pair: a switch adds and compares up to 32");
	refuse(product, 1, PISA_RULE_OPERATION, "register counter: a switch does not multiply");
	refuse(floats, 1, PISA_RULE_OPERATION, "register counter: a switch has no floats");
}

static void refuses_sizes(void **state)
{
	const struct pisa_step fifth[] = { { .op = PISA_MOVE, .stage = 4, .dst = Y, .a = F(X) } };
	const struct pisa_step fine[] = { { .op = PISA_MOVE, .dst = Y, .a = F(X) } };
	struct pisa_array few[] = { { "first", 0, 32, 65536 }, { "other", 1, 65, 1 } };
	struct pisa_limits limits = pisa_limits_default();
	struct one one;

	(void)state;
	refuse(fifth, 1, PISA_RULE_STAGES, "pass only, stage 4, register none: the switch has");
	one_pass(&one, fine, 1);
	expect(&one.program, &limits, PISA_OBEYS, "");
	one.program.arrays = few;
	one.program.n_arrays = 2;
	expect(&one.program, &limits, PISA_RULE_OPERATION, "register other: an entry has 1 to 64");
	few[1].bits = 32;
	few[1].stage = 7;
	expect(&one.program, &limits, PISA_RULE_STAGES, "stage 7, register other: the switch has");
	few[1].stage = 0;
	few[1].entries = 0;
	expect(&one.program, &limits, PISA_RULE_INDEX, "register other: it has no entries");
	/* 17 blocks, and 4 * 16 * 2 + 1. */
	few[1].entries = 8 * 65536;
	expect(&one.program, &limits, PISA_RULE_MEMORY,
	       "stage 0, register other: stage 0: 202.78 % of its memory, and the budget is 70.83 "
	       "%");
	one.program.n_arrays = 0;
	one.program.recirculations = 65;
	expect(&one.program, &limits, PISA_RULE_RECIRCULATION, "recirculates a packet more often");
}

/* An array may have four actions, also if several passes share them. */
static void refuses_actions(void **state)
{
	const struct pisa_step four[] = {
		{ .op = PISA_REGISTER,
		  .array = COUNTER,
		  .index = F(INDEX),
		  .actions = { PISA_ENTRY_READ, PISA_ENTRY_ADD, PISA_ENTRY_OR, PISA_ENTRY_AND },
		  .n_actions = 4,
		  .select = X },
	};
	const struct pisa_step fifth[] = { ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_WRITE) };
	const struct pisa_pass passes[] = { { "first", four, 1 }, { "second", fifth, 1 } };
	struct pisa_limits limits = pisa_limits_default();
	struct one one;

	(void)state;
	one_pass(&one, four, 1);
	expect(&one.program, &limits, PISA_OBEYS, "");
	one.program.passes = passes;
	one.program.n_passes = 2;
	expect(&one.program, &limits, PISA_RULE_ACTIONS,
	       "pass second, stage 0, register counter: it has more than four");
}

static void refuses_names(void **state)
{
	const struct pisa_step field[] = { { .op = PISA_MOVE, .dst = Y, .a = F(FIELDS) } };
	const struct pisa_step dst[] = { { .op = PISA_MOVE, .dst = FIELDS, .a = F(X) } };
	const struct pisa_step array[] = { ACCESS(0, ARRAYS, F(INDEX), PISA_ENTRY_READ) };
	const struct pisa_step table[] = { { .op = PISA_LOOKUP, .table = 1, .dst = Y } };
	const struct pisa_step pass[] = { { .op = PISA_RECIRCULATE, .pass = 1 } };
	struct pisa_limits limits = pisa_limits_default();
	struct one one;

	(void)state;
	refuse(field, 1, PISA_RULE_FORM, "a field that does not exist");
	refuse(dst, 1, PISA_RULE_FORM, "a field that does not exist");
	refuse(array, 1, PISA_RULE_FORM, "an array that does not exist");
	refuse(table, 1, PISA_RULE_FORM, "a table that does not exist");
	refuse(pass, 1, PISA_RULE_FORM, "a pass that does not exist");
	one_pass(&one, pass, 0);
	one.program.pass_if = 1;
	expect(&one.program, &limits, PISA_RULE_FORM, "the parser names a pass");
	one.program.pass_if = 0;
	one.program.n_fields = PISA_FIELDS_MAX + 1;
	expect(&one.program, &limits, PISA_RULE_FORM, "too many fields");
}

/* A large match table lives in a stage, and a pass looks it up once. */
static void refuses_look_ups(void **state)
{
	static const struct pisa_table large = {
		.name = "large", .rows = rows, .n_rows = COUNT(rows), .stage = 1, .bits = 32
	};
	struct pisa_step steps[2] = { { .op = PISA_LOOKUP, .stage = 1, .dst = Y },
		                      { .op = PISA_LOOKUP, .stage = 1, .dst = Y } };
	const struct pisa_limits limits = pisa_limits_default();
	struct one one;

	(void)state;
	one_pass(&one, steps, 1);
	one.program.tables = &large;
	expect(&one.program, &limits, PISA_OBEYS, "");
	steps[0].stage = 0;
	expect(&one.program, &limits, PISA_RULE_HOME_STAGE, "match table lives in another stage");
	steps[0].stage = 1;
	one_pass(&one, steps, 2);
	one.program.tables = &large;
	expect(&one.program, &limits, PISA_RULE_ONE_ACCESS, "looked up twice in a pass");
}

/* ---- memory ---- */

/*
 * P4SGD, Algorithm 2: agg (8 words of 32 bits), agg_count, agg_bm, ack_count, ack_bm: 12 arrays of
 * 64 K entries, 3 in each of 4 stages.
 *
 *   an array:  65536 entries * 32 bits = 2 Mibit = 16 blocks of 16 KiB, and a spare one: 17
 *   a stage:   3 * 17 = 51 blocks of 72 = 0.70833
 */
static void paper_fills_its_share(void **state)
{
	static const char *const names[] = { "agg 0", "agg 1", "agg 2",     "agg 3",
		                             "agg 4", "agg 5", "agg 6",     "agg 7",
		                             "count", "bm",    "ack_count", "ack_bm" };
	struct pisa_array paper[COUNT(names) + 1];
	struct pisa_limits limits = pisa_limits_default();
	struct one one;
	char text[64];

	(void)state;
	one_pass(&one, NULL, 0);
	for (unsigned i = 0; i < COUNT(names); i++)
		paper[i] = (struct pisa_array){ names[i], (uint8_t)(i / 3), 32, 65536 };
	one.program.arrays = paper;
	one.program.n_arrays = COUNT(names);
	expect(&one.program, &limits, PISA_OBEYS, "");
	for (unsigned stage = 0; stage < limits.stages; stage++) {
		char expected[64];

		assert_int_equal(pisa_stage_blocks(&one.program, &limits, stage), 3 * (16 + 1));
		pisa_stage_tell(&one.program, &limits, stage, text, sizeof(text));
		snprintf(expected, sizeof(expected), "stage %u: 70.83 %% of its memory", stage);
		assert_string_equal(text, expected);
	}
	/* There is no room for one more word. */
	paper[COUNT(names)] = (struct pisa_array){ "more", 2, 1, 1 };
	one.program.n_arrays++;
	expect(&one.program, &limits, PISA_RULE_MEMORY, "register more: stage 2: 73.61 %");
}

/* ---- running ---- */

static uint64_t memory[16 + 16 + 16 + 10];

static struct pisa_switch start(const struct pisa_program *program, bool trusts)
{
	struct pisa_limits limits = pisa_limits_default();
	struct pisa_switch sw;
	char why[PISA_WHY_MAX];

	limits.trusts = trusts;
	limits.recirculations = 3;
	assert_true(pisa_memory(program) <= sizeof(memory));
	assert_int_equal(pisa_load(&sw, program, &limits, memory, why), PISA_OBEYS);
	return sw;
}

static void break_rule(const struct pisa_step *steps, size_t n, enum pisa_rule rule,
                       const char *words)
{
	struct one one;
	struct pisa_switch sw = start(one_pass(&one, steps, n), true);
	struct pisa_packet packet = { .field = { [X] = 2, [INDEX] = 12, [WIDE_INDEX] = 16 } };

	assert_int_equal(pisa_run(&sw, &packet), PISA_BROKEN);
	assert_int_equal(sw.counters.broken, 1);
	assert_int_equal(sw.counters.broke[rule], 1);
	if (!strstr(packet.why, words) || !strstr(packet.why, pisa_rule_name(rule)))
		fail_msg("\"%s\" lacks \"%s\"", packet.why, words);
}

/* Programs that nobody checked: the packet that breaks a rule is dropped and named. */
static void breaks_while_running(void **state)
{
	const struct pisa_step twice[] = { ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_READ),
		                           ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_ADD) };
	const struct pisa_step elsewhere[] = { ACCESS(1, COUNTER, F(INDEX), PISA_ENTRY_READ) };
	const struct pisa_step back[] = { ACCESS(2, LATE, F(INDEX), PISA_ENTRY_READ),
		                          ACCESS(0, COUNTER, F(INDEX), PISA_ENTRY_READ) };
	const struct pisa_step beyond[] = { ACCESS(0, COUNTER, F(WIDE_INDEX), PISA_ENTRY_READ) };
	const struct pisa_step product[] = { { .op = PISA_MULTIPLY, .dst = Y, .a = F(X) } };

	(void)state;
	break_rule(twice, 2, PISA_RULE_ONE_ACCESS,
	           "A packet broke the rule 'one access' of program tiny: pass only, stage 0, "
	           "register counter");
	break_rule(elsewhere, 1, PISA_RULE_HOME_STAGE, "it lives in another stage");
	break_rule(back, 2, PISA_RULE_FORWARD, "does not go back");
	break_rule(beyond, 1, PISA_RULE_INDEX, "beyond its end");
	break_rule(product, 1, PISA_RULE_OPERATION, "lacks the operation");
}

/* Rules that depend on the packet: such a program loads. */
static void breaks_by_a_packet(void **state)
{
	const struct pisa_step odd[] = { ACCESS(3, ODD, F(INDEX), PISA_ENTRY_ADD) };
	const struct pisa_step forever[] = { { .op = PISA_RECIRCULATE } };
	struct one one;
	struct pisa_switch sw = start(one_pass(&one, odd, 1), false);
	struct pisa_packet packet = { .field = { [X] = 2, [INDEX] = 9 } };

	(void)state;
	assert_int_equal(pisa_run(&sw, &packet), PISA_DROPPED);
	assert_int_equal(pisa_peek(&sw, ODD, 9), 2);
	packet.field[INDEX] = 10;
	assert_int_equal(pisa_run(&sw, &packet), PISA_BROKEN);
	assert_non_null(strstr(packet.why, "'index' of program tiny: pass only, stage 3, register "
	                                   "odd"));
	sw = start(one_pass(&one, forever, 1), false);
	assert_int_equal(pisa_run(&sw, &packet), PISA_BROKEN);
	assert_int_equal(sw.counters.broke[PISA_RULE_RECIRCULATION], 1);
	assert_int_equal(sw.counters.recirculations, 3);
	assert_int_equal(sw.counters.passes, 4);
	assert_int_equal(sw.counters.packets, 1);
}

static uint32_t computed(enum pisa_op op, uint32_t a, uint32_t b)
{
	const struct pisa_step steps[] = { { .op = (uint8_t)op, .dst = Y, .a = K(a), .b = K(b) } };
	struct one one;
	struct pisa_switch sw = start(one_pass(&one, steps, 1), false);
	struct pisa_packet packet = { .field = { 0 } };

	pisa_run(&sw, &packet);
	return packet.field[Y];
}

static void computes(void **state)
{
	(void)state;
	assert_int_equal(computed(PISA_MOVE, 7, 9), 7);
	assert_int_equal(computed(PISA_ADD, UINT32_MAX, 3), 2);
	assert_int_equal(computed(PISA_SUB, 3, 4), UINT32_MAX);
	assert_int_equal(computed(PISA_AND, 6, 3), 2);
	assert_int_equal(computed(PISA_ANDNOT, 6, 3), 4);
	assert_int_equal(computed(PISA_OR, 6, 3), 7);
	assert_int_equal(computed(PISA_XOR, 6, 3), 5);
	assert_int_equal(computed(PISA_SHL, 6, 30), 0x80000000u);
	assert_int_equal(computed(PISA_SHR, 0x80000000u, 30), 2);
	assert_int_equal(computed(PISA_EQ, 6, 6), 1);
	assert_int_equal(computed(PISA_NE, 6, 6), 0);
	assert_int_equal(computed(PISA_LT, 6, UINT32_MAX), 1);
	assert_int_equal(computed(PISA_GT, 6, UINT32_MAX), 0);
	assert_int_equal(computed(PISA_LT_SIGNED, 6, UINT32_MAX), 0);
	assert_int_equal(computed(PISA_GT_SIGNED, 6, UINT32_MAX), 1);
	assert_int_equal(computed(PISA_LOOKUP, 2, 0), 7);
	assert_int_equal(computed(PISA_LOOKUP, 3, 0), 0);
}

/* Conditions, halves of an entry, fates, and what is counted. */
static void runs(void **state)
{
	const struct pisa_step steps[] = {
		{ .op = PISA_REGISTER,
		  .array = PAIR,
		  .index = F(INDEX),
		  .actions = { PISA_ENTRY_SWAP },
		  .n_actions = 1,
		  .dst = Y,
		  .a = K(0),
		  .b = F(X),
		  .bh = K(5) },
		{ .op = PISA_TO_ONE, .stage = 1, .a = F(X), .when = Y },
		{ .op = PISA_TO_ALL, .stage = 1, .unless = Y },
		{ .op = PISA_REFUSE, .stage = 2, .when = WIDE_INDEX, .text = "for the test" },
	};
	struct one one;
	struct pisa_switch sw = start(one_pass(&one, steps, COUNT(steps)), false);
	struct pisa_packet packet = { .field = { [X] = 3, [INDEX] = 0x31 } };

	(void)state;
	assert_int_equal(pisa_run(&sw, &packet), PISA_ALL);
	assert_int_equal(pisa_peek(&sw, PAIR, 1), 5ull << 32 | 3); /* the index has 4 bits */
	assert_int_equal(pisa_run(&sw, &packet), PISA_ONE);
	assert_int_equal(packet.to, 3);
	packet.field[WIDE_INDEX] = 1;
	assert_int_equal(pisa_run(&sw, &packet), PISA_REFUSED);
	assert_string_equal(packet.why, "for the test");
	assert_int_equal(sw.counters.packets, 3);
	assert_int_equal(sw.counters.passes, 3);
	assert_int_equal(sw.counters.refused, 1);
	assert_int_equal(sw.counters.drops + sw.counters.broken, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_accesses),
		cmocka_unit_test(refuses_operations),
		cmocka_unit_test(refuses_sizes),
		cmocka_unit_test(refuses_actions),
		cmocka_unit_test(refuses_names),
		cmocka_unit_test(refuses_look_ups),
		cmocka_unit_test(paper_fills_its_share),
		cmocka_unit_test(breaks_while_running),
		cmocka_unit_test(breaks_by_a_packet),
		cmocka_unit_test(computes),
		cmocka_unit_test(runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
