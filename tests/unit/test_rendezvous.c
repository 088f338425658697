/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks are in a plan together, the plan's number, and how long missing ranks are awaited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define TIMEOUT_MS 10000u
#define SEEN_MS 2000u

static struct membership g;
static struct answer answer;
static uint64_t now;
static trib_status planner_says;
static struct plan_wish wished;
static uint64_t listens; /* ranks that listen for a ring, as bits */
static bool job_rings;

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
	membership_start(&g, 7, 0, policy, size, 1);
	now = 1000 * MS;
	planner_says = TRIB_OK;
}

static enum answer_kind ask_as(uint32_t rank, uint32_t size, uint64_t nonce, uint32_t generation,
                               uint64_t lost)
{
	const struct world world = {
		.now = now, .seen_ns = SEEN_MS * MS, .plan = plan, .rings = job_rings
	};
	struct ask ask = { .rank = rank,
		           .size = size,
		           .nonce = nonce,
		           .generation = generation,
		           .timeout_ms = TIMEOUT_MS,
		           .pid = 100 + rank,
		           .pool_bytes = 1000 - rank,
		           .tcp = rank == 2,
		           .lost = lost };

	if (rank < 64 && listens >> rank & 1)
		ask.ring = (struct ring_seat){ .family = 4, .port = (uint16_t)(40 + rank) };
	snprintf(ask.host, sizeof(ask.host), "h%u", rank);
	snprintf(ask.where, sizeof(ask.where), "10.0.0.%u", rank);
	membership_ask(&g, &ask, &world, &answer);
	return answer.kind;
}

/* The first process of rank r has the nonce r + 1. */
static enum answer_kind ask(uint32_t rank, uint32_t generation)
{
	return ask_as(rank, g.size ? g.size : 4, rank + 1, generation, 0);
}

/* These ranks ask repeatedly for so long; returns the last answers. */
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
		for (unsigned r = 0; r < 4; r++) { /* the waiting ranks, and a lost answer */
			assert_int_equal(ask(r, 0), ANSWER_PLAN);
			assert_false(answer.changed);
			assert_int_equal(answer.rank, r);
		}
		assert_int_equal(g.generation, 1);
	}
}

/*
 * Ranks that listen for a ring wait 2 s for an aggregator, or a quarter of a shorter timeout. The
 * planner then may give them a ring. If one rank does not listen, there is none.
 */
static void test_ring(void **state)
{
	enum answer_kind kinds[64];

	(void)state;
	begin(POLICY_FAIL, 2);
	planner_says = TRIB_ERR_AGGREGATOR;
	listens = 3;
	ask_for(3, 0, 2000 * MS, kinds);
	assert_false(wished.rings);
	ask_for(3, 0, 100 * MS, kinds);
	assert_true(wished.rings);
	assert_int_equal(wished.seats[1].port, 41);
	planner_says = TRIB_OK;
	assert_int_equal(ask(0, 0), ANSWER_PLAN);
	/* There was no aggregator for the job's first communicator: no wait. */
	job_rings = true;
	form(2);
	assert_true(wished.rings);
	listens = 1;
	ask_for(3, g.generation, 3000 * MS, kinds);
	assert_false(wished.rings);
	job_rings = false;
	listens = 0;
}

/* A job without a size takes that of the first rank; others must agree. */
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

/* A rank that died while others still join does not count. */
static void test_silent_while_forming(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 2);
	assert_int_equal(ask(0, 0), ANSWER_WAIT);
	now += 1500 * MS;
	assert_int_equal(ask(1, 0), ANSWER_WAIT);
	assert_int_equal(answer.present, 2);
	assert_int_equal(ask_as(0, 2, 50, 0, 0), ANSWER_PLAN); /* restarted */
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
	assert_non_null(strstr(answer.sentence, "rank 2 of job 7 did not join"));
	assert_non_null(strstr(answer.sentence, "3 of 4"));
}

/* An attempt that was given up does not affect the next one. */
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
	assert_int_equal(ask_as(1, 3, 99, 0, 0), ANSWER_WAIT); /* the first process may be dead */
	now += 50 * MS;
	assert_int_equal(ask(1, 0), ANSWER_WAIT);
	now += 50 * MS;
	assert_int_equal(ask_as(1, 3, 99, 0, 0), ANSWER_REFUSE);
	assert_non_null(
		strstr(answer.sentence, "rank 1 (host h1, pid 101) has joined job 7 already"));
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
		assert_int_equal(wished.pool_bytes, 998); /* the smallest request */
		assert_int_equal(wished.tcp, 4);
		assert_int_equal(wished.since, now);
		assert_int_equal(ask(1, 1), ANSWER_PLAN); /* its answer was lost */
		assert_int_equal(ask(1, 0), ANSWER_PLAN);
		assert_false(answer.changed);
	}
}

