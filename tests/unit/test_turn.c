/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns and turns: the predicted step equals the simulated one, op by op. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/draw.h"
#include "plan/turns/turn_rule.h"

#include <math.h>

#define OPS 12u

static double start_s[OPS];
static uint64_t bytes[OPS];
static struct pattern_op ops[OPS];
static struct pattern pattern;

static void pattern_draw(uint64_t *seed, uint32_t hosts)
{
	const struct wire_model wire = WIRE_MODEL_DEFAULT;
	unsigned n = 1 + draw_below(seed, OPS);
	double t = 0;

	for (unsigned i = 0; i < n; i++) {
		t += draw_below(seed, 1000) * 1e-5;
		start_s[i] = t;
		bytes[i] = draw_below(seed, 200000000);
	}
	pattern_fill(&pattern, ops, n, start_s, bytes, t + draw_below(seed, 1000) * 2e-5, hosts,
	             &wire);
}

/* The end of a step in which the ops of `mask` are aggregated, if op `from` begins at `now`. */
static double step_end(double began, double now, unsigned from, uint32_t mask)
{
	double t = now;

	for (unsigned i = from; i < pattern.n; i++)
		t = fmax(t, began + ops[i].start_s) +
		    (mask >> i & 1 ? ops[i].fast_s : ops[i].plain_s);
	return fmax(t, began + pattern.compute_s);
}

static void gains_are_true(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		double began = draw_below(&seed, 100), now;
		unsigned op;
		uint32_t later, me;

		pattern_draw(&seed, 2);
		op = draw_below(&seed, pattern.n);
		me = 1u << op;
		later = (1u << OPS) - 1 - (2 * me - 1);
		now = began + ops[op].start_s + draw_below(&seed, 100) * 1e-4;
		assert_true(fabs(pattern_gain(&ops[op], began, now, 1) -
		                 (step_end(began, now, op, 0) - step_end(began, now, op, me))) <
		            1e-9);
		assert_true(fabs(pattern_gain_fast(&ops[op], began, now, 1) -
		                 (step_end(began, now, op, later) -
		                  step_end(began, now, op, later | me))) < 1e-9);
		assert_true(pattern_gain_fast(&ops[op], began, now, 1) <=
		            pattern_gain(&ops[op], began, now, 1) + 1e-9);
		assert_true(fabs(pattern.plain_s - step_end(0, 0, 0, 0)) < 1e-9);
		assert_true(fabs(pattern.fast_s - step_end(0, 0, 0, ~0u)) < 1e-9);
	}
}

/* No shorter tail of ops makes the step as short as all of them. */
static void demand_is_the_least_tail(void **state)
{
	uint64_t seed = 4;

	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		double sum = 0;
		unsigned first;

		pattern_draw(&seed, 2);
		for (first = pattern.n;
		     first && step_end(0, 0, 0, ~0u << first) > pattern.fast_s * (1 + 1e-9);
		     first--)
			sum += ops[first - 1].fast_s;
		assert_true(fabs(pattern.demand - sum / pattern.fast_s) < 1e-9);
	}
}

static void one_host_pays_latency(void **state)
{
	uint64_t seed = 5;

	(void)state;
	pattern_draw(&seed, 1);
	assert_true(ops[0].plain_s == 50e-6 && ops[0].fast_s == 50e-6);
	assert_true(pattern.demand == 0);
}

static void the_dearer_goes_first(void **state)
{
	struct turn mine = { .start_s = 1, .fast_s = 0.2, .gain_s = 0.1 };
	struct turn soon = { .start_s = 1.1, .fast_s = 0.1, .gain_s = 0.2 };
	struct turn late = { .start_s = 1.2, .fast_s = 0.1, .gain_s = 9 };
	struct turn never = { .start_s = INFINITY };
	double score = turn_score(&mine, 1);

	(void)state;
	assert_true(fabs(score - 0.5) < 1e-12);
	assert_true(turn_yields(&mine, score, &soon, 1));
	assert_false(turn_yields(&mine, score, &late, 1));
	assert_false(turn_yields(&mine, score, &never, 1));
	soon.gain_s = 0.1; /* equal gain: the first job goes first */
	assert_false(turn_yields(&mine, score, &soon, 1));
}

