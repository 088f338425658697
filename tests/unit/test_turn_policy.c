/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job gets the next turn: jobs with steps like those of training run on a deterministic
 * network, with the turns that turn_policy.h grants. The score is the paper's: the part of the
 * possible gain that each job still has when they share the aggregator.
 */
#include "control/policy/turn_policy.h"
#include "short.h"
#include "sim/jitter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull
#define JOBS_MAX 3u
#define AGREE (3 * MS)
#define TAIL (2 * MS)

static unsigned steps; /* of each job */
static uint64_t tick;  /* how often the policy is asked */
static double jitter;  /* of the computation of steps */
static bool is_paced;  /* jobs tell the pace of a step, as worker/turns/step_profile.h does */

/* A job as a worker would run it. */
struct sim {
	struct turn_job told;
	uint64_t began, end; /* start of the step; end of the request that began last */
	bool fast;           /* that request uses the aggregator */
	uint64_t from, to;   /* its turn */
	uint64_t pending;    /* when the granted turn is agreed on; 0: none is granted */
	uint64_t p_from, p_to;
	unsigned steps;
	uint64_t over_at;
	uint32_t
		start_us[WIRE_TURN_OPS_MAX]; /* usual starts and computation, and the step's pace */
	uint64_t compute;
	double pace;
};

/*
 * n allreduces from `late` of the step on, which take `share` of it. The last one is `last` times
 * as large as the others, like embeddings.
 */
static void fill(struct sim *sim, unsigned n, uint64_t compute, double share, double late,
                 double last)
{
	double each = (double)compute * share / (n - 1 + last);

	memset(sim, 0, sizeof(*sim));
	sim->told.ops = n;
	sim->told.compute = compute;
	for (unsigned i = 0; i < n; i++) {
		double plain = i + 1 == n ? each * last : each;

		sim->told.op[i] = (struct wire_turn_op){
			.start_us =
				(uint32_t)((double)compute * (late + (0.93 - late) * i / n) / 1000),
			.plain_us = (uint32_t)(plain / 1000),
			.fast_us = (uint32_t)(plain / 1600),
		};
		sim->start_us[i] = sim->told.op[i].start_us;
	}
	sim->compute = compute;
	sim->pace = 1;
	turn_policy_learn(&sim->told);
}

static bool uses(const struct sim *sim, uint64_t request, bool all)
{
	return all || (request >= sim->from && request < sim->to);
}

static uint64_t duration(const struct sim *sim, uint64_t request, bool fast)
{
	const struct wire_turn_op *op = &sim->told.op[request - sim->told.base];

	return (uint64_t)(fast ? op->fast_us : op->plain_us) * 1000;
}

/* Tells the controller that steps are usual, or as they are at the pace of this one. */
static void tell_step(struct sim *sim, double pace)
{
	struct turn_job *told = &sim->told;

	told->compute = (uint64_t)((double)sim->compute * pace);
	for (unsigned i = 0; i < told->ops; i++)
		told->op[i].start_us = (uint32_t)(sim->start_us[i] * pace);
	turn_policy_learn(told);
}

/* Simulates everything that happens at `now`. */
static void advance(struct sim *sim, uint64_t now, bool all)
{
	struct turn_job *told = &sim->told;

	if (told->next == told->base + told->ops && now >= sim->end &&
	    now >= sim->began + (uint64_t)((double)sim->compute * sim->pace)) {
		sim->steps++;
		told->base += told->ops;
		sim->began = now;
		if (jitter > 0) {
			sim->pace = jitter_pace(jitter, 1, told->ops, sim->steps);
			tell_step(sim, 1);
		}
		if (sim->steps == steps)
			sim->over_at = now;
	}
	while (told->next < told->base + told->ops) {
		uint64_t i = told->next;
		uint64_t posted =
			sim->began + (uint64_t)(sim->start_us[i - told->base] * sim->pace * 1000);
		bool fast = uses(sim, i, all);

		if (now < posted || now + (fast == sim->fast ? TAIL : 0) < sim->end)
			break;
		if (sim->end <= now)
			told->busy_at = now;
		sim->end = (sim->end > now ? sim->end : now) + duration(sim, i, fast);
		sim->fast = fast;
		if (i == told->base && jitter > 0 && is_paced)
			tell_step(sim, sim->pace);
		told->next++;
	}
}

static bool holds(const struct sim *sim, uint64_t now)
{
	return sim->pending || sim->told.next < sim->to || (sim->fast && now < sim->end);
}

static void tell(struct sim *sim, uint64_t now)
{
	struct turn_job *told = &sim->told;

	told->began_at = sim->began;
	told->fast = sim->fast;
	told->finished = told->next;
	told->busy_at = 0;
	if (now < sim->end && told->next > told->base) {
		told->finished = told->next - 1;
		told->busy_at = sim->end - duration(sim, told->finished, sim->fast);
	}
	told->held = holds(sim, now);
	told->held_to = sim->to;
	told->agree_ns = AGREE;
	told->open = !sim->pending && sim->steps < steps;
}