/* The same process may ask again with another nonce: it knows the generation. */
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

/* With policy `fail`, a restarted process must not join the others. */
static void test_fail_never_mixes(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	now += 5000 * MS;
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask(0, 1), ANSWER_REFUSE);
	assert_non_null(strstr(answer.sentence, "was restarted"));
	assert_int_equal(ask(1, 1), ANSWER_REFUSE);
	/* All processes were restarted: that is another run. */
	now += 1500 * MS;
	assert_int_equal(ask_as(0, 3, 60, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(1, 3, 61, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_PLAN);
	assert_int_equal(g.generation, 2);
}

/* A rank was killed after the others had left: the next run waits for all ranks. */
static void test_run_after_killed_last(void **state)
{
	(void)state;
	begin(POLICY_FAIL, 3);
	form(3);
	membership_leave(&g, 1, UINT64_MAX);
	membership_leave(&g, 2, UINT64_MAX);
	now += 5000 * MS;
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(0, 3, 60, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(1, 3, 61, 0, 0), ANSWER_PLAN);
	assert_int_equal(answer.size, 3);
	assert_int_equal(g.generation, 2);
}

/* For a time, aggregators hear all ranks except some. */
static void see_for(uint64_t but, uint64_t span)
{
	for (uint64_t until = now + span; now < until; now += 250 * MS)
		for (unsigned rank = 0; rank < 3; rank++)
			if (!(but >> rank & 1))
				membership_see(&g, rank, now);
}

/* A rank at work does not ask. A second process does not get its seat. */
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
		assert_int_equal(ask_as(2, 3, 50, 0, 0),
		                 ANSWER_WAIT); /* the sign of life may be old */
		see_for(0, 2000 * MS);
		assert_int_equal(ask_as(2, 3, 50, 0, 0), ANSWER_REFUSE);
		assert_non_null(strstr(answer.sentence,
		                       "rank 2 (host h2, pid 102) has joined job 7 already"));
		form(3);
		assert_int_equal(g.generation, 2);
	}
}

/* A dead rank gives no signs of life; or other ranks report it dead sooner. */
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
	membership_see(&g, 2, now); /* a late sign of life of the previous process */
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

/* A rank that is reported dead is awaited for a shorter time. */
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

/* Dead ranks are given in the numbers of the broken plan. */
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

/* A rank that was reported dead but asks is in the plan. */
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

/* A rank that is cut off does not go on alone. */
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
	assert_int_equal(g.generation, 1); /* half is not a majority */
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

/* same_since tells ranks whether a process has joined. */
static void test_same_since(void **state)
{
	(void)state;
	begin(POLICY_WAIT, 3);
	form(3);
	assert_int_equal(g.same_since, 1);
	for (uint32_t generation = 1; generation < 4; generation++) /* a regroup, or lost trees */
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
	/* A rank that leaves is no newcomer. */
	membership_leave(&g, 2, UINT64_MAX);
	ask_as(2, 3, 88, 6, 0);
	ask(0, 6);
	assert_int_equal(g.generation, 7);
	assert_int_equal(g.same_since, 5);
}

