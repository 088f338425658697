/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are results lost because too much is under way? What receives them holds a
 * few hundred packets where XDP sent them (a veth's ring has 256), and loses
 * what comes on top of that; a link that loses by itself loses as much whatever
 * is under way. The difference is found by trying: where results are lost,
 * little is under way for a while. If hardly any are lost then, it may be more
 * and more until that is too much, and after that about as much as was right;
 * if as many are lost as before, all is as it was, and that is not tried again
 * for long. Pure.
 */
#ifndef TRIB_PATH_NARROW_H
#define TRIB_PATH_NARROW_H

#include <stdbool.h>
#include <stdint.h>

#define NARROW_LEAST 32u
#define NARROW_WALL 512u  /* twice what a ring holds: half of it is soon allowed again, */
#define NARROW_STEP 8u    /* more than that in steps of a 32nd, and no more than so many */
#define NARROW_MOST 8192u /* flights allow no more by themselves */
#define NARROW_NONE UINT32_MAX
#define NARROW_LOOK 512u    /* results to judge by, */
#define NARROW_BEFORE 2048u /* before a trial, */
#define NARROW_TRIAL 1024u  /* and at it */
#define NARROW_MUCH 0.02    /* more are lost than where all is well */
#define NARROW_USELESS 4u   /* looks in a row at the least, with losses */
/* Results from a trial in vain to the next; each time four times as many. */
#define NARROW_REST_MIN (1u << 16)
#define NARROW_REST_MAX (1u << 26)

enum narrow_state {
	NARROW_OPEN,   /* other limits count */
	NARROW_SEEING, /* the same, as long as it takes to see how many are lost */
	NARROW_TRYING, /* the least */
	NARROW_KEPT,   /* that has helped */
};

struct narrow {
	enum narrow_state state;
	uint32_t cap;   /* of packets under way */
	uint32_t wall;  /* what was too much the last time */
	uint64_t until; /* results of fragments below left before the cap was what it is */
	uint32_t seen, lost;
	uint32_t useless;
	uint32_t rest, resting; /* results until a trial may begin; how many the last time */
	double share;           /* lost, smoothed, while other limits count; */
	double before;          /* before the trial; */
	double least;           /* lost at the trial: the link's own */
};

static inline void narrow_init(struct narrow *narrow)
{
	*narrow = (struct narrow){ .cap = NARROW_NONE, .resting = NARROW_REST_MIN / 4 };
}

static inline void narrow_open(struct narrow *narrow)
{
	narrow->state = NARROW_OPEN;
	narrow->cap = NARROW_NONE;
	narrow->share = 0;
}

/* It did not help, or does not any more. */
static inline void narrow_give_up(struct narrow *narrow)
{
	narrow_open(narrow);
	narrow->resting =
		narrow->resting < NARROW_REST_MAX / 4 ? 4 * narrow->resting : NARROW_REST_MAX;
	narrow->rest = narrow->resting;
}

static inline void narrow_look_open(struct narrow *narrow, double share)
{
	narrow->rest -= narrow->rest < NARROW_LOOK ? narrow->rest : NARROW_LOOK;
	/* Those that were lost come in heaps. */
	narrow->share += (share - narrow->share) / 16;
	if (narrow->share <= NARROW_MUCH || narrow->rest)
		return;
	narrow->state = NARROW_SEEING;
}

static inline void narrow_look_before(struct narrow *narrow, double share)
{
	if (share <= NARROW_MUCH) { /* that was all */
		narrow_open(narrow);
		return;
	}
	narrow->state = NARROW_TRYING;
	narrow->before = share;
	narrow->cap = NARROW_LEAST;
	narrow->wall = NARROW_WALL;
}

static inline void narrow_look_trial(struct narrow *narrow, double share)
{
	if (share > narrow->before / 3) {
		narrow_give_up(narrow);
		return;
	}
	narrow->state = NARROW_KEPT;
	narrow->least = share;
	narrow->useless = 0;
}

/* Fast where nothing is known, slowly where it may be too much. */
static inline void narrow_widen(struct narrow *narrow)
{
	uint32_t step = narrow->cap / 32;

	narrow->useless = 0;
	if (narrow->cap <= narrow->wall / 4)
		narrow->cap *= 2;
	else
		narrow->cap += step < NARROW_STEP ? step : NARROW_STEP;
	if (narrow->cap <= NARROW_MOST)
		return;
	narrow_open(narrow);
	narrow->resting = NARROW_REST_MIN / 4;
}

static inline void narrow_look_kept(struct narrow *narrow, double share)
{
	if (share <= 1.5 * narrow->least + NARROW_MUCH) {
		narrow_widen(narrow);
		return;
	}
	narrow->useless += narrow->cap == NARROW_LEAST && share > narrow->before / 2;
	if (narrow->useless == NARROW_USELESS) {
		narrow_give_up(narrow);
		return;
	}
	narrow->wall = narrow->cap;
	narrow->cap = narrow->cap / 2 > NARROW_LEAST ? narrow->cap / 2 : NARROW_LEAST;
}

/* A fragment's result has come, lost before or not; what has been sent is below `sent`. */
static inline void narrow_count(struct narrow *narrow, bool lost, uint64_t sent)
{
	static const uint32_t enough[] = { NARROW_LOOK, NARROW_BEFORE, NARROW_TRIAL, NARROW_LOOK };
	uint32_t cap = narrow->cap;
	double share;

	narrow->seen++;
	narrow->lost += lost;
	if (narrow->seen < enough[narrow->state])
		return;
	share = (double)narrow->lost / narrow->seen;
	narrow->seen = narrow->lost = 0;
	if (narrow->state == NARROW_OPEN)
		narrow_look_open(narrow, share);
	else if (narrow->state == NARROW_SEEING)
		narrow_look_before(narrow, share);
	else if (narrow->state == NARROW_TRYING)
		narrow_look_trial(narrow, share);
	else
		narrow_look_kept(narrow, share);
	if (narrow->cap < cap)
		narrow->until = sent;
}

#endif
