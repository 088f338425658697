/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/turn_policy.h"

#include "plan/turns/outlook.h"

#include <math.h>
#include <stddef.h>

#define UNKNOWN_OPS 4u     /* requests granted to a job with unknown steps */
#define UNKNOWN_WAIT_S 0.1 /* seconds: such a job gets them if no other job wants a turn within */
#define TAIL_NS 2000000u   /* 2 ms: a request may begin this long before the previous one ends */
/* 5 ms, plus twice agree_ns: how long before its start a turn is granted */
#define LEAD_NS 5000000u
#define HANDOVER_NS 1000000u /* 1 ms, plus agree_ns: gap between the turns of two jobs */
#define SPREAD_STEPS 8u      /* changes in the mean of turn_job.spread */
#define SPREAD_LEAST 0.01    /* a job whose computation changes by more has steps that vary */
#define STUCK_NS 250000000u  /* 250 ms: a job so late in its step does something else */

static const char *const names[TURN_POLICIES_END] = { [TURN_POLICY_SCORE] = "score",
	                                              [TURN_POLICY_GREEDY] = "greedy",
	                                              [TURN_POLICY_FAIR] = "fair",
	                                              [TURN_POLICY_NONE] = "none" };

const char *turn_policy_name(enum turn_policy policy)
{
	return names[policy];
}

/* ---- one job ---- */

void turn_policy_learn(struct turn_job *job)
{
	for (unsigned i = 0; i < job->ops; i++)
		job->pattern_ops[i] = (struct pattern_op){ .start_s = job->op[i].start_us / 1e6,
			                                   .plain_s = job->op[i].plain_us / 1e6,
			                                   .fast_s = job->op[i].fast_us / 1e6 };
	if (job->ops && job->pattern.compute_s > 0) {
		double change = fabs((double)job->compute / 1e9 / job->pattern.compute_s - 1);

		if (change > 0)
			job->spread += (fmin(change, 1) - job->spread) / SPREAD_STEPS;
	}
	if (job->ops)
		pattern_close(&job->pattern, job->pattern_ops, job->ops,
		              (double)job->compute / 1e9);
}

/* Is its position in the step known? */
static bool is_known(const struct turn_job *job)
{
	return job->ops && job->next >= job->base && job->next <= job->base + job->ops;
}

static uint64_t duration(const struct turn_job *job, uint64_t request)
{
	const struct wire_turn_op *op = &job->op[(request - job->base) % job->ops];

	return (uint64_t)(job->fast ? op->fast_us : op->plain_us) * 1000;
}

/* When the requests in flight will be over. */
static uint64_t time_free(const struct turn_job *job, uint64_t now)
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

static double lead(const struct turn_job *job)
{
	return (double)(LEAD_NS + TAIL_NS + 2 * job->agree_ns + job->early_ns) / 1e9;
}

/* A turn that begins sooner cannot be agreed on in time. */
static double soonest(const struct turn_job *job)
{
	return (double)(TAIL_NS + job->agree_ns + job->early_ns) / 1e9;
}

static double handover(const struct turn_job *job)
{
	return (double)(HANDOVER_NS + TAIL_NS + job->agree_ns) / 1e9;
}

/* In seconds from now. */
static struct outlook_job outlook_of(const struct turn_job *job, uint64_t now)
{
	uint64_t given = job->held_to > job->base ? job->held_to - job->base : 0;

	return (struct outlook_job){ .pattern = &job->pattern,
		                     .began_s = seconds(job->began_at, now),
		                     .pace = 1,
		                     .at = (unsigned)(job->next - job->base),
		                     .free_s = seconds(time_free(job, now), now),
		                     .fixed_s = soonest(job),
		                     .holds = job->held,
		                     .given = given < job->ops ? (unsigned)given : job->ops };
}

/*
 * True: its next request is overdue. The program does something unusual in this step, so other jobs
 * should not wait for it.
 */
static bool is_stuck(const struct turn_job *job, uint64_t now)
{
	unsigned at = (unsigned)(job->next - job->base);
	uint64_t due = job->began_at +
	               (at < job->ops ? (uint64_t)job->op[at].start_us * 1000 : job->compute);
	uint64_t free = time_free(job, now);

	return now > due + STUCK_NS && free <= now;
}

static bool takes_part(const struct turn_job *job, uint64_t now)
{
	return is_known(job) && job->open && !is_stuck(job, now);
}

/* ---- greedy and fair ---- */

/* The first turn that the job could use, if its earlier requests go by its own trees. */
static void wish(const struct turn_job *job, uint64_t now, struct outlook_turn *turn)
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

