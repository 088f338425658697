/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets the next turn: jobs whose steps are like those of training, on a
 * network without chance, and the turns that share.h gives them. The score is
 * the paper's: how much of what the aggregator could give each job it gives
 * them when they share it.
 */
#include "control/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull
#define JOBS_MAX 3u
#define STEPS 30u
#define TICK MS
#define AGREE (5 * MS)
#define AHEAD 2u
#define NEVER UINT64_MAX

/* A job as a worker would run it. */
struct sim {
	struct share_job told;
	uint64_t posted, base, next, finished, began, free; /* of requests, and times */
	uint64_t end[WIRE_TURN_OPS_MAX];                    /* of those under way */
	bool fast[WIRE_TURN_OPS_MAX];
	uint64_t from, to; /* the turn that it has */
	uint64_t given;
	uint64_t pending; /* when what was given is agreed on; 0: nothing was */
	uint64_t p_from, p_to;
	unsigned steps;
	uint64_t over_at;
};

/* n allreduces in the second half of a step of `compute`, that take `share` of it by themselves. */
static void fill(struct sim *sim, unsigned n, uint64_t compute, double share, double late)
{
	uint64_t plain = (uint64_t)((double)compute * share / n);

	memset(sim, 0, sizeof(*sim));
	sim->told.ops = n;
	sim->told.compute = compute;
	for (unsigned i = 0; i < n; i++)
		sim->told.op[i] = (struct wire_turn_op){
			.start_us =
				(uint32_t)((double)compute * (late + (0.95 - late) * i / n) / 1000),
			.plain_us = (uint32_t)(plain / 1000),
			.fast_us = (uint32_t)(plain / 1500),
		};
}

static bool uses(const struct sim *sim, uint64_t request, bool all)
{
	return all || (request >= sim->from && request < sim->to);
}

/* All that happens at `now`. */
static void advance(struct sim *sim, uint64_t now, bool all)
{
	unsigned n = sim->told.ops;

	while (sim->finished < sim->next && sim->end[sim->finished % n] <= now)
		sim->finished++;
	if (sim->finished == sim->base + n && now >= sim->began + sim->told.compute) {
		sim->steps++;
		sim->base += n;
		sim->began = now;
		if (sim->steps == STEPS)
			sim->over_at = now;
	}
	while (sim->next < sim->base + n &&
	       now >= sim->began + (uint64_t)sim->told.op[sim->next - sim->base].start_us * 1000) {
		uint64_t i = sim->next, begin = sim->free > now ? sim->free : now;
		bool fast = uses(sim, i, all);

		if (i - sim->finished >= AHEAD ||
		    (i > sim->finished && sim->fast[(i - 1) % n] != fast))
			break;
		sim->fast[i % n] = fast;
		sim->free = begin + (uint64_t)(fast ? sim->told.op[i - sim->base].fast_us
		                                    : sim->told.op[i - sim->base].plain_us) *
		                            1000;
		sim->end[i % n] = sim->free;
		sim->next++;
	}
}

static bool holds(const struct sim *sim)
{
	uint64_t last = sim->to;

	return sim->pending || sim->next < last || (last && sim->finished < last);
}

static void tell(struct sim *sim)
{
	unsigned n = sim->told.ops;

	sim->told.base = sim->base;
	sim->told.next = sim->next;
	sim->told.finished = sim->finished;
	sim->told.began_at = sim->began;
	sim->told.fast = sim->next > sim->finished && sim->fast[sim->finished % n];
	sim->told.busy_at = 0;
	if (sim->next > sim->finished) {
		const struct wire_turn_op *op = &sim->told.op[sim->finished - sim->base];

		sim->told.busy_at = sim->end[sim->finished % n] -
		                    (uint64_t)(sim->told.fast ? op->fast_us : op->plain_us) * 1000;
	}
}

/* One that had been given is agreed on, if the first of it has not begun. */
static void agree(struct sim *sim, uint64_t now)
{
	if (!sim->pending || now < sim->pending)
		return;
	sim->pending = 0;
	if (sim->next > sim->p_from)
		return;
	if (sim->p_from < sim->p_to)
		sim->from = sim->p_from;
	sim->to = sim->p_to; /* of one that ends, what was before stays */
}

/* The rest of a turn is for another one, if that can make more of it. */
static void overtake(struct sim *holder, unsigned n, const struct share_job *job,
                     const struct share_wish *wish, uint64_t now)
{
	struct share_wish rest;

	if (holder->pending || holder->to <= holder->next + 1 || now < holder->given + 4 * AGREE)
		return;
	tell(holder);
	share_wish(&holder->told, SHARE_SCORE, n, AGREE, now, &rest);
	if (!share_overtakes(job, wish, &rest, now))
		return;
	holder->pending = now + AGREE;
	holder->p_from = holder->p_to = holder->next + 1;
}

