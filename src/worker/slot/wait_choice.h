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
#ifndef TRIB_WORKER_SLOT_WAIT_CHOICE_H
#define TRIB_WORKER_SLOT_WAIT_CHOICE_H

#include <stdint.h>

/* In the order of enum wire_wait_way. */
enum wait_way { WAIT_POLL, WAIT_SLEEP };

#define WAIT_GAP 100000u  /* ns: a yield of this length has let a program compute */
#define WAIT_SPAN 64u     /* waits after which the way is chosen anew */
#define WAIT_GAPS 4u      /* long yields in a span of polling that make the next ones sleep */
#define WAIT_ASLEEP 1024u /* waits that sleep before polling is tried again */

struct wait_choice {
	uint32_t waits, gaps; /* in this span */
	uint8_t way;          /* enum wait_way */
};

/* A yield took so long. */
static inline void wait_choice_yielded(struct wait_choice *choice, uint64_t ns)
{
	choice->gaps += ns >= WAIT_GAP;
}

/* A wait is over. */
static inline void wait_choice_waited(struct wait_choice *choice)
{
	uint32_t span = choice->way == WAIT_POLL ? WAIT_SPAN : WAIT_ASLEEP;

	if (++choice->waits < span && choice->gaps < WAIT_GAPS)
		return;
	choice->way = choice->gaps >= WAIT_GAPS ? WAIT_SLEEP : WAIT_POLL;
	choice->waits = choice->gaps = 0;
}

#endif