static bool is_due(const struct turn_job *job, const struct outlook_turn *turn)
{
	return turn->to > turn->from && turn->begin_s <= lead(job);
}

static bool decide_first(struct turn_job *const *jobs, unsigned n, enum turn_policy policy,
                         uint64_t now, struct turn_grant *grant)
{
	const struct turn_job *best = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct turn_job *job = jobs[i];
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
		better = !best ||
		         (policy == TURN_POLICY_FAIR ? job->used < best->used
		                                     : job->wants_since < best->wants_since);
		if (!better)
			continue;
		best = job;
		*grant =
			(struct turn_grant){ i,
			                     job->base + (uint64_t)turn.step * job->ops + turn.from,
			                     job->base + (uint64_t)turn.step * job->ops + turn.to };
	}
	return best != NULL;
}

/* ---- score ---- */

/* Picks the holders. If there are too many other jobs, picks those that have used least. */
static unsigned pick(struct turn_job *const *jobs, unsigned n, uint64_t now, unsigned *picked)
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

/* Should a turn that is about to end be extended? */
static bool goes_on(const struct turn_job *job, const struct outlook_job *state,
                    const struct outlook_turn *turn, struct turn_grant *grant)
{
	if (!job->open || state->given <= state->at || state->given > state->at + 1 || turn->step ||
	    turn->to <= state->given)
		return false;
	grant->from = job->base + state->given;
	grant->to = job->base + turn->to;
	return true;
}

/* `room`: how many more jobs may hold a turn. */
static bool decide_by_gain(struct turn_job *const *jobs, unsigned n, unsigned room, uint64_t now,
                           bool *wanted, struct turn_grant *grant)
{
	struct outlook outlook = { .capacity = room };
	struct outlook_job states[OUTLOOK_JOBS];
	struct outlook_turn turns[OUTLOOK_JOBS];
	unsigned picked[OUTLOOK_JOBS], m = pick(jobs, n, now, picked);
	int best = -1;

	if (!m)
		return false;
	for (unsigned i = 0; i < m; i++) {
		const struct turn_job *job = jobs[picked[i]];

		states[i] = outlook_of(job, now);
		outlook.capacity += job->held;
		outlook.varies |= job->spread > SPREAD_LEAST;
		outlook.handover_s = fmax(outlook.handover_s, handover(job));
	}
	outlook_plan(&outlook, states, m, turns);
	for (unsigned i = 0; i < m; i++) {
		const struct turn_job *job = jobs[picked[i]];

		grant->job = picked[i];
		if (job->held && goes_on(job, &states[i], &turns[i], grant))
			return true;
		*wanted |= !job->held && turns[i].to && turns[i].begin_s < UNKNOWN_WAIT_S;
		if (!job->held && job->open && is_due(job, &turns[i]) &&
		    (best < 0 || turns[i].begin_s < turns[best].begin_s))
			best = (int)i;
	}
	if (best >= 0 && room) {
		const struct turn_job *job = jobs[picked[best]];
		uint64_t base = job->base + (uint64_t)turns[best].step * job->ops;

		*grant = (struct turn_grant){ picked[best], base + turns[best].from,
			                      base + turns[best].to };
		return true;
	}
	return false;
}

/* ---- all ---- */

/* A job with unknown or changed steps gets a few requests while it is active. */
static bool decide_unknown(struct turn_job *const *jobs, unsigned n, struct turn_grant *grant)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++)
		if (!jobs[i]->held && jobs[i]->open && !is_known(jobs[i]) && jobs[i]->busy_at &&
		    (best < 0 || jobs[i]->used < jobs[best]->used))
			best = (int)i;
	if (best < 0)
		return false;
	*grant = (struct turn_grant){ (unsigned)best, jobs[best]->next + 1,
		                      jobs[best]->next + 1 + UNKNOWN_OPS };
	return true;
}

bool turn_policy_decide(struct turn_job *const *jobs, unsigned n, enum turn_policy policy,
                        unsigned capacity, uint64_t now, struct turn_grant *grant)
{
	unsigned holders = 0, room;
	bool wanted = false;

	for (unsigned i = 0; i < n; i++)
		holders += jobs[i]->held;
	room = holders < capacity ? capacity - holders : 0;
	if (policy == TURN_POLICY_SCORE) {
		if (decide_by_gain(jobs, n, room, now, &wanted, grant))
			return true;
	} else if (room && decide_first(jobs, n, policy, now, grant)) {
		jobs[grant->job]->wants_since = 0;
		return true;
	}
	return room && !wanted && decide_unknown(jobs, n, grant);
}
