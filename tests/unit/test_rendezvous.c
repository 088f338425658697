/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in together, by which number, and who is waited for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define TIMEOUT_MS 10000u
#define SEEN_MS 2000u

static struct gathering g;
static struct answer answer;
static uint64_t now;
static trib_status planner_says;
static struct plan_wish wished;

static trib_status plan(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX])
{
	(void)context;
	wished = *wish;
	if (planner_says < 0)
		return status_fail(planner_says, "no aggregator lives");
	if (planner_says != TRIB_OK)
		return planner_says;
	snprintf(out, PLAN_TEXT_MAX, "a:1(0-%u)", wish->ranks - 1);
	return TRIB_OK;
}

static void begin(enum policy policy, uint32_t size)
{
	gathering_start(&g, 7, 0, policy, size, 1);
	now = 1000 * MS;
	planner_says = TRIB_OK;
}

static enum answer_kind ask_as(uint32_t rank, uint32_t size, uint64_t nonce, uint32_t generation,
                               uint64_t lost)
{
	const struct world world = { .now = now, .seen_ns = SEEN_MS * MS, .plan = plan };
	struct ask ask = { .rank = rank,
		           .size = size,
		           .nonce = nonce,
		           .generation = generation,
		           .timeout_ms = TIMEOUT_MS,
		           .pid = 100 + rank,
		           .pool_bytes = 1000 - rank,
		           .tcp = rank == 2,
		           .lost = lost };

	snprintf(ask.host, sizeof(ask.host), "h%u", rank);
	snprintf(ask.where, sizeof(ask.where), "10.0.0.%u", rank);
	gathering_ask(&g, &ask, &world, &answer);
	return answer.kind;
}

/* Rank r's first process has the nonce r + 1. */
static enum answer_kind ask(uint32_t rank, uint32_t generation)
{
	return ask_as(rank, g.size ? g.size : 4, rank + 1, generation, 0);
}

/* All of some ranks ask, again and again, for so long; the last answers. */
static void ask_for(uint64_t ranks, uint32_t generation, uint64_t span, enum answer_kind *kinds)
{
	for (uint64_t until = now + span; now < until; now += 50 * MS)
		for (unsigned r = 0; r < 64; r++)
			if (ranks >> r & 1)
				kinds[r] = ask(r, generation);
}

static void form(uint32_t size)
{
	for (unsigned r = 0; r + 1 < size; r++)
		assert_int_equal(ask(r, g.generation), ANSWER_WAIT);
	assert_int_equal(ask(size - 1, g.generation), ANSWER_PLAN);
	assert_true(answer.changed);
}

static void test_any_order(void **state)
{
	static const unsigned orders[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 2, 0, 3, 1 } };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(POLICY_FAIL, 4);
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(ask(orders[i][k], 0), ANSWER_WAIT);
			assert_true(answer.present >> orders[i][k] & 1);
			assert_false(answer.changed);
		}
		assert_int_equal(ask(orders[i][3], 0), ANSWER_PLAN);
		assert_true(answer.changed);
		assert_int_equal(answer.rank, orders[i][3]);
		assert_int_equal(answer.size, 4);
		assert_int_equal(g.generation, 1);
		assert_string_equal(g.plan, "a:1(0-3)");
		for (unsigned r = 0; r < 4; r++) { /* those who waited, and a lost answer */
			assert_int_equal(ask(r, 0), ANSWER_PLAN);
			assert_false(answer.changed);
			assert_int_equal(answer.rank, r);
		}
		assert_int_equal(g.generation, 1);
	}
}

/* Where the job does not say its size, the first rank does; others must say the same. */
static void test_size(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 0);
	assert_int_equal(ask_as(1, 2, 11, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(0, 3, 12, 0, 0), ANSWER_REFUSE);
	assert_non_null(strstr(answer.sentence, "3 ranks, but job 7 has 2"));
	assert_int_equal(ask_as(0, 2, 12, 0, 0), ANSWER_PLAN);
	begin(POLICY_FAIL, 4);
	assert_int_equal(ask_as(0, 2, 12, 0, 0), ANSWER_REFUSE);
}

