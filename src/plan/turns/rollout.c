/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/turns/rollout.h"

#include <math.h>
#include <string.h>

/* ---- one job ---- */

/* Finds when the job's next allreduce starts, and how late the job is at best. */
static void find_next(const struct rollout_set *set, struct rollout_runner *it, unsigned j)
{
	const struct pattern *pattern = set->jobs[j].pattern;
	const struct pattern_op *op;
	double now = set->outlook->now_s, pace = rollout_pace(set, it, j);

	if (it->at == pattern->n) {
		it->began = it->free =
			fmax(fmax(it->free, it->began + pace * pattern->compute_s), now);
		it->at = 0;
		it->step++;
		it->is_known |= it->turn.to > 0;
		pace = 1;
	}
	op = &pattern->ops[it->at];
	it->begin = fmax(fmax(it->free, it->began + pace * op->start_s), now);
	it->late = fmax(it->begin + op->fast_s + op->fast_rest_s,
	                pattern_floor_fast(op, it->began, pace)) -
	           it->step * pattern->fast_s;
}

/* Is aggregating the job's next allreduce useful? */
static bool is_useful(const struct rollout_set *set, const struct rollout_runner *it, unsigned j)
{
	const struct pattern *pattern = set->jobs[j].pattern;

	/*
	 * The gain is highest if later allreduces are not aggregated. If even that is too little,
	 * nothing helps.
	 */
	return pattern_gain(&pattern->ops[it->at], it->began, it->begin, rollout_pace(set, it, j)) >
	       ROLLOUT_GAIN_LEAST * pattern->compute_s;
}

/* Records the job's first turn, which is the result of the rollout. */
static void note(struct rollout_runner *it, bool is_fast, double end)
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

/* ---- all jobs ---- */

/* Finds the job that starts next, and how late all jobs are in sum. */
static void find_first(struct rollout *rollout, unsigned n)
{
	rollout->next = 0;
	rollout->late = 0;
	for (unsigned j = 0; j < n; j++) {
		rollout->late += rollout->runner[j].late;
		if (rollout->runner[j].begin < rollout->runner[rollout->next].begin)
			rollout->next = j;
	}
}

void rollout_begin(const struct rollout_set *set, struct rollout *rollout)
{
	unsigned held = 0;

	for (unsigned j = 0; j < set->n; j++) {
		const struct outlook_job *job = &set->jobs[j];

		rollout->slots[j] = (struct rollout_slot){ 0, set->n };
		if (job->holds)
			rollout->slots[held++] = (struct rollout_slot){ job->free_s, j };
		rollout->runner[j] = (struct rollout_runner){ .began = job->began_s,
			                                      .free = job->free_s,
			                                      .at = job->at };
		find_next(set, &rollout->runner[j], j);
	}
	find_first(rollout, set->n);
}

void rollout_advance(const struct rollout_set *set, struct rollout *rollout,
                     const struct rollout *from, const struct rollout_slot *slot)
{
	const unsigned j = from->next;
	struct rollout_runner *it = &rollout->runner[j];
	const struct pattern_op *op;

	if (rollout != from) {
		memcpy(rollout->runner, from->runner, set->n * sizeof(rollout->runner[0]));
		memcpy(rollout->slots, from->slots, set->n * sizeof(rollout->slots[0]));
	}
	op = &set->jobs[j].pattern->ops[it->at];
	it->free = it->begin + (slot ? op->fast_s : op->plain_s);
	note(it, slot != NULL, it->free);
	if (slot)
		rollout->slots[slot - from->slots] = (struct rollout_slot){ it->free, j };
	it->at++;
	find_next(set, it, j);
	find_first(rollout, set->n);
}

static bool is_free(const struct rollout_set *set, const struct rollout_slot *slot, double at)
{
	return slot->owner == set->n || slot->until + set->outlook->handover_s <= at;
}

bool rollout_is_same(const struct rollout_set *set, const struct rollout *a,
                     const struct rollout *b)
{
	double now = a->runner[a->next].begin;

	for (unsigned j = 0; j < set->n; j++) {
		const struct rollout_runner *x = &a->runner[j], *y = &b->runner[j];

		if (x->begin != y->begin || x->began != y->began || x->at != y->at ||
		    x->step != y->step)
			return false;
	}
	for (unsigned i = 0; i < set->places; i++) {
		const struct rollout_slot *x = &a->slots[i], *y = &b->slots[i];
		bool free = is_free(set, x, now);

		if (free != is_free(set, y, now) ||
		    (!free && (x->until != y->until || x->owner != y->owner)))
			return false;
	}
	return true;
}

/* ---- the next allreduce ---- */

bool rollout_is_given(const struct rollout_set *set, const struct rollout *rollout)
{
	const struct rollout_runner *it = &rollout->runner[rollout->next];
	const struct outlook_job *job = &set->jobs[rollout->next];

	return job->holds && !it->step && it->at < job->given;
}

const struct rollout_slot *rollout_slot(const struct rollout_set *set,
                                        const struct rollout *rollout)
{
	const struct rollout_runner *it = &rollout->runner[rollout->next];
	const struct rollout_slot *found = NULL;

	if (!rollout_is_given(set, rollout) &&
	    (it->begin < set->jobs[rollout->next].fixed_s ||
	     (!is_useful(set, it, rollout->next) &&
	      (!set->outlook->varies || rollout_is_contested(set, rollout)))))
		return NULL;
	for (unsigned i = 0; i < set->places; i++) {
		const struct rollout_slot *slot = &rollout->slots[i];

		if (slot->owner == rollout->next)
			return slot;
		if (!found && is_free(set, slot, it->begin))
			found = slot;
	}
	return found;
}

unsigned rollout_places(const struct rollout_set *set, const struct rollout *rollout)
{
	unsigned n = 0;

	for (unsigned i = 0; i < set->places; i++)
		n += rollout->slots[i].owner == rollout->next ||
		     is_free(set, &rollout->slots[i], rollout->runner[rollout->next].begin);
	return n;
}

bool rollout_is_contested(const struct rollout_set *set, const struct rollout *rollout)
{
	const struct rollout_runner *it = &rollout->runner[rollout->next];
	double until = it->begin + set->jobs[rollout->next].pattern->ops[it->at].fast_s +
	               set->outlook->handover_s;
	unsigned others = 0;

	for (unsigned j = 0; j < set->n; j++)
		others += j != rollout->next && rollout->runner[j].begin < until &&
		          set->jobs[j].pattern->plain_s > set->jobs[j].pattern->fast_s;
	return others >= rollout_places(set, rollout);
}
