/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/turns/outlook.h"

#include "plan/turns/turn_rule.h"
#include "plan/turns/rollout.h"

#include <string.h>

#define STEPS 4u     /* simulated steps of each job */
#define BUDGET 2048u /* limit on simulated allreduces, because steps may differ much in length */
#define DEPTH 64u    /* allreduces of all jobs that the search decides */
#define WIDTH 8u     /* rollouts kept during the search */
#define SEARCHED 4u  /* limit on jobs for the search, which would take long with more */
#define MUCH 0.0005  /* gain over the score's choice that is worth it, of all steps' time */

/* ---- the score's choice ---- */

static struct turn turn_at(const struct rollout_set *set, const struct rollout *rollout, unsigned j)
{
	const struct rollout_runner *it = &rollout->runner[j];
	const struct pattern *pattern = set->jobs[j].pattern;
	struct turn turn = turn_of(&pattern->ops[it->at], it->began, it->begin,
	                           rollout_pace(set, it, j), TURN_FRUGAL);

	if (turn.gain_s < ROLLOUT_GAIN_LEAST * pattern->compute_s)
		turn.gain_s = 0;
	return turn;
}

/* Would other jobs, enough to fill all places, start meanwhile and gain more? */
static bool is_outdone(const struct rollout_set *set, const struct rollout *rollout)
{
	struct turn until = turn_at(set, rollout, rollout->next); /* keeps others from starting */
	double now = until.start_s, score = turn_score(&until, now);
	unsigned ahead = 0;

	if (!(until.gain_s > 0) && !set->outlook->varies)
		return true;
	until.fast_s += set->outlook->handover_s;
	for (unsigned j = 0; j < set->n; j++) {
		struct turn turn;

		if (j == rollout->next || rollout->runner[j].begin >= now + until.fast_s)
			continue;
		turn = turn_at(set, rollout, j);
		ahead += turn_yields(&until, score, &turn, now);
	}
	return ahead >= rollout_places(set, rollout);
}

static bool is_played(const struct rollout_set *set, const struct rollout *rollout)
{
	for (unsigned j = 0; j < set->n; j++)
		if (rollout->runner[j].step < STEPS)
			return false;
	return true;
}

/*
 * Simulates the rest until all jobs have done their steps. `yields`: jobs let those that gain more
 * go first.
 */
static void play(const struct rollout_set *set, struct rollout *rollout, bool yields)
{
	for (unsigned budget = BUDGET; budget && !is_played(set, rollout); budget--) {
		const struct rollout_slot *slot = rollout_slot(set, rollout);

		if (slot && yields && !rollout_is_given(set, rollout) && is_outdone(set, rollout))
			slot = NULL;
		rollout_advance(set, rollout, rollout, slot);
	}
}

/* ---- search ---- */

/* The best rollouts after a number of allreduces. */
struct front {
	unsigned n;
	unsigned order[WIDTH + 1]; /* the best first; the extra entry is for the candidate */
	struct rollout rollouts[WIDTH + 1];
};

static void front_clear(struct front *front)
{
	front->n = 0;
	for (unsigned i = 0; i <= WIDTH; i++)
		front->order[i] = i;
}

/* Adds the successor of a rollout if it is among the best and new. */
static void front_keep(struct front *front, const struct rollout_set *set,
                       const struct rollout *from, const struct rollout_slot *slot)
{
	unsigned spare = front->order[front->n], at = front->n;
	struct rollout *rollout = &front->rollouts[spare];

	rollout_advance(set, rollout, from, slot);
	while (at > 0 && rollout->late < front->rollouts[front->order[at - 1]].late)
		at--;
	for (unsigned i = at; i > 0 && front->rollouts[front->order[i - 1]].late == rollout->late;
	     i--)
		if (rollout_is_same(set, rollout, &front->rollouts[front->order[i - 1]]))
			return;
	memmove(&front->order[at + 1], &front->order[at],
	        (front->n - at) * sizeof(front->order[0]));
	front->order[at] = spare;
	front->n += front->n < WIDTH;
}

/*
 * Adds both choices for the next allreduce. Aggregation comes first, so it wins if the rest is
 * equal.
 */
static void front_branch(struct front *front, const struct rollout_set *set,
                         const struct rollout *rollout)
{
	const struct rollout_slot *slot = rollout_slot(set, rollout);

	if (slot)
		front_keep(front, set, rollout, slot);
	if (!slot || (!rollout_is_given(set, rollout) && rollout_is_contested(set, rollout)))
		front_keep(front, set, rollout, NULL);
}

/* Searches from `start`. The result is in fronts[DEPTH % 2]. */
static void search(const struct rollout_set *set, struct front *fronts, const struct rollout *start)
{
	front_clear(&fronts[0]);
	fronts[0].rollouts[0] = *start;
	fronts[0].n = 1;
	for (unsigned i = 0; i < DEPTH; i++) {
		const struct front *from = &fronts[i % 2];
		struct front *to = &fronts[!(i % 2)];

		front_clear(to);
		for (unsigned k = 0; k < from->n; k++)
			front_branch(to, set, &from->rollouts[from->order[k]]);
	}
}

void outlook_plan(const struct outlook *outlook, const struct outlook_job *jobs, unsigned n,
                  struct outlook_turn *turns)
{
	const struct rollout_set set = { outlook, jobs, n,
		                         outlook->capacity < n ? outlook->capacity : n };
	struct front fronts[2]; /* not cleared: most of it is never used */
	struct front *last = &fronts[DEPTH % 2];
	struct rollout start, by_score, all_taken;
	const struct rollout *best = &by_score;
	double much = 0;

	rollout_begin(&set, &start);
	by_score = all_taken = start;
	play(&set, &by_score, true);
	play(&set, &all_taken, false);
	for (unsigned j = 0; j < n; j++)
		much += MUCH * STEPS * jobs[j].pattern->fast_s;
	if (all_taken.late < best->late - much)
		best = &all_taken;
	front_clear(last);
	if (n <= SEARCHED)
		search(&set, fronts, &start);
	for (unsigned k = 0; k < last->n; k++) {
		struct rollout *rollout = &last->rollouts[last->order[k]];

		play(&set, rollout, true);
		if (rollout->late < best->late - (best == &by_score ? much : 0))
			best = rollout;
	}
	for (unsigned j = 0; j < n; j++)
		turns[j] = best->runner[j].turn;
}
