/* SPDX-License-Identifier: Apache-2.0 */
#include "control/share.h"

#include "plan/outlook.h"

#include <math.h>
#include <stddef.h>

#define UNKNOWN_OPS 4u       /* of a job whose steps are not known */
#define UNKNOWN_WAIT_S 0.1   /* ... if no other one wants any within */
#define TAIL_NS 2000000u     /* a request is begun so long before the one before it is over */
#define LEAD_NS 5000000u     /* a turn is given so long before that, and twice the agreeing */
#define HANDOVER_NS 1000000u /* from one to another, and once the agreeing */
#define STUCK_NS 250000000u  /* who is so late in its step does something else */

static const char *const names[SHARE_POLICIES_END] = { [SHARE_SCORE] = "score",
	                                               [SHARE_GREEDY] = "greedy",
	                                               [SHARE_FAIR] = "fair",
	                                               [SHARE_NONE] = "none" };

const char *share_policy_name(enum share_policy sharing)
{
	return names[sharing];
}

/* ---- one job ---- */

void share_learn(struct share_job *job)
{
	for (unsigned i = 0; i < job->ops; i++)
		job->pattern_ops[i] = (struct pattern_op){ .start_s = job->op[i].start_us / 1e6,
			                                   .plain_s = job->op[i].plain_us / 1e6,
			                                   .fast_s = job->op[i].fast_us / 1e6 };
	if (job->ops)
		pattern_close(&job->pattern, job->pattern_ops, job->ops,
		              (double)job->compute / 1e9);
}

/* Is it known where in its step it is? */
static bool is_known(const struct share_job *job)
{
	return job->ops && job->next >= job->base && job->next <= job->base + job->ops;
}

static uint64_t duration(const struct share_job *job, uint64_t request)
{
	const struct wire_turn_op *op = &job->op[(request - job->base) % job->ops];

	return (uint64_t)(job->fast ? op->fast_us : op->plain_us) * 1000;
}

/* When what has begun will be over. */
static uint64_t time_free(const struct share_job *job, uint64_t now)
{
	uint64_t at = job->busy_at ? job->busy_at : now;

	for (uint64_t i = job->finished > job->base ? job->finished : job->base; i < job->next; i++)
		at += duration(job, i);
	return at > now ? at : now;
}

static double seconds(uint64_t at, uint64_t now)
{
	return at > now ? (double)(at - now) / 1e9 : -(double)(now - at) / 1e9;
}

static double lead(const struct share_job *job)
{
	return (double)(LEAD_NS + TAIL_NS + 2 * job->agree_ns + job->early_ns) / 1e9;
}

/* What begins sooner is too soon to be agreed on. */
static double soonest(const struct share_job *job)
{
	return (double)(TAIL_NS + job->agree_ns + job->early_ns) / 1e9;
}

static double handover(const struct share_job *job)
{
	return (double)(HANDOVER_NS + TAIL_NS + job->agree_ns) / 1e9;
}

/* From now on, in seconds. */
static struct outlook_job outlook_of(const struct share_job *job, uint64_t now)
{
	uint64_t given = job->held_to > job->base ? job->held_to - job->base : 0;

	return (struct outlook_job){ .pattern = &job->pattern,
		                     .began_s = seconds(job->began_at, now),
		                     .at = (unsigned)(job->next - job->base),
		                     .free_s = seconds(time_free(job, now), now),
		                     .fixed_s = soonest(job),
		                     .holds = job->held,
		                     .given = given < job->ops ? (unsigned)given : job->ops };
}

/*
 * Should it have begun something long ago? Its program does what it does not do in
 * other steps, and nobody is to wait for it.
 */
static bool is_stuck(const struct share_job *job, uint64_t now)
{
	unsigned at = (unsigned)(job->next - job->base);
	uint64_t due = job->began_at +
	               (at < job->ops ? (uint64_t)job->op[at].start_us * 1000 : job->compute);
	uint64_t free = time_free(job, now);

	return now > due + STUCK_NS && free <= now;
}

static bool takes_part(const struct share_job *job, uint64_t now)
{
	return is_known(job) && job->open && !is_stuck(job, now);
}

/* ---- those who come first ---- */

/* What a job could have, if it goes its own way until then. */
static void wish(const struct share_job *job, uint64_t now, struct outlook_turn *turn)
{
	struct outlook_job it = outlook_of(job, now);
	double free = it.free_s, began = it.began_s;

	*turn = (struct outlook_turn){ 0 };
	for (; turn->step < 2; turn->step++) {
		for (unsigned i = turn->step ? 0 : it.at; i < job->ops; i++) {
			const struct pattern_op *op = &job->pattern_ops[i];
			double posted = began + op->start_s;

			turn->begin_s = free > posted ? free : posted;
			turn->from = i;
			turn->to = job->ops;
			if (turn->begin_s >= soonest(job))
				return;
			free = turn->begin_s + op->plain_s;
		}
		began = free > began + job->pattern.compute_s ? free
		                                              : began + job->pattern.compute_s;
		began = began > 0 ? began : 0;
		free = began;
	}
	turn->to = turn->from = 0;
}

static bool is_due(const struct share_job *job, const struct outlook_turn *turn)
{
	return turn->to > turn->from && turn->begin_s <= lead(job);
}

