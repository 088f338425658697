/* SPDX-License-Identifier: Apache-2.0 */
/* Events that strangers can cause: logged at once, and then once a minute with their count. */
#ifndef TRIB_BASE_TALLY_H
#define TRIB_BASE_TALLY_H

#include "base/clock.h"

#define TALLY_EVERY (60 * NSEC_PER_SEC)

struct tally {
	uint64_t count; /* events that were not logged yet */
	uint64_t at;    /* when they were last logged; 0: never */
};

/* The events to log now; 0: none, or too soon. */
static inline uint64_t tally_due(struct tally *tally, uint64_t now)
{
	uint64_t count = tally->count;

	if (!count || (tally->at && now < tally->at + TALLY_EVERY))
		return 0;
	*tally = (struct tally){ .at = now };
	return count;
}

#endif
