/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits for a result of a few microseconds: spinning, spinning and yielding its core,
 * or sleeping. Which one is fastest depends on the cores that are free: where other ranks or
 * programs need this core, a spinning thread holds up the very packets that it waits for. So it is
 * measured: most waits use the way that took least lately, and now and then another one is tried.
 * Pure.
 */
#ifndef TRIB_WORKER_SLOT_WAIT_CHOICE_H
#define TRIB_WORKER_SLOT_WAIT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of enum wire_wait_way. */
enum wait_way { WAIT_SPIN, WAIT_YIELD, WAIT_SLEEP, WAIT_WAYS };

#define WAIT_TRY_EVERY 64u /* waits between two trials of another way */
#define WAIT_MOST 1000000u /* ns: a longer wait says nothing of the way, but of other ranks */
#define WAIT_WEIGHT 8u     /* a new value counts this part of the average */

struct wait_choice {
	uint32_t took[WAIT_WAYS]; /* ns, averaged; 0: not tried yet */
	uint32_t waits;
	uint8_t first; /* ways below are not used: no core to spare */
	uint8_t best;
};

/* `spare`: this thread has a core of its own while it waits. */
static inline void wait_choice_init(struct wait_choice *choice, bool spare)
{
	*choice = (struct wait_choice){ .first = spare ? WAIT_SPIN : WAIT_YIELD };
	choice->best = choice->first;
}

/* The way of the next wait. */
static inline enum wait_way wait_choice_next(struct wait_choice *choice)
{
	uint32_t turn = choice->waits++ / WAIT_TRY_EVERY;

	if (choice->waits % WAIT_TRY_EVERY)
		return (enum wait_way)choice->best;
	return (enum wait_way)(choice->first + turn % (WAIT_WAYS - choice->first));
}

/* A wait took so long. */
static inline void wait_choice_took(struct wait_choice *choice, enum wait_way way, uint64_t ns)
{
	uint32_t now = ns < 1 ? 1 : ns > WAIT_MOST ? WAIT_MOST : (uint32_t)ns;
	uint32_t *took = &choice->took[way];

	*took = *took ? *took - *took / WAIT_WEIGHT + now / WAIT_WEIGHT : now;
	for (unsigned i = choice->first; i < WAIT_WAYS; i++)
		if (choice->took[i] && choice->took[i] < choice->took[choice->best])
			choice->best = (uint8_t)i;
}

#endif