static void test_refuses_nonsense(void **state)
{
	(void)state;
	begin(POLICY_SHRINK, 4);
	assert_int_equal(ask_as(4, 4, 1, 0, 0), ANSWER_REFUSE);
	assert_int_equal(ask_as(0, 0, 1, 0, 0), ANSWER_REFUSE);
	assert_int_equal(ask_as(63, 65, 1, 0, 0), ANSWER_REFUSE);
	assert_int_equal(ask_as(UINT32_MAX - 1, UINT32_MAX, 1, 0, 0), ANSWER_REFUSE);
	assert_int_equal(ask_as(0, 4, 0, 0, 0), ANSWER_REFUSE);
	assert_int_equal(ask_as(0, 4, 1, UINT32_MAX, 0), ANSWER_REFUSE);
	assert_int_equal(g.generation, 0);
	form(4);
}

/* A rank that died while others still come is not counted as here. */
static void test_silent_while_forming(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 2);
	assert_int_equal(ask(0, 0), ANSWER_WAIT);
	now += 1500 * MS;
	assert_int_equal(ask(1, 0), ANSWER_WAIT);
	assert_int_equal(answer.present, 2);
	assert_int_equal(ask_as(0, 2, 50, 0, 0), ANSWER_PLAN); /* started again */
}

static void test_rank_that_never_comes(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_FAIL, 4);
	ask_for(0xb, 0, TIMEOUT_MS / 2 * MS, kinds);
	assert_true(kinds[0] == ANSWER_WAIT && kinds[1] == ANSWER_WAIT && kinds[3] == ANSWER_WAIT);
	ask_for(0xb, 0, 200 * MS, kinds);
	assert_true(kinds[0] == ANSWER_REFUSE && kinds[3] == ANSWER_REFUSE);
	assert_non_null(strstr(answer.sentence, "rank 2 of job 7 has not come"));
	assert_non_null(strstr(answer.sentence, "3 of 4"));
}

/* An attempt that was given up does not count against the next one. */
static void test_attempts(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	assert_int_equal(ask(0, 0), ANSWER_WAIT);
	now += 600000 * MS;
	assert_int_equal(ask(1, 0), ANSWER_WAIT);
	assert_int_equal(ask(0, 0), ANSWER_WAIT);
	assert_int_equal(ask(2, 0), ANSWER_PLAN);
	now += 600000 * MS;
	assert_int_equal(ask(0, 1), ANSWER_WAIT);
	now += 600000 * MS;
	assert_int_equal(ask(0, 1), ANSWER_WAIT); /* stopped, not gone */
	assert_int_equal(g.since, now);
	assert_int_equal(ask(1, 1), ANSWER_WAIT);
}

static void test_two_for_one_rank(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	assert_int_equal(ask(1, 0), ANSWER_WAIT);
	now += 50 * MS;
	assert_int_equal(ask_as(1, 3, 99, 0, 0), ANSWER_WAIT); /* perhaps the first is dead */
	now += 50 * MS;
	assert_int_equal(ask(1, 0), ANSWER_WAIT);
	now += 50 * MS;
	assert_int_equal(ask_as(1, 3, 99, 0, 0), ANSWER_REFUSE);
	assert_non_null(strstr(answer.sentence, "rank 1 (host h1, pid 101) is here already"));
	assert_int_equal(g.seats[1].nonce, 2);
}

/* An aggregator dies: all ranks ask again and get the next plan. */
static void test_next_plan(void **state)
{
	(void)state;
	for (enum policy policy = POLICY_FAIL; policy < POLICIES_END; policy++) {
		begin(policy, 3);
		form(3);
		now += 5000 * MS;
		form(3);
		assert_int_equal(g.generation, 2);
		assert_int_equal(wished.ranks, 3);
		assert_string_equal(wished.where[2], "10.0.0.2");
		assert_int_equal(wished.pool_bytes, 998); /* the least that one asks for */
		assert_int_equal(wished.tcp, 4);
		assert_int_equal(wished.since, now);
		assert_int_equal(ask(1, 1), ANSWER_PLAN); /* its answer was lost */
		assert_int_equal(ask(1, 0), ANSWER_PLAN);
		assert_false(answer.changed);
	}
}