/* A granted turn is agreed on, if its first request has not begun. */
static void agree(struct sim *sim, uint64_t now)
{
	if (!sim->pending || now < sim->pending)
		return;
	sim->pending = 0;
	if (sim->told.next > sim->p_from)
		return;
	if (sim->p_from < sim->p_to && sim->p_from != sim->to)
		sim->from = sim->p_from;
	sim->to = sim->p_to; /* an extension or an end keeps `from` */
}

static void serve(struct sim *sims, unsigned n, enum turn_policy sharing, uint64_t now)
{
	struct turn_job *jobs[JOBS_MAX];
	struct turn_grant grant;
	unsigned holders = 0;

	for (unsigned i = 0; i < n; i++) {
		tell(&sims[i], now);
		jobs[i] = &sims[i].told;
		holders += jobs[i]->held;
	}
	assert_true(holders <= 1);
	if (!turn_policy_decide(jobs, n, sharing, 1, now, &grant))
		return;
	assert_true(grant.job < n && jobs[grant.job]->open);
	assert_true(jobs[grant.job]->held || !holders);
	assert_true(grant.from >= jobs[grant.job]->next && grant.to >= grant.from);
	sims[grant.job].pending = now + AGREE;
	sims[grant.job].p_from = grant.from;
	sims[grant.job].p_to = grant.to;
}

enum mode { ALL, NONE, SHARED };

static void simulate(struct sim *sims, unsigned n, enum mode mode, enum turn_policy sharing)
{
	uint64_t now = 1;
	bool over = false;

	for (unsigned i = 0; i < n; i++)
		sims[i].began = sims[i].end = 1;
	for (; !over; now += tick) {
		over = true;
		for (unsigned i = 0; i < n; i++) {
			agree(&sims[i], now);
			advance(&sims[i], now, mode == ALL);
			over &= sims[i].steps >= steps;
		}
		if (mode == SHARED)
			serve(sims, n, sharing, now);
	}
}

static double total(const struct sim *sims, unsigned n, enum mode mode, enum turn_policy sharing)
{
	static struct sim own[JOBS_MAX];
	double sum = 0;

	memcpy(own, sims, n * sizeof(*sims));
	for (unsigned i = 0; i < n; i++)
		turn_policy_learn(&own[i].told);
	simulate(own, n, mode, sharing);
	for (unsigned i = 0; i < n; i++)
		sum += (double)own[i].over_at;
	return sum;
}

static double score_of(const struct sim *sims, unsigned n, enum turn_policy sharing)
{
	double none = total(sims, n, NONE, sharing), all = total(sims, n, ALL, sharing);
	double score = (none - total(sims, n, SHARED, sharing)) / (none - all);

	printf("%u jobs, %s: score %.3f, gap %.1f%%\n", n, turn_policy_name(sharing), score,
	       (none / all - 1) * 100);
	return score;
}

static struct sim sims[JOBS_MAX];

/* The few steps of a short test score by chance. */
static void demand(bool score_holds)
{
	assert_true(score_holds || test_is_short());
}

static void better_than_greedy(unsigned n, double least)
{
	double score = score_of(sims, n, TURN_POLICY_SCORE);

	demand(score >= least);
	demand(score > score_of(sims, n, TURN_POLICY_GREEDY));
}

/* Similar to the traces of bert-base, opt-125m, bert-large and vit-base. */
static void test_two(void **state)
{
	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.68, 0.4, 3);
	fill(&sims[1], 13, 1000 * MS, 0.67, 0.45, 6);
	better_than_greedy(2, 0.95);
	fill(&sims[1], 38, 2400 * MS, 0.72, 0.35, 4);
	better_than_greedy(2, 0.97);
	fill(&sims[1], 14, 650 * MS, 0.8, 0.25, 1);
	better_than_greedy(2, 0.95);
}

/* Steps vary: jobs that tell their pace gain nearly as much as if steps were equal. */
static void test_varying(void **state)
{
	double paced, unpaced;

	(void)state;
	jitter = 0.1;
	fill(&sims[0], 14, 900 * MS, 0.68, 0.4, 3);
	fill(&sims[1], 13, 1000 * MS, 0.67, 0.45, 6);
	unpaced = score_of(sims, 2, TURN_POLICY_SCORE);
	is_paced = true;
	paced = score_of(sims, 2, TURN_POLICY_SCORE);
	better_than_greedy(2, 0.9);
	demand(paced > unpaced + 0.05);
	jitter = 0;
}