static void serve(struct sim *sims, unsigned n, enum share_policy sharing, uint64_t now)
{
	const struct share_job *jobs[JOBS_MAX];
	struct share_wish wishes[JOBS_MAX];
	struct sim *who[JOBS_MAX], *holder = NULL;
	unsigned m = 0;
	int best;

	for (unsigned i = 0; i < n; i++)
		if (holds(&sims[i]))
			holder = &sims[i];
	for (unsigned i = 0; i < n; i++) {
		if (sims[i].steps >= STEPS || holder == &sims[i])
			continue;
		tell(&sims[i]);
		share_wish(&sims[i].told, sharing, n, AGREE, now, &wishes[m]);
		if (wishes[m].from >= wishes[m].to || wishes[m].by > now + share_lead(AGREE))
			sims[i].told.wants_since = 0;
		else if (!sims[i].told.wants_since)
			sims[i].told.wants_since = now;
		jobs[m] = &sims[i].told;
		who[m++] = &sims[i];
	}
	best = m ? share_choose(jobs, wishes, m, sharing, AGREE, now) : -1;
	if (holder) {
		if (best >= 0 && sharing == SHARE_SCORE)
			overtake(holder, n, jobs[best], &wishes[best], now);
		best = -1;
	}

	for (unsigned i = 0; i < m; i++)
		share_note(&who[i]->told, &wishes[i], (int)i == best);
	if (best < 0)
		return;
	who[best]->told.wants_since = 0;
	who[best]->pending = now + AGREE;
	who[best]->given = now;
	who[best]->p_from = wishes[best].from;
	who[best]->p_to = wishes[best].to;
}

enum mode { ALL, NONE, SHARED };

static void simulate(struct sim *sims, unsigned n, enum mode mode, enum share_policy sharing)
{
	uint64_t now = 1;
	bool over = false;

	for (unsigned i = 0; i < n; i++)
		sims[i].began = sims[i].free = 1;
	for (; !over; now += TICK) {
		over = true;
		for (unsigned i = 0; i < n; i++) {
			agree(&sims[i], now);
			advance(&sims[i], now, mode == ALL);
			over &= sims[i].steps >= STEPS;
		}
		if (mode == SHARED)
			serve(sims, n, sharing, now);
	}
}

static double total(const struct sim *sims, unsigned n, enum mode mode, enum share_policy sharing)
{
	struct sim own[JOBS_MAX];
	double sum = 0;

	memcpy(own, sims, n * sizeof(*sims));
	simulate(own, n, mode, sharing);
	for (unsigned i = 0; i < n; i++)
		sum += (double)own[i].over_at;
	return sum;
}

static double score_of(const struct sim *sims, unsigned n, enum share_policy sharing)
{
	double none = total(sims, n, NONE, sharing), all = total(sims, n, ALL, sharing);
	double score = (none - total(sims, n, SHARED, sharing)) / (none - all);

	printf("%u jobs, %s: score %.3f, gap %.1f%%\n", n, share_policy_name(sharing), score,
	       (none / all - 1) * 100);
	return score;
}

static void test_two(void **state)
{
	struct sim sims[2];

	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.68, 0.4);
	fill(&sims[1], 13, 1000 * MS, 0.70, 0.4);
	assert_true(score_of(sims, 2, SHARE_SCORE) >= 0.9);
	assert_true(score_of(sims, 2, SHARE_SCORE) > score_of(sims, 2, SHARE_GREEDY));
	fill(&sims[1], 14, 900 * MS, 0.68, 0.4); /* the same: all at the same time */
	assert_true(score_of(sims, 2, SHARE_SCORE) >= 0.9);
	score_of(sims, 2, SHARE_GREEDY);
}

/* One whose step without the aggregator is as long as the other's with it. */
static void test_in_time(void **state)
{
	struct sim sims[2];

	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.72, 0.4);
	fill(&sims[1], 13, 1005 * MS, 0.70, 0.4);
	assert_true(score_of(sims, 2, SHARE_SCORE) >= 0.9);
	score_of(sims, 2, SHARE_GREEDY);
}

static void test_three(void **state)
{
	struct sim sims[3];

	(void)state;
	fill(&sims[0], 14, 900 * MS, 0.68, 0.4);
	fill(&sims[1], 13, 1000 * MS, 0.69, 0.4);
	fill(&sims[2], 38, 2400 * MS, 0.67, 0.4);
	assert_true(score_of(sims, 3, SHARE_SCORE) >= 0.9);
	assert_true(score_of(sims, 3, SHARE_SCORE) > score_of(sims, 3, SHARE_GREEDY));
	score_of(sims, 3, SHARE_FAIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_in_time),
		cmocka_unit_test(test_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