/* The same process may ask anew with another nonce: it knows the plan's number. */
static void test_new_nonce_same_process(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 2);
	form(2);
	now += 10 * MS;
	assert_int_equal(ask_as(0, 2, 71, 1, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(1, 2, 72, 1, 0), ANSWER_PLAN);
	assert_int_equal(g.generation, 2);
	assert_int_equal(ask_as(0, 2, 71, 1, 0), ANSWER_PLAN);
}

static void test_fail_names_the_lost(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	now += 5000 * MS;
	ask_for(3, 1, (TIMEOUT_MS / 2 + 200) * MS, kinds);
	assert_true(kinds[0] == ANSWER_REFUSE && kinds[1] == ANSWER_REFUSE);
	assert_non_null(strstr(answer.sentence, "rank 2 (host h2, pid 102) of job 7 is lost"));
	assert_int_equal(g.generation, 1);
}

/* Under `fail` a process that was started again must not meet those that were not. */
static void test_fail_never_mixes(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	now += 5000 * MS;
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask(0, 1), ANSWER_REFUSE);
	assert_non_null(strstr(answer.sentence, "started again"));
	assert_int_equal(ask(1, 1), ANSWER_REFUSE);
	/* All of it started again: that is another run. */
	now += 1500 * MS;
	assert_int_equal(ask_as(0, 3, 60, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(1, 3, 61, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_PLAN);
	assert_int_equal(g.generation, 2);
}

/* One was killed when the others had left: the next run waits for all of its ranks. */
static void test_run_after_killed_last(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	gathering_leave(&g, 1, UINT64_MAX);
	gathering_leave(&g, 2, UINT64_MAX);
	now += 5000 * MS;
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(0, 3, 60, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(1, 3, 61, 0, 0), ANSWER_PLAN);
	assert_int_equal(answer.size, 3);
	assert_int_equal(g.generation, 2);
}

/* All ranks but those of some bits are heard of by aggregators, for so long. */
static void see_for(uint64_t but, uint64_t span)
{
	for (uint64_t until = now + span; now < until; now += 250 * MS)
		for (unsigned rank = 0; rank < 3; rank++)
			if (!(but >> rank & 1))
				gathering_see(&g, rank, now);
}

/* Who works does not ask; one that was started by mistake does not get its seat. */
static void test_stray(void **state)
{
	(void)state;
	for (enum policy policy = POLICY_FAIL; policy < POLICIES_END; policy++) {
		begin(policy, 3);
		form(3);
		see_for(0, 20000 * MS);
		assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
		assert_int_equal(g.seats[2].nonce, 3);
		see_for(0, 2000 * MS);
		assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT); /* perhaps an old word */
		see_for(0, 2000 * MS);
		assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_REFUSE);
		assert_non_null(strstr(answer.sentence, "rank 2 (host h2, pid 102) is here"));
		form(3);
		assert_int_equal(g.generation, 2);
	}
}

/* One that is dead is not heard of; or others say so, before aggregators' words are old. */
static void test_started_again(void **state)
{
	(void)state;
	begin(POLICY_WAIT, 3);
	form(3);
	see_for(0, 20000 * MS);
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	see_for(4, (SEEN_MS + 250) * MS);
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(g.seats[2].nonce, 50);
	gathering_see(&g, 2, now); /* a late word, of the one before */
	assert_int_equal(g.seats[2].seen_at, 0);
	assert_int_equal(ask(0, 1), ANSWER_WAIT);
	assert_int_equal(ask(1, 1), ANSWER_PLAN);
	assert_int_equal(g.members, 7);
	see_for(0, 20000 * MS);
	assert_int_equal(ask_as(2, 3, 51, 0, 0), ANSWER_WAIT);
	assert_int_equal(g.seats[2].nonce, 50);
	assert_int_equal(ask_as(0, 3, 1, 2, 4), ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 51, 0, 0), ANSWER_WAIT);
	assert_int_equal(g.seats[2].nonce, 51);
	assert_int_equal(ask(1, 2), ANSWER_PLAN);
	assert_int_equal(g.generation, 3);
}

