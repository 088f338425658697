/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/outlook.h"

#include "plan/turn.h"
#include "plan/way.h"

#include <string.h>

#define STEPS 4u     /* of each job are played */
#define BUDGET 2048u /* allreduces, at most: steps may be of very different lengths */
#define DEPTH 64u    /* allreduces, of all jobs, are decided on both ways */
#define WIDTH 8u     /* ways that are kept meanwhile */
#define SEARCHED 4u  /* jobs, at most: with more it would take long */
#define MUCH 0.0005  /* of all steps: so much it has to be worth to differ from the score */

/* ---- by the score ---- */

static struct turn turn_at(const struct way_set *set, const struct way *way, unsigned j)
{
	const struct way_runner *it = &way->runner[j];
	const struct pattern *pattern = set->jobs[j].pattern;
	struct turn turn = turn_of(&pattern->ops[it->at], it->began, it->begin, TURN_FRUGAL);

	if (turn.gain_s < WAY_GAIN_LEAST * pattern->compute_s)
		turn.gain_s = 0;
	return turn;
}

/* Are there others, for all places, who would begin meanwhile and can make more of it? */
static bool is_outdone(const struct way_set *set, const struct way *way)
{
	struct turn until = turn_at(set, way, way->next); /* nobody can begin */
	double now = until.start_s, score = turn_score(&until, now);
	unsigned ahead = 0;

	if (!(until.gain_s > 0))
		return true;
	until.fast_s += set->outlook->handover_s;
	for (unsigned j = 0; j < set->n; j++) {
		struct turn turn;

		if (j == way->next || way->runner[j].begin >= now + until.fast_s)
			continue;
		turn = turn_at(set, way, j);
		ahead += turn_yields(&until, score, &turn, now);
	}
	return ahead >= way_places(set, way);
}

static bool is_played(const struct way_set *set, const struct way *way)
{
	for (unsigned j = 0; j < set->n; j++)
		if (way->runner[j].step < STEPS)
			return false;
	return true;
}

/* On from here, until all have done their steps. `yields`: to those who can make more of it. */
static void play(const struct way_set *set, struct way *way, bool yields)
{
	for (unsigned budget = BUDGET; budget && !is_played(set, way); budget--) {
		const struct way_slot *slot = way_slot(set, way);

		if (slot && yields && !way_is_given(set, way) && is_outdone(set, way))
			slot = NULL;
		way_advance(set, way, way, slot);
	}
}

/* ---- all ways ---- */

/* The best ways after as many allreduces. */
struct front {
	unsigned n;
	unsigned order[WIDTH + 1]; /* the best one first; one more is made to be compared */
	struct way ways[WIDTH + 1];
};

static void front_clear(struct front *front)
{
	front->n = 0;
	for (unsigned i = 0; i <= WIDTH; i++)
		front->order[i] = i;
}

/* Keeps what follows from it where that is among the best, and new. */
static void front_keep(struct front *front, const struct way_set *set, const struct way *from,
                       const struct way_slot *slot)
{
	unsigned spare = front->order[front->n], at = front->n;
	struct way *way = &front->ways[spare];

	way_advance(set, way, from, slot);
	while (at > 0 && way->late < front->ways[front->order[at - 1]].late)
		at--;
	for (unsigned i = at; i > 0 && front->ways[front->order[i - 1]].late == way->late; i--)
		if (way_is_same(set, way, &front->ways[front->order[i - 1]]))
			return;
	memmove(&front->order[at + 1], &front->order[at],
	        (front->n - at) * sizeof(front->order[0]));
	front->order[at] = spare;
	front->n += front->n < WIDTH;
}

/* What may be done with the next allreduce; first what is better, where all else is the same. */
static void front_branch(struct front *front, const struct way_set *set, const struct way *way)
{
	const struct way_slot *slot = way_slot(set, way);

	if (slot)
		front_keep(front, set, way, slot);
	if (!slot || (!way_is_given(set, way) && way_is_contested(set, way)))
		front_keep(front, set, way, NULL);
}

/* Fills the second front, from `start` on. */
static void search(const struct way_set *set, struct front *fronts, const struct way *start)
{
	front_clear(&fronts[0]);
	fronts[0].ways[0] = *start;
	fronts[0].n = 1;
	for (unsigned i = 0; i < DEPTH; i++) {
		const struct front *from = &fronts[i % 2];
		struct front *to = &fronts[!(i % 2)];

		front_clear(to);
		for (unsigned k = 0; k < from->n; k++)
			front_branch(to, set, &from->ways[from->order[k]]);
	}
}

void outlook_plan(const struct outlook *outlook, const struct outlook_job *jobs, unsigned n,
                  struct outlook_turn *turns)
{
	const struct way_set set = { outlook, jobs, n,
		                     outlook->capacity < n ? outlook->capacity : n };
	struct front fronts[2]; /* much of them is never used, and not cleared */
	struct front *last = &fronts[DEPTH % 2];
	struct way start, by_score, all_taken;
	const struct way *best = &by_score;
	double much = 0;

	way_begin(&set, &start);
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
		struct way *way = &last->ways[last->order[k]];

		play(&set, way, true);
		if (way->late < best->late - (best == &by_score ? much : 0))
			best = way;
	}
	for (unsigned j = 0; j < n; j++)
		turns[j] = best->runner[j].turn;
}
