/* SPDX-License-Identifier: Apache-2.0 */
#include "control/share.h"

#include <stddef.h>

#define UNKNOWN_OPS 4u     /* of a job whose steps are not known */
#define MARGIN 64u         /* a part of the step: so much sooner it should be over, among all */
#define OVERTAKES 3.0      /* times as much it has to be worth to end another one's turn */
#define GAIN_LEAST 500000u /* nanoseconds */

static const char *const names[SHARE_POLICIES_END] = { [SHARE_SCORE] = "score",
	                                               [SHARE_GREEDY] = "greedy",
	                                               [SHARE_FAIR] = "fair",
	                                               [SHARE_NONE] = "none" };

const char *share_policy_name(enum share_policy sharing)
{
	return names[sharing];
}

/* ---- one job ---- */

/* The step that the next request is in. */
struct step {
	const struct share_job *job;
	uint64_t base, began; /* its first request; when it begins */
	unsigned at;          /* the first that has not begun */
	uint64_t first, free; /* when what is under way will be over: the first of it, and all */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t duration(const struct share_job *job, uint64_t request, bool fast)
{
	const struct wire_turn_op *op = &job->op[(request - job->base) % job->ops];

	return (uint64_t)(fast ? op->fast_us : op->plain_us) * 1000;
}

/* When what has begun will be over; *first: the first of it, where there are two. */
static uint64_t time_free(const struct share_job *job, uint64_t now, uint64_t *first)
{
	uint64_t at = now;

	*first = now;
	for (uint64_t i = later(job->finished, job->base); i < job->next; i++) {
		uint64_t span = duration(job, i, job->fast);

		if (i == job->finished && job->busy_at && job->busy_at < now)
			span = span > now - job->busy_at ? span - (now - job->busy_at) : 0;
		if (i + 1 == job->next)
			*first = at;
		at += span;
	}
	return at;
}

/*
 * When the step's network is done if requests from `from` to `to` - 1 are
 * aggregated. A worker has two under way: so it is found by which way one goes
 * when the last but one before it is over.
 */
static uint64_t run(const struct step *step, unsigned from, unsigned to, struct share_wish *wish)
{
	const struct share_job *job = step->job;
	uint64_t at = step->free, before = step->first;

	for (unsigned i = step->at; i < job->ops; i++) {
		uint64_t posted = step->began + (uint64_t)job->op[i].start_us * 1000;
		uint64_t begin = later(at, posted);

		if (i == from && wish) {
			wish->begin = begin;
			wish->by = later(before, posted);
		}
		before = at;
		at = begin + duration(job, job->base + i, i >= from && i < to);
		if (i + 1 == to && wish)
			wish->end = at;
	}
	return at;
}

/* It begins when this one is over. */
static void next_step(struct step *step, uint64_t now)
{
	const struct share_job *job = step->job;
	uint64_t over = run(step, 0, 0, NULL);

	step->began = later(later(over, step->began + job->compute), now);
	step->base += job->ops;
	step->free = step->first = step->began;
	step->at = 0;
}

static void find_step(const struct share_job *job, uint64_t now, struct step *step)
{
	*step = (struct step){ .job = job,
		               .base = job->base,
		               .began = job->began_at,
		               .at = (unsigned)(job->next - job->base) };
	step->free = time_free(job, now, &step->first);
	if (step->at == job->ops)
		next_step(step, now);
}

/* The first request that there is still time to agree about. */
static unsigned first_possible(const struct step *step, uint64_t soonest)
{
	unsigned i = step->at;

	for (; i < step->job->ops; i++) {
		struct share_wish wish = { 0 };

		run(step, i, i, &wish);
		if (wish.by >= soonest)
			break;
	}
	return i;
}

/* The end of the fewest requests from this one on that will do to be done by then; or of all. */
static unsigned fewest(const struct step *step, unsigned from, uint64_t goal)
{
	unsigned low = from + 1, high = step->job->ops;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (run(step, from, middle, NULL) <= goal)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Where the step would end sooner, all that is left of it; when those of it will
 * be over that are needed for that tells what the gain costs.
 */
static void wish_gain(const struct step *step, unsigned sharers, uint64_t soonest,
                      struct share_wish *wish)
{
	const struct share_job *job = step->job;
	uint64_t ready = step->began + job->compute, margin = job->compute / (MARGIN * sharers);
	uint64_t plain = later(run(step, 0, 0, NULL), ready), best, goal;
	unsigned first = first_possible(step, soonest);

	if (first == job->ops)
		return;
	best = run(step, first, job->ops, NULL);
	if (plain < later(best, ready) + GAIN_LEAST)
		return;
	wish->gain = (double)(plain - later(best, ready)) / 1e9;
	goal = later(best + (plain - later(best, ready)) / 64, ready - margin);
	run(step, first, fewest(step, first, goal), wish);
	wish->from = step->base + first;
	wish->to = step->base + job->ops; /* all, as long as nobody else has use for it */
}

void share_wish(const struct share_job *job, enum share_policy sharing, unsigned sharers,
                uint64_t agree_ns, uint64_t now, struct share_wish *wish)
{
	struct step step;

	*wish = (struct share_wish){ 0 };
	if (!job->ops || job->next < job->base || job->next > job->base + job->ops) {
		/* Where steps are not known, or are not as they were: a few, if it is at work. */
		if (job->busy_at)
			*wish = (struct share_wish){ .from = job->next + 1,
				                     .to = job->next + 1 + UNKNOWN_OPS,
				                     .begin = now,
				                     .by = now,
				                     .end = now + 1 };
		return;
	}
	find_step(job, now, &step);
	if (first_possible(&step, now + agree_ns) == job->ops)
		next_step(&step, now); /* it is too late in this one */

	if (sharing == SHARE_SCORE) {
		wish_gain(&step, sharers ? sharers : 1, now + agree_ns, wish);
		return;
	}
	step.at = first_possible(&step, now + agree_ns);
	if (step.at == job->ops)
		return;
	run(&step, step.at, job->ops, wish);
	wish->from = step.base + step.at;
	wish->to = step.base + job->ops;
}

/* ---- among jobs ---- */

/* What a job has missed counts too: else two whose steps are in time with each other stay so. */
static double score(const struct share_job *job, const struct share_wish *wish, uint64_t now)
{
	return (wish->gain + job->debt) * 1e9 / (double)(wish->end > now ? wish->end - now : 1);
}

bool share_overtakes(const struct share_job *job, const struct share_wish *wish,
                     const struct share_wish *holder, uint64_t now)
{
	const struct share_job nothing_missed = { 0 };

	return holder->from >= holder->to ||
	       score(job, wish, now) > OVERTAKES * score(&nothing_missed, holder, now);
}

void share_note(struct share_job *job, const struct share_wish *wish, bool served)
{
	if (job->base != job->noted_base) {
		job->debt = job->served ? 0 : job->debt + job->peak;
		job->noted_base = job->base;
		job->served = false;
		job->peak = 0;
	}
	job->served |= served;
	if (wish->gain > job->peak)
		job->peak = wish->gain;
}

static bool is_time(const struct share_wish *wish, uint64_t agree_ns, uint64_t now)
{
	return wish->from < wish->to && wish->by <= now + share_lead(agree_ns);
}

int share_choose(const struct share_job *const *jobs, const struct share_wish *wishes, unsigned n,
                 enum share_policy sharing, uint64_t agree_ns, uint64_t now)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++) {
		bool better;

		if (!is_time(&wishes[i], agree_ns, now))
			continue;
		if (best < 0)
			better = true;
		else if (sharing == SHARE_SCORE)
			better = score(jobs[i], &wishes[i], now) >
			         score(jobs[best], &wishes[best], now);
		else if (sharing == SHARE_FAIR)
			better = jobs[i]->used < jobs[best]->used;
		else
			better = jobs[i]->wants_since < jobs[best]->wants_since;
		if (better)
			best = (int)i;
	}
	return best;
}
