/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/way.h"

#include <math.h>
#include <string.h>

/* ---- one job ---- */

/* When its next allreduce begins, and how late the job is at best. */
static void find_next(const struct way_set *set, struct way_runner *it, unsigned j)
{
	const struct pattern *pattern = set->jobs[j].pattern;
	const struct pattern_op *op;
	double now = set->outlook->now_s;

	if (it->at == pattern->n) {
		it->began = it->free = fmax(fmax(it->free, it->began + pattern->compute_s), now);
		it->at = 0;
		it->step++;
		it->is_known |= it->turn.to > 0;
	}
	op = &pattern->ops[it->at];
	it->begin = fmax(fmax(it->free, it->began + op->start_s), now);
	it->late = fmax(it->begin + op->fast_s + op->fast_rest_s, it->began + op->fast_floor_s) -
	           it->step * pattern->fast_s;
}

/* Would it be of use to aggregate what begins next? */
static bool is_useful(const struct way_set *set, const struct way_runner *it, unsigned j)
{
	const struct pattern *pattern = set->jobs[j].pattern;

	/* If later ones are not aggregated it gains most: nothing is nothing. */
	return pattern_gain(&pattern->ops[it->at], it->began, it->begin) >
	       WAY_GAIN_LEAST * pattern->compute_s;
}

/* Its first turn is what is wanted of all this. */
static void note(struct way_runner *it, bool is_fast, double end)
{
	struct outlook_turn *turn = &it->turn;

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

/* ---- all of them ---- */

/* Who is next, and how late all are. */
static void find_first(struct way *way, unsigned n)
{
	way->next = 0;
	way->late = 0;
	for (unsigned j = 0; j < n; j++) {
		way->late += way->runner[j].late;
		if (way->runner[j].begin < way->runner[way->next].begin)
			way->next = j;
	}
}

void way_begin(const struct way_set *set, struct way *way)
{
	unsigned held = 0;

	for (unsigned j = 0; j < set->n; j++) {
		const struct outlook_job *job = &set->jobs[j];

		way->slots[j] = (struct way_slot){ 0, set->n };
		if (job->holds)
			way->slots[held++] = (struct way_slot){ job->free_s, j };
		way->runner[j] = (struct way_runner){ .began = job->began_s,
			                              .free = job->free_s,
			                              .at = job->at };
		find_next(set, &way->runner[j], j);
	}
	find_first(way, set->n);
}

void way_advance(const struct way_set *set, struct way *way, const struct way *from,
                 const struct way_slot *slot)
{
	const unsigned j = from->next;
	struct way_runner *it = &way->runner[j];
	const struct pattern_op *op;

	if (way != from) {
		memcpy(way->runner, from->runner, set->n * sizeof(way->runner[0]));
		memcpy(way->slots, from->slots, set->n * sizeof(way->slots[0]));
	}
	op = &set->jobs[j].pattern->ops[it->at];
	it->free = it->begin + (slot ? op->fast_s : op->plain_s);
	note(it, slot != NULL, it->free);
	if (slot)
		way->slots[slot - from->slots] = (struct way_slot){ it->free, j };
	it->at++;
	find_next(set, it, j);
	find_first(way, set->n);
}

static bool is_free(const struct way_set *set, const struct way_slot *slot, double at)
{
	return slot->owner == set->n || slot->until + set->outlook->handover_s <= at;
}

bool way_is_same(const struct way_set *set, const struct way *a, const struct way *b)
{
	double now = a->runner[a->next].begin;

	for (unsigned j = 0; j < set->n; j++) {
		const struct way_runner *x = &a->runner[j], *y = &b->runner[j];

		if (x->begin != y->begin || x->began != y->began || x->at != y->at ||
		    x->step != y->step)
			return false;
	}
	for (unsigned i = 0; i < set->places; i++) {
		const struct way_slot *x = &a->slots[i], *y = &b->slots[i];
		bool free = is_free(set, x, now);

		if (free != is_free(set, y, now) ||
		    (!free && (x->until != y->until || x->owner != y->owner)))
			return false;
	}
	return true;
}

/* ---- the next allreduce ---- */

bool way_is_given(const struct way_set *set, const struct way *way)
{
	const struct way_runner *it = &way->runner[way->next];
	const struct outlook_job *job = &set->jobs[way->next];

	return job->holds && !it->step && it->at < job->given;
}

const struct way_slot *way_slot(const struct way_set *set, const struct way *way)
{
	const struct way_runner *it = &way->runner[way->next];
	const struct way_slot *found = NULL;

	if (!way_is_given(set, way) &&
	    (it->begin < set->jobs[way->next].fixed_s || !is_useful(set, it, way->next)))
		return NULL;
	for (unsigned i = 0; i < set->places; i++) {
		const struct way_slot *slot = &way->slots[i];

		if (slot->owner == way->next)
			return slot;
		if (!found && is_free(set, slot, it->begin))
			found = slot;
	}
	return found;
}

unsigned way_places(const struct way_set *set, const struct way *way)
{
	unsigned n = 0;

	for (unsigned i = 0; i < set->places; i++)
		n += way->slots[i].owner == way->next ||
		     is_free(set, &way->slots[i], way->runner[way->next].begin);
	return n;
}

bool way_is_contested(const struct way_set *set, const struct way *way)
{
	const struct way_runner *it = &way->runner[way->next];
	double until = it->begin + set->jobs[way->next].pattern->ops[it->at].fast_s +
	               set->outlook->handover_s;
	unsigned others = 0;

	for (unsigned j = 0; j < set->n; j++)
		others += j != way->next && way->runner[j].begin < until &&
		          set->jobs[j].pattern->plain_s > set->jobs[j].pattern->fast_s;
	return others >= way_places(set, way);
}
