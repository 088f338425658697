/* SPDX-License-Identifier: Apache-2.0 */
#include "control/share.h"

#include <stddef.h>

#define UNKNOWN_OPS 4u /* of a job whose steps are not known */
#define MARGIN 4u      /* a part of the step: so much sooner it should be over, among all */
#define GAIN_LEAST 0.0005

static const char *const names[SHARINGS_END] = { [SHARING_SCORE] = "score",
	                                         [SHARING_GREEDY] = "greedy",
	                                         [SHARING_FAIR] = "fair",
	                                         [SHARING_NONE] = "none" };

const char *sharing_name(enum sharing sharing)
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
 * When the step's network is done if requests from `fast` on are aggregated. A
 * worker has two under way: so it is found by which way one goes when the last
 * but one before it is over.
 */
static uint64_t run(const struct step *step, unsigned fast, struct share_wish *wish)
{
	const struct share_job *job = step->job;
	uint64_t at = step->free, before = step->first;

	for (unsigned i = step->at; i < job->ops; i++) {
		uint64_t posted = step->began + (uint64_t)job->op[i].start_us * 1000;
		uint64_t begin = later(at, posted);

		if (i == fast && wish) {
			wish->begin = begin;
			wish->by = later(before, posted);
		}
		before = at;
		at = begin + duration(job, job->base + i, i >= fast);
	}
	return at;
}

static void find_step(const struct share_job *job, uint64_t now, struct step *step)
{
	*step = (struct step){ .job = job,
		               .base = job->base,
		               .began = job->began_at,
		               .at = (unsigned)(job->next - job->base) };
	step->free = time_free(job, now, &step->first);
	if (step->at < job->ops)
		return;
	/* The next one begins when this one is over. */
	step->began = later(later(step->free, job->began_at + job->compute), now);
	step->base += job->ops;
	step->free = step->first = step->began;
	step->at = 0;
}

/* The last requests that make the step as short as all would. */
static void wish_tail(const struct step *step, unsigned sharers, uint64_t soonest,
                      struct share_wish *wish)
{
	const struct share_job *job = step->job;
	uint64_t ready = step->began + job->compute, margin = job->compute / (MARGIN * sharers);
	uint64_t plain = later(run(step, job->ops, NULL), ready);
	uint64_t best = run(step, step->at, NULL), goal = later(best, ready - margin);
	unsigned low = step->at, high = job->ops - 1;

	wish->gain = (double)(plain - later(best, ready)) / 1e9;
	if (wish->gain < GAIN_LEAST)
		return;
	while (low < high) { /* the latest one that reaches the goal */
		unsigned middle = (low + high + 1) / 2;

		if (run(step, middle, NULL) <= goal)
			low = middle;
		else
			high = middle - 1;
	}
	wish->end = run(step, low, wish);
	if (wish->by < soonest && low + 1 < job->ops) /* it would be too late for that one */
		wish->end = run(step, ++low, wish);
	wish->from = step->base + low;
	wish->to = step->base + job->ops;
}

void share_wish(const struct share_job *job, enum sharing sharing, unsigned sharers,
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
	if (sharing == SHARING_SCORE) {
		wish_tail(&step, sharers ? sharers : 1, now + agree_ns, wish);
		return;
	}
	wish->end = run(&step, step.at, wish);
	if (wish->by < now + agree_ns && step.at + 1 < job->ops)
		wish->end = run(&step, ++step.at, wish);
	wish->from = step.base + step.at;
	wish->to = step.base + job->ops;
}

/* ---- among jobs ---- */

static double score(const struct share_wish *wish, uint64_t now)
{
	return wish->gain * 1e9 / (double)(wish->end > now ? wish->end - now : 1);
}

static bool is_time(const struct share_wish *wish, uint64_t agree_ns, uint64_t now)
{
	return wish->from < wish->to && wish->by <= now + share_lead(agree_ns);
}

static bool yields(const struct share_wish *wishes, unsigned n, unsigned mine, uint64_t now)
{
	for (unsigned i = 0; i < n; i++)
		if (i != mine && wishes[i].from < wishes[i].to &&
		    wishes[i].begin < wishes[mine].end &&
		    score(&wishes[i], now) > score(&wishes[mine], now))
			return true;
	return false;
}

int share_choose(const struct share_job *const *jobs, const struct share_wish *wishes, unsigned n,
                 enum sharing sharing, uint64_t agree_ns, uint64_t now)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++) {
		bool better;

		if (!is_time(&wishes[i], agree_ns, now))
			continue;
		if (best < 0)
			better = true;
		else if (sharing == SHARING_SCORE)
			better = score(&wishes[i], now) > score(&wishes[best], now);
		else if (sharing == SHARING_FAIR)
			better = jobs[i]->used < jobs[best]->used;
		else
			better = jobs[i]->wants_since < jobs[best]->wants_since;
		if (better)
			best = (int)i;
	}
	if (best >= 0 && sharing == SHARING_SCORE && yields(wishes, n, (unsigned)best, now))
		return -1;
	return best;
}