/* Equal jobs that start at the same time. */
static void test_same(void **state)
{
	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.68, 0.4, 3);
	fill(&sims[1], 14, 900 * MS, 0.68, 0.4, 3);
	demand(score_of(sims, 2, TURN_POLICY_SCORE) >= 0.9);
	score_of(sims, 2, TURN_POLICY_GREEDY);
}

/* One job's step without the aggregator is as long as the other's with it. */
static void test_in_time(void **state)
{
	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.72, 0.4, 1);
	fill(&sims[1], 13, 1005 * MS, 0.70, 0.4, 1);
	better_than_greedy(2, 0.95);
}

/* Jobs want more than the aggregator has. */
static void test_too_much(void **state)
{
	(void)state;
	fill(&sims[0], 38, 1600 * MS, 1.2, 0.28, 1);
	fill(&sims[1], 38, 1700 * MS, 1.2, 0.28, 1);
	demand(score_of(sims, 2, TURN_POLICY_SCORE) > score_of(sims, 2, TURN_POLICY_GREEDY) - 0.02);
}

static void test_three(void **state)
{
	(void)state;
	fill(&sims[0], 13, 1000 * MS, 0.67, 0.45, 6);
	fill(&sims[1], 38, 2400 * MS, 0.72, 0.35, 4);
	fill(&sims[2], 38, 2350 * MS, 0.72, 0.35, 4);
	better_than_greedy(3, 0.95);
	if (test_is_short())
		return;
	fill(&sims[1], 14, 900 * MS, 0.68, 0.4, 3);
	better_than_greedy(3, 0.9);
	score_of(sims, 3, TURN_POLICY_FAIR);
}

/* A job that stops in the middle of a step, as for a checkpoint, delays no other job. */
static void test_stuck(void **state)
{
	struct turn_job *jobs[] = { &sims[0].told, &sims[1].told };
	uint64_t now = 100000 * MS;
	struct turn_grant grant = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		fill(&sims[i], 14, 900 * MS, 0.68, 0.4, 3);
		sims[i].told.open = true;
		sims[i].told.agree_ns = AGREE;
		/* The third request will begin in 5 ms. */
		sims[i].told.began_at = now + 5 * MS - (uint64_t)sims[i].told.op[2].start_us * 1000;
		sims[i].told.next = sims[i].told.finished = 2;
	}
	sims[0].told.op[5].plain_us *= 3; /* this one gains more */
	turn_policy_learn(&sims[0].told);
	assert_true(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now, &grant));
	assert_int_equal(grant.job, 0);
	for (unsigned policy = TURN_POLICY_SCORE; policy <= TURN_POLICY_FAIR; policy++) {
		sims[0].told.began_at = now - 5000 * MS;
		assert_true(turn_policy_decide(jobs, 2, policy, 1, now, &grant));
		assert_int_equal(grant.job, 1);
		assert_int_equal(grant.from, 2);
	}
	/* Neither does a silent job. */
	sims[0].told.began_at = sims[1].told.began_at;
	sims[0].told.open = false;
	assert_true(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now, &grant));
	assert_int_equal(grant.job, 1);
	sims[1].told.open = false;
	assert_false(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now, &grant));
}

/* A job with unknown steps gets a few requests, if no other job wants a turn. */
static void test_unknown(void **state)
{
	struct turn_job *jobs[] = { &sims[0].told, &sims[1].told };
	uint64_t now = 100000 * MS;
	struct turn_grant grant = { 0 };

	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.68, 0.4, 3);
	fill(&sims[1], 14, 900 * MS, 0.68, 0.4, 3);
	for (unsigned i = 0; i < 2; i++) {
		sims[i].told.open = true;
		sims[i].told.agree_ns = AGREE;
		sims[i].told.began_at = now;
	}
	sims[1].told.ops = 0;
	sims[1].told.next = 7;
	assert_false(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now,
	                                &grant)); /* it does nothing */
	sims[1].told.busy_at = now - MS;
	assert_true(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now, &grant));
	assert_int_equal(grant.job, 1);
	assert_int_equal(grant.from, 8);
	/* It has them, and there is no room for more. */
	sims[1].told.held = true;
	sims[1].told.held_to = grant.to;
	sims[0].told.began_at = now + 5 * MS - (uint64_t)sims[0].told.op[0].start_us * 1000;
	assert_false(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now, &grant));
	assert_true(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 2, now, &grant));
	assert_int_equal(grant.job, 0);
	sims[1].told.held = false;
	assert_true(turn_policy_decide(jobs, 2, TURN_POLICY_SCORE, 1, now, &grant));
	assert_int_equal(grant.job, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two),     cmocka_unit_test(test_same),
		cmocka_unit_test(test_in_time), cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_three),   cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_varying),
	};

	steps = (unsigned)test_count("steps, whose score proves nothing", test_is_long() ? 30 : 15,
	                             2);
	tick = test_is_short() ? 5 * MS : test_is_long() ? MS : 2 * MS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