/* A new process waits until the members regroup, and is in the next plan. */
static void test_grows(void **state)
{
	(void)state;
	begin(POLICY_SHRINK, 2);
	form(2);
	now += 5000 * MS;
	for (unsigned i = 0; i < 400; i++, now += 50 * MS)
		assert_int_equal(ask_as(2, 3, 9, 0, 0), ANSWER_WAIT);
	assert_int_equal(membership_waiting(&g, now), 4);
	assert_int_equal(ask_as(2, 3, 9, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask(0, 1), ANSWER_WAIT);
	assert_int_equal(ask(1, 1), ANSWER_PLAN);
	assert_int_equal(g.members, 7);
	assert_int_equal(answer.size, 3);
	assert_int_equal(ask_as(2, 3, 9, 0, 0), ANSWER_PLAN);
	assert_int_equal(answer.rank, 2);
}

/* One that was left out comes back at the next border. */
/* A rank that has said goodbye is not awaited, with any policy; its seat is free. */
static void test_leaves(void **state)
{
	(void)state;
	for (int policy = 0; policy < POLICIES_END; policy++) {
		begin((enum policy)policy, 3);
		form(3);
		membership_leave(&g, 2, UINT64_MAX);
		assert_int_equal(ask(0, 1), ANSWER_WAIT);
		assert_int_equal(ask(2, 1), ANSWER_PLAN);
		assert_true(answer.changed && answer.rank == 1 && answer.size == 2);
		assert_int_equal(g.members, 5);
		membership_leave(&g, 99, UINT64_MAX); /* no process has this nonce */
		assert_int_equal(g.left, 0);
	}
}

/* A process without a rank gets a free seat, and keeps it. */
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
	/*
	 * Another process asks, and joins when the others regroup; later one replaces a process
	 * that left.
	 */
	assert_int_equal(ask_as(SEAT_ANY, 1, 53, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 1, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 51, 1, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 52, 1, 0), ANSWER_PLAN);
	assert_true(answer.size == 4 && g.members == 15);
	membership_leave(&g, 51, UINT64_MAX);
	assert_int_equal(ask_as(SEAT_ANY, 1, 54, 0, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 50, 2, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 52, 2, 0), ANSWER_WAIT);
	assert_int_equal(ask_as(SEAT_ANY, 1, 53, 2, 0), ANSWER_PLAN);
	assert_true(answer.size == 4 && g.members == 15);
	/* A job without a size has no seats to choose from. */
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

/* All have said goodbye: the next run waits for all ranks again. */
static void test_runs_again(void **state)
{
	(void)state;
	for (enum policy policy = POLICY_FAIL; policy < POLICIES_END; policy++) {
		begin(policy, 3);
		form(3);
		now += 5000 * MS;
		for (unsigned r = 0; r < 3; r++)
			membership_leave(&g, r + 1, UINT64_MAX);
		assert_int_equal(ask_as(1, 3, 21, 0, 0), ANSWER_WAIT);
		assert_int_equal(ask_as(0, 3, 20, 0, 0), ANSWER_WAIT);
		assert_int_equal(ask_as(2, 3, 22, 0, 0), ANSWER_PLAN);
		assert_int_equal(answer.size, 3);
		assert_int_equal(g.generation, 2);
	}
}

/* A restarted controller reads its store: the same ranks get the same plan. */
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
	now = 5 * MS; /* its clock may differ */
	assert_int_equal(ask(2, 0), ANSWER_PLAN);
	assert_false(answer.changed);
	form(3);
	assert_int_equal(g.generation, 2);
}

/* The store is an old copy: generations that ranks have seen are never used again. */
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

/* Only the four values of TRIB_WIRE are taken; a rank of an earlier version tells none. */
static void test_wire(void **state)
{
	static const struct {
		uint8_t told[3];
		const char *all;
	} cases[] = {
		{ { 1, 1, 1 }, "auto" },  { { 9, 9, 9 }, "8" },        { { 17, 17, 17 }, "16" },
		{ { 33, 33, 33 }, "32" }, { { 17, 33, 33 }, "mixed" }, { { 1, 33, 1 }, "mixed" },
		{ { 0, 0, 0 }, NULL },    { { 1, 1, 0 }, NULL },       { { 16, 16, 16 }, NULL },
		{ { 34, 34, 34 }, NULL }, { { 255, 255, 255 }, NULL },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct world world = { .now = 1000 * MS, .plan = plan };

		begin(POLICY_FAIL, 3);
		assert_null(membership_wire(&g)); /* there is no plan */
		for (unsigned r = 0; r < 3; r++) {
			struct ask ask = { .rank = r,
				           .size = 3,
				           .nonce = r + 1,
				           .timeout_ms = TIMEOUT_MS,
				           .wire = cases[i].told[r] };

			membership_ask(&g, &ask, &world, &answer);
		}
		assert_int_equal(g.generation, 1);
		if (cases[i].all)
			assert_string_equal(membership_wire(&g), cases[i].all);
		else
			assert_null(membership_wire(&g));
	}
	for (unsigned wire = 0; wire < 256; wire++)
		assert_int_equal(wire_setting_name((uint8_t)wire) != NULL,
		                 wire == 1 || wire == 9 || wire == 17 || wire == 33);
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
		cmocka_unit_test(test_ring),
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
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_no_aggregator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