static bool decide_first(struct share_job *const *jobs, unsigned n, enum share_policy sharing,
                         uint64_t now, struct share_move *move)
{
	const struct share_job *best = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct share_job *job = jobs[i];
		struct outlook_turn turn;
		bool better;

		if (job->held || !takes_part(job, now))
			continue;
		wish(job, now, &turn);
		if (!is_due(job, &turn)) {
			job->wants_since = 0;
			continue;
		}
		if (!job->wants_since)
			job->wants_since = now;
		better = !best || (sharing == SHARE_FAIR ? job->used < best->used
		                                         : job->wants_since < best->wants_since);
		if (!better)
			continue;
		best = job;
		*move = (struct share_move){ i,
			                     job->base + (uint64_t)turn.step * job->ops + turn.from,
			                     job->base + (uint64_t)turn.step * job->ops + turn.to };
	}
	return best != NULL;
}

/* ---- those who gain most ---- */

/* Those who have a turn, and those who have had least, if they are too many. */
static unsigned pick(struct share_job *const *jobs, unsigned n, uint64_t now, unsigned *picked)
{
	unsigned m = 0;

	for (unsigned i = 0; i < n && m < OUTLOOK_JOBS; i++)
		if (jobs[i]->held && is_known(jobs[i]))
			picked[m++] = i;
	for (unsigned i = 0; i < n; i++) {
		unsigned most = 0;

		if (jobs[i]->held || !takes_part(jobs[i], now))
			continue;
		if (m < OUTLOOK_JOBS) {
			picked[m++] = i;
			continue;
		}
		for (unsigned k = 1; k < m; k++)
			if (jobs[picked[k]]->used > jobs[picked[most]]->used)
				most = k;
		if (!jobs[picked[most]]->held && jobs[i]->used < jobs[picked[most]]->used)
			picked[most] = i;
	}
	return m;
}

/* Does a turn that is about to end go on? */
static bool goes_on(const struct share_job *job, const struct outlook_job *state,
                    const struct outlook_turn *turn, struct share_move *move)
{
	if (!job->open || state->given <= state->at || state->given > state->at + 1 || turn->step ||
	    turn->to <= state->given)
		return false;
	move->from = job->base + state->given;
	move->to = job->base + turn->to;
	return true;
}

/* `room`: so many more may have a turn. */
static bool decide_by_gain(struct share_job *const *jobs, unsigned n, unsigned room, uint64_t now,
                           bool *wanted, struct share_move *move)
{
	struct outlook outlook = { .capacity = room };
	struct outlook_job states[OUTLOOK_JOBS];
	struct outlook_turn turns[OUTLOOK_JOBS];
	unsigned picked[OUTLOOK_JOBS], m = pick(jobs, n, now, picked);
	int best = -1;

	if (!m)
		return false;
	for (unsigned i = 0; i < m; i++) {
		const struct share_job *job = jobs[picked[i]];

		states[i] = outlook_of(job, now);
		outlook.capacity += job->held;
		outlook.handover_s = fmax(outlook.handover_s, handover(job));
	}
	outlook_plan(&outlook, states, m, turns);
	for (unsigned i = 0; i < m; i++) {
		const struct share_job *job = jobs[picked[i]];

		move->job = picked[i];
		if (job->held && goes_on(job, &states[i], &turns[i], move))
			return true;
		*wanted |= !job->held && turns[i].to && turns[i].begin_s < UNKNOWN_WAIT_S;
		if (!job->held && job->open && is_due(job, &turns[i]) &&
		    (best < 0 || turns[i].begin_s < turns[best].begin_s))
			best = (int)i;
	}
	if (best >= 0 && room) {
		const struct share_job *job = jobs[picked[best]];
		uint64_t base = job->base + (uint64_t)turns[best].step * job->ops;

		*move = (struct share_move){ picked[best], base + turns[best].from,
			                     base + turns[best].to };
		return true;
	}
	return false;
}

/* ---- all ---- */

/* Where steps are not known, or are not as they were: a few, if it is at work. */
static bool decide_unknown(struct share_job *const *jobs, unsigned n, struct share_move *move)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++)
		if (!jobs[i]->held && jobs[i]->open && !is_known(jobs[i]) && jobs[i]->busy_at &&
		    (best < 0 || jobs[i]->used < jobs[best]->used))
			best = (int)i;
	if (best < 0)
		return false;
	*move = (struct share_move){ (unsigned)best, jobs[best]->next + 1,
		                     jobs[best]->next + 1 + UNKNOWN_OPS };
	return true;
}

bool share_decide(struct share_job *const *jobs, unsigned n, enum share_policy sharing,
                  unsigned capacity, uint64_t now, struct share_move *move)
{
	unsigned holders = 0, room;
	bool wanted = false;

	for (unsigned i = 0; i < n; i++)
		holders += jobs[i]->held;
	room = holders < capacity ? capacity - holders : 0;
	if (sharing == SHARE_SCORE) {
		if (decide_by_gain(jobs, n, room, now, &wanted, move))
			return true;
	} else if (room && decide_first(jobs, n, sharing, now, move)) {
		jobs[move->job]->wants_since = 0;
		return true;
	}
	return room && !wanted && decide_unknown(jobs, n, move);
}