#define SLOTS 4u

/* Jobs on one switch, each slot with a tree of this switch only, and `busy` of them there. */
static bool is_mine(uint32_t places, uint32_t busy, unsigned n, enum turn_policy policy)
{
	static char work[4096];
	static const uint32_t tree[1] = { 0 };
	/* The first job gains 0.1 s by 0.1 s of aggregation; the others, a little later, 0.4 s. */
	struct pattern_op op[2] = { { .start_s = 0, .plain_s = 0.2, .fast_s = 0.1 },
		                    { .start_s = 0.05, .plain_s = 0.5, .fast_s = 0.1 } };
	struct pattern patterns[2];
	struct fabric fabric = { .switch_jobs = places };
	struct turn_next next[SLOTS];
	struct groups groups;

	pattern_close(&patterns[0], &op[0], 1, 0.01);
	pattern_close(&patterns[1], &op[1], 1, 0.01);
	assert_true(groups_bytes(SLOTS, 1) <= sizeof(work));
	groups_init(&groups, SLOTS, 1, work);
	for (unsigned i = 0; i < n; i++) {
		next[i] = (struct turn_next){ .pattern = &patterns[i > 0], .pace = 1 };
		groups_join(&groups, i, tree, 1);
	}
	return turn_is_mine(&(struct turn_table){ .groups = &groups,
	                                          .fabric = &fabric,
	                                          .in_use = &busy,
	                                          .next = next,
	                                          .is_exclusive = places == 1 },
	                    0, policy, 0);
}

/* A job gives way only if those that gain more would fill the places. */
static void places_count(void **state)
{
	(void)state;
	for (int policy = TURN_SMART; policy <= TURN_FRUGAL; policy++) {
		assert_false(is_mine(1, 0, 2, (enum turn_policy)policy));
		assert_true(is_mine(2, 0, 2, (enum turn_policy)policy)); /* a place for each */
		assert_false(is_mine(2, 0, 3, (enum turn_policy)policy));
		assert_true(is_mine(3, 0, 3, (enum turn_policy)policy));
		assert_true(is_mine(3, 1, 2, (enum turn_policy)policy));
		assert_false(is_mine(3, 1, 4, (enum turn_policy)policy));
		assert_false(is_mine(3, 2, 4, (enum turn_policy)policy));
	}
}

/* If a step is faster than usual, its last allreduce gains, which usually gains nothing. */
static void the_pace_counts(void **state)
{
	struct pattern_op op[1] = { { .start_s = 0.5, .plain_s = 0.2, .fast_s = 0.1 } };
	struct turn_next next = { .pattern = &pattern, .free_s = 0.4, .pace = 0.8 };

	(void)state;
	pattern_close(&pattern, op, 1, 1);
	assert_true(turn_now(&next, TURN_FRUGAL, 0.55).gain_s < 1e-12);
	assert_float_equal(turn_now(&next, TURN_FRUGAL, 0.7).gain_s, 0.1, 1e-9);
	assert_true(turn_now(&next, TURN_SMART, 0.7).gain_s < 1e-12); /* MINA's rule */
	assert_float_equal(turn_foresee(&next, TURN_FRUGAL, 0).start_s, 0.4, 1e-9);
	assert_float_equal(turn_foresee(&next, TURN_SMART, 0).start_s, 0.5, 1e-9);
	assert_float_equal(turn_foresee(&next, TURN_FRUGAL, 0.45).start_s, 0.45, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gains_are_true),        cmocka_unit_test(demand_is_the_least_tail),
		cmocka_unit_test(one_host_pays_latency), cmocka_unit_test(the_dearer_goes_first),
		cmocka_unit_test(places_count),          cmocka_unit_test(the_pace_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