static void test_shrinks(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_SHRINK, 4);
	form(4);
	now += 5000 * MS;
	ask_for(0xd, 1, TIMEOUT_MS / 2 * MS, kinds);
	assert_int_equal(kinds[0], ANSWER_WAIT);
	ask_for(0xd, 1, 200 * MS, kinds);
	assert_true(kinds[0] == ANSWER_PLAN && kinds[2] == ANSWER_PLAN);
	assert_int_equal(g.generation, 2);
	assert_int_equal(g.members, 0xd);
	assert_int_equal(wished.ranks, 3);
	assert_string_equal(wished.where[1], "10.0.0.2");
	ask(3, 1);
	assert_true(answer.rank == 2 && answer.size == 3);
}

/* Named by those who know, it is not waited for as long. */
static void test_shrinks_at_once(void **state)
{
	(void)state;
	begin(POLICY_SHRINK, 2);
	form(2);
	now += 5000 * MS;
	for (unsigned i = 0; i < 21; i++, now += 50 * MS)
		assert_int_equal(ask_as(0, 2, 1, 1, 2), ANSWER_WAIT);
	assert_int_equal(ask_as(0, 2, 1, 1, 2), ANSWER_PLAN);
	assert_int_equal(g.members, 1);
	assert_true(answer.rank == 0 && answer.size == 1);
}

/* In the numbers of the plan that is broken. */
static void test_names_by_the_plan(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_SHRINK, 4);
	form(4);
	now += 5000 * MS;
	ask_for(0xd, 1, (TIMEOUT_MS / 2 + 200) * MS, kinds);
	assert_int_equal(g.members, 0xd);
	now += 5000 * MS;
	for (unsigned i = 0; i < 22; i++, now += 50 * MS) { /* rank 1 is seat 2 now */
		ask_as(0, 4, 1, 2, 2);
		ask_as(3, 4, 4, 2, 2);
	}
	assert_int_equal(g.generation, 3);
	assert_int_equal(g.members, 9);
}

/* One that was called lost but lives is in. */
static void test_lost_but_here(void **state)
{
	(void)state;
	begin(POLICY_SHRINK, 3);
	form(3);
	now += 5000 * MS;
	assert_int_equal(ask_as(0, 3, 1, 1, 4), ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 3, 1, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(1, 3, 2, 1, 4), ANSWER_PLAN);
	assert_int_equal(g.members, 7);
}

/* A rank that has lost its way does not go on alone. */
static void test_no_minority(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_SHRINK, 4);
	form(4);
	now += 5000 * MS;
	ask_for(8, 1, 2 * TIMEOUT_MS * MS, kinds);
	assert_int_equal(kinds[3], ANSWER_REFUSE);
	assert_int_equal(g.generation, 1);
	ask_for(0xc, 1, 2 * TIMEOUT_MS * MS, kinds);
	assert_int_equal(g.generation, 1); /* half is no majority either */
}

static void test_min(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_SHRINK, 4);
	g.min = 4;
	form(4);
	now += 5000 * MS;
	ask_for(7, 1, 2 * TIMEOUT_MS * MS, kinds);
	assert_int_equal(kinds[0], ANSWER_REFUSE);
	assert_int_equal(g.generation, 1);
}

static void test_waits_for_a_replacement(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_WAIT, 3);
	form(3);
	now += 5000 * MS;
	ask_for(3, 1, 5 * TIMEOUT_MS * MS, kinds);
	assert_true(kinds[0] == ANSWER_WAIT && kinds[1] == ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 88, 0, 0), ANSWER_PLAN);
	assert_int_equal(g.generation, 2);
	assert_int_equal(g.members, 7);
	assert_int_equal(ask(0, 1), ANSWER_PLAN);
}

