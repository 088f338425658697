/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/outlook.h"

#include "plan/turn.h"

#include <math.h>
#include <string.h>

#define STEPS 4u        /* are looked at, of each job */
#define BUDGET 2048u    /* allreduces, at most: steps may be of very different lengths */
#define MUCH 0.001      /* of all steps: so much it has to be worth to differ from the score */
#define GAIN_LEAST 1e-4 /* of the step's computation: what is worth having */

/* A job as it runs on. */
struct runner {
	double began, free, begin; /* begin: of the allreduce `at` */
	unsigned at, step;
	bool is_known; /* its turn */
};

/* A place at the aggregator. */
struct slot {
	double until;
	unsigned owner; /* n: nobody */
};

struct run {
	const struct outlook *outlook;
	const struct outlook_job *jobs;
	unsigned n, left;
	bool yields; /* to those who can make more of it */
	double sum;  /* of the ends of steps */
	struct runner runner[OUTLOOK_JOBS];
	struct slot slots[OUTLOOK_JOBS];
	struct outlook_turn *turns;
};

/* When its next allreduce begins. */
static void find_next(struct run *run, unsigned j)
{
	struct runner *it = &run->runner[j];
	const struct pattern *pattern = run->jobs[j].pattern;

	if (it->at == pattern->n) {
		it->began = it->free =
			fmax(fmax(it->free, it->began + pattern->compute_s), run->outlook->now_s);
		it->at = 0;
		it->step++;
		it->is_known |= run->turns[j].to > 0;
		if (it->step == STEPS) {
			run->sum += it->began;
			run->left--;
		}
	}
	it->begin =
		fmax(fmax(it->free, it->began + pattern->ops[it->at].start_s), run->outlook->now_s);
}

static struct turn turn_at(const struct run *run, unsigned j)
{
	const struct runner *it = &run->runner[j];
	const struct pattern *pattern = run->jobs[j].pattern;
	struct turn turn = turn_of(&pattern->ops[it->at], it->began, it->begin, TURN_FRUGAL);

	if (turn.gain_s < GAIN_LEAST * pattern->compute_s)
		turn.gain_s = 0;
	return turn;
}

/* A place for a job's next allreduce; NULL: none. `more`: so many others would be left. */
static struct slot *find_slot(struct run *run, unsigned j, unsigned *more)
{
	struct slot *found = NULL;

	*more = 0;
	for (unsigned i = 0; i < run->outlook->capacity && i < run->n; i++) {
		struct slot *slot = &run->slots[i];
		bool is_free = slot->owner == run->n ||
		               slot->until + run->outlook->handover_s <= run->runner[j].begin;

		if (slot->owner != j && !is_free)
			continue;
		*more += found != NULL;
		if (!found || slot->owner == j)
			found = slot;
	}
	return found;
}

/* Are there others, for all places, who would begin meanwhile and can make more of it? */
static bool is_outdone(const struct run *run, unsigned j, const struct turn *mine, unsigned more)
{
	double now = run->runner[j].begin, score = turn_score(mine, now);
	struct turn until = *mine; /* nobody can begin */
	unsigned ahead = 0;

	until.fast_s += run->outlook->handover_s;
	for (unsigned other = 0; other < run->n; other++) {
		struct turn turn;

		if (other == j || run->runner[other].begin >= now + until.fast_s)
			continue;
		turn = turn_at(run, other);
		ahead += turn_yields(&until, score, &turn, now);
	}
	return ahead > more;
}

/* Where its next allreduce is aggregated; NULL: it is not. */
static struct slot *choose(struct run *run, unsigned j)
{
	const struct runner *it = &run->runner[j];
	const struct outlook_job *job = &run->jobs[j];
	bool has = job->holds && !it->step && it->at < job->given;
	struct turn mine = turn_at(run, j);
	unsigned more;
	struct slot *slot = find_slot(run, j, &more);

	if (has || it->begin < job->fixed_s)
		return has ? slot : NULL;
	if (!slot || !(mine.gain_s > 0) || (run->yields && is_outdone(run, j, &mine, more)))
		return NULL;
	return slot;
}

static void note(struct run *run, unsigned j, bool is_fast, double end)
{
	struct runner *it = &run->runner[j];
	struct outlook_turn *turn = &run->turns[j];

	it->is_known |= !is_fast && turn->to;
	if (!is_fast || it->is_known)
		return;
	if (!turn->to) {
		turn->step = it->step;
		turn->from = it->at;
		turn->begin_s = it->begin;
	}
	turn->to = it->at + 1;
	turn->end_s = end;
}

static void advance(struct run *run, unsigned j)
{
	struct runner *it = &run->runner[j];
	const struct pattern_op *op = &run->jobs[j].pattern->ops[it->at];
	struct slot *slot = choose(run, j);
	double end = it->begin + (slot ? op->fast_s : op->plain_s);

	note(run, j, slot != NULL, end);
	if (slot)
		*slot = (struct slot){ end, j };
	it->free = end;
	it->at++;
	find_next(run, j);
}

/* Until all have done their steps. Gives the sum of when that is; INFINITY: it takes too long. */
static double run_all(struct run *run, struct outlook_turn *turns)
{
	unsigned held = 0;

	run->left = run->n;
	run->sum = 0;
	run->turns = turns;
	for (unsigned j = 0; j < run->n; j++) {
		turns[j] = (struct outlook_turn){ 0 };
		run->slots[j].owner = run->n;
		run->runner[j] = (struct runner){ .began = run->jobs[j].began_s,
			                          .free = run->jobs[j].free_s,
			                          .at = run->jobs[j].at };
	}
	for (unsigned j = 0; j < run->n; j++) {
		if (run->jobs[j].holds)
			run->slots[held++] = (struct slot){ run->jobs[j].free_s, j };
		find_next(run, j);
	}
	for (unsigned budget = BUDGET; run->left && budget; budget--) {
		unsigned next = 0;

		for (unsigned j = 1; j < run->n; j++)
			if (run->runner[j].begin < run->runner[next].begin)
				next = j;
		advance(run, next);
	}
	return run->left ? INFINITY : run->sum;
}

void outlook_plan(const struct outlook *outlook, const struct outlook_job *jobs, unsigned n,
                  struct outlook_turn *turns)
{
	struct run run = { .outlook = outlook, .jobs = jobs, .n = n, .yields = true };
	struct outlook_turn others[OUTLOOK_JOBS];
	double sum = run_all(&run, turns);

	run.yields = false;
	if (run_all(&run, others) < sum * (1 - MUCH))
		memcpy(turns, others, n * sizeof(*turns));
}
