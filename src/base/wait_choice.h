/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits for a result of a few microseconds: it polls its socket, and yields its core
 * in between, or it sleeps until the kernel wakes it. Polling is faster, also where several ranks
 * share a core, as all of them yield. But beside programs that compute, who yields waits for their
 * time slices. So a thread polls until it sees such slices: yields that take long. Then it sleeps
 * for a while, and tries again.
 *
 * Ranks that compare the two ways by the time that they take would all end up sleeping: one that
 * sleeps among others that poll is served first. Pure.
 */
#ifndef TRIB_BASE_WAIT_CHOICE_H
#define TRIB_BASE_WAIT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of enum wire_wait_way. */
enum wait_way { WAIT_POLL, WAIT_SLEEP };

/*
 * ns: a yield of this length has let another program compute. Ranks of the same job also compute
 * between their sums, and work on a sum without a yield, about as long as this one does. If several
 * of them share the core, a yield lasts WAIT_PEERS times as long at most, as a rule. A time slice
 * of another program is longer than WAIT_SLICE.
 */
#define WAIT_GAP 250000u
#define WAIT_SLICE 2000000u
#define WAIT_PEERS 8u
#define WAIT_WORK 65536u  /* ns: by so much, beside twice, the work of a wait may grow at once */
#define WAIT_SPAN 64u     /* waits after which the way is chosen anew */
#define WAIT_GAPS 4u      /* long yields in a span of polling that make the next ones sleep */
#define WAIT_ASLEEP 1024u /* waits that sleep before polling is tried again, at most */

struct wait_choice {
	uint64_t computed;    /* ns: how long the thread computes between two waits; 0: unknown */
	uint64_t worked;      /* ns: how long it works between two yields of a wait; 0: unknown */
	uint64_t works;       /* ns: the same, the longest in this wait so far */
	uint32_t waits, gaps; /* in this span */
	uint32_t asleep;      /* waits that sleep in this span, or would in the next one */
	uint8_t way;          /* enum wait_way */
};

/*
 * A wait begins, so long after the last one. Some of these times have slices of other programs in
 * them, and some sums follow each other at once. So `computed` changes by an eighth at most.
 */
static inline void wait_choice_begin(struct wait_choice *choice, uint64_t ns)
{
	uint64_t step = choice->computed / 8;
	uint64_t least = choice->computed - step, most = choice->computed + step + 1000;

	choice->computed = ns < least ? least : ns < most ? ns : most;
}

/* The thread has worked so long without a yield. */
static inline void wait_choice_worked(struct wait_choice *choice, uint64_t ns)
{
	choice->works = ns > choice->works ? ns : choice->works;
}

/* The wait ends: its longest work counts from now on. A slice of another program may be a part of
 * it, so it counts as at most about twice as long as before. */
static inline void wait_choice_learn(struct wait_choice *choice)
{
	uint64_t least = choice->worked - choice->worked / 8, most = 2 * choice->worked + WAIT_WORK;

	if (!choice->works) /* it has slept */
		return;
	choice->worked = choice->works < least  ? least
	                 : choice->works < most ? choice->works
	                                        : most;
	choice->works = 0;
}

/* A yield took so long. */
static inline void wait_choice_yielded(struct wait_choice *choice, uint64_t ns)
{
	uint64_t longest = choice->computed > choice->worked ? choice->computed : choice->worked;
	uint64_t gap = longest * WAIT_PEERS;

	gap = gap > WAIT_GAP ? gap : WAIT_GAP;
	choice->gaps += ns >= (gap < WAIT_SLICE ? gap : WAIT_SLICE);
}

/*
 * A wait is over. The first time a thread sleeps for a short span, as programs compute while they
 * start; each time that polling fails again, for twice as long.
 */
static inline void wait_choice_waited(struct wait_choice *choice)
{
	bool fails = choice->gaps >= WAIT_GAPS;

	wait_choice_learn(choice);
	choice->waits++;
	if (choice->way == WAIT_SLEEP && choice->waits >= choice->asleep) {
		choice->way = WAIT_POLL;
	} else if (choice->way == WAIT_POLL && fails) {
		choice->way = WAIT_SLEEP;
		choice->asleep = choice->asleep ? 2 * choice->asleep : WAIT_SPAN;
		if (choice->asleep > WAIT_ASLEEP)
			choice->asleep = WAIT_ASLEEP;
	} else if (choice->way == WAIT_POLL && choice->waits >= WAIT_SPAN) {
		choice->asleep = 0;
	} else {
		return;
	}
	choice->waits = choice->gaps = 0;
}

#endif