/* Ranks that were not open yet have to know whether somebody came in. */
static void test_same_since(void **state)
{
	(void)state;
	begin(POLICY_WAIT, 3);
	form(3);
	assert_int_equal(g.same_since, 1);
	for (uint32_t generation = 1; generation < 4; generation++) /* a border, or lost trees */
		for (unsigned rank = 0; rank < 3; rank++)
			ask(rank, generation);
	assert_int_equal(g.generation, 4);
	assert_int_equal(g.same_since, 1);
	now += 5000 * MS;
	assert_int_equal(ask_as(2, 3, 88, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask(0, 4), ANSWER_WAIT);
	assert_int_equal(ask(1, 4), ANSWER_PLAN);
	assert_int_equal(g.same_since, 5);
	ask_as(2, 3, 88, 5, 0);
	ask(0, 5);
	ask(1, 5);
	assert_int_equal(g.generation, 6);
	assert_int_equal(g.same_since, 5);
	/* Who leaves is no newcomer. */
	gathering_leave(&g, 2, UINT64_MAX);
	ask_as(2, 3, 88, 6, 0);
	ask(0, 6);
	assert_int_equal(g.generation, 7);
	assert_int_equal(g.same_since, 5);
}

/* A newcomer waits until those who are in come to a border, and is in the next plan. */
static void test_grows(void **state)
{
	(void)state;
	begin(POLICY_SHRINK, 2);
	form(2);
	now += 5000 * MS;
	for (unsigned i = 0; i < 400; i++, now += 50 * MS)
		assert_int_equal(ask_as(2, 3, 9, 0, 0), ANSWER_WAIT);
	assert_int_equal(gathering_waiting(&g, now), 4);
	assert_int_equal(ask_as(2, 3, 9, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask(0, 1), ANSWER_WAIT);
	assert_int_equal(ask(1, 1), ANSWER_PLAN);
	assert_int_equal(g.members, 7);
	assert_int_equal(answer.size, 3);
	assert_int_equal(ask_as(2, 3, 9, 0, 0), ANSWER_PLAN);
	assert_int_equal(answer.rank, 2);
}

/* One that was left out comes back at the next border. */
/* Who has said good-bye is not waited for, whatever the policy; its seat is free. */
static void test_leaves(void **state)
{
	(void)state;
	for (int policy = 0; policy < POLICIES_END; policy++) {
		begin((enum policy)policy, 3);
		form(3);
		gathering_leave(&g, 2, UINT64_MAX);
		assert_int_equal(ask(0, 1), ANSWER_WAIT);
		assert_int_equal(ask(2, 1), ANSWER_PLAN);
		assert_true(answer.changed && answer.rank == 1 && answer.size == 2);
		assert_int_equal(g.members, 5);
		gathering_leave(&g, 99, UINT64_MAX); /* nobody's */
		assert_int_equal(g.left, 0);
	}
}

/* A process without a rank gets a seat that is free, and keeps it. */
static void test_any_seat(void **state)
{
	(void)state;
	begin(POLICY_SHRINK, 3);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 51, 0, 0), ANSWER_WAIT);
	assert_int_equal(answer.present, 3);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 52, 0, 0), ANSWER_PLAN);
	assert_int_equal(answer.rank, 2);
	/* One more comes, and is in when the others regroup; then in place of one that left. */
	assert_int_equal(ask_as(SEAT_ANY, 1, 53, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 1, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 51, 1, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 52, 1, 0), ANSWER_PLAN);
	assert_true(answer.size == 4 && g.members == 15);
	gathering_leave(&g, 51, UINT64_MAX);
	assert_int_equal(ask_as(SEAT_ANY, 1, 54, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 2, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 52, 2, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 53, 2, 0), ANSWER_PLAN);
	assert_true(answer.size == 4 && g.members == 15);
	/* Before a job knows its size there is none to choose from. */
	begin(POLICY_SHRINK, 0);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 0, 0), ANSWER_REFUSE);
}

static void test_comes_back(void **state)
{
	enum answer_kind kinds[64] = { 0 };

	(void)state;
	begin(POLICY_SHRINK, 3);
	form(3);
	now += 5000 * MS;
	ask_for(6, 1, (TIMEOUT_MS / 2 + 200) * MS, kinds);
	assert_int_equal(g.members, 6);
	assert_int_equal(ask(0, 1), ANSWER_WAIT); /* too late */
	assert_int_equal(ask(0, 1), ANSWER_WAIT);
	assert_int_equal(ask(1, 2), ANSWER_WAIT);
	assert_int_equal(ask(2, 2), ANSWER_PLAN);
	assert_int_equal(g.generation, 3);
	assert_int_equal(g.members, 7);
}

/* All have said good-bye: the next run of the job waits for all its ranks again. */
static void test_runs_again(void **state)
{
	(void)state;
	for (enum policy policy = POLICY_FAIL; policy < POLICIES_END; policy++) {
		begin(policy, 3);
		form(3);
		now += 5000 * MS;
		for (unsigned r = 0; r < 3; r++)
			gathering_leave(&g, r + 1, UINT64_MAX);
		assert_int_equal(ask_as(1, 3, 21, 0, 0), ANSWER_WAIT);
		assert_int_equal(ask_as(0, 3, 20, 0, 0), ANSWER_WAIT);
		assert_int_equal(ask_as(2, 3, 22, 0, 0), ANSWER_PLAN);
		assert_int_equal(answer.size, 3);
		assert_int_equal(g.generation, 2);
	}
}

/* A restarted controller has what was stored: the same ranks get the same plan. */
static void test_restart(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	for (unsigned i = 0; i < 3; i++) {
		g.seats[i].asked_at = 0;
		g.seats[i].timeout_ms = 0;
		g.seats[i].waits = false;
	}
	g.since = 0;
	now = 5 * MS; /* its clock may be another one */
	assert_int_equal(ask(2, 0), ANSWER_PLAN);
	assert_false(answer.changed);
	form(3);
	assert_int_equal(g.generation, 2);
}

/* A store that is an old copy: numbers that ranks have seen are never given again. */
static void test_old_store(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	now += 100 * MS;
	assert_int_equal(ask(0, 5), ANSWER_WAIT);
	assert_int_equal(ask(1, 5), ANSWER_WAIT);
	assert_int_equal(ask(2, 5), ANSWER_PLAN);
	assert_int_equal(g.generation, 6);
}

static void test_no_aggregator(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 1);
	planner_says = TRIB_ERR_AGGREGATOR;
	assert_int_equal(ask(0, 0), ANSWER_WAIT);
	for (unsigned i = 0; i < 101; i++, now += 50 * MS)
		ask(0, 0);
	assert_int_equal(ask(0, 0), ANSWER_REFUSE);
	assert_string_equal(answer.sentence, "no aggregator lives");
	planner_says = TRIB_IN_PROGRESS;
	assert_int_equal(ask(0, 0), ANSWER_WAIT);
	planner_says = TRIB_OK;
	assert_int_equal(ask(0, 0), ANSWER_PLAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_refuses_nonsense),
		cmocka_unit_test(test_silent_while_forming),
		cmocka_unit_test(test_rank_that_never_comes),
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_two_for_one_rank),
		cmocka_unit_test(test_next_plan),
		cmocka_unit_test(test_new_nonce_same_process),
		cmocka_unit_test(test_fail_names_the_lost),
		cmocka_unit_test(test_fail_never_mixes),
		cmocka_unit_test(test_run_after_killed_last),
		cmocka_unit_test(test_stray),
		cmocka_unit_test(test_started_again),
		cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_shrinks_at_once),
		cmocka_unit_test(test_names_by_the_plan),
		cmocka_unit_test(test_lost_but_here),
		cmocka_unit_test(test_no_minority),
		cmocka_unit_test(test_min),
		cmocka_unit_test(test_waits_for_a_replacement),
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_same_since),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_any_seat),
		cmocka_unit_test(test_runs_again),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_old_store),
		cmocka_unit_test(test_no_aggregator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
