/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what is sent to a group reach us? A switch passes it on only when it has
 * heard that we are in the group, and our kernel says so some ticks of its clock
 * after we have asked for it: whatever the sender tries before is in vain. So
 * until the group is heard, or for as long as that may take, we say every few
 * milliseconds that it is not, and the sender tries it again.
 *
 * Meanwhile little is sent. Results that come twice, by the group and to us alone,
 * fill the queue before our link; and where links are used to the full it stays so
 * until nothing is under way, and drops whatever is too much.
 *
 * A group that was heard may fall silent: a switch forgets who is in it where nobody
 * asks, and one that has just been started passes on everything to everybody for a
 * while. Who gets result after result only when they are sent again, to it alone, does
 * not hear it any more, and says so. Pure.
 */
#ifndef TRIB_PATH_HEARING_H
#define TRIB_PATH_HEARING_H

#include <stdbool.h>
#include <stdint.h>

#define HEARING_EVERY 4000000ull
#define HEARING_FOR 100000000ull /* with 100 ticks a second the kernel takes 20 to 30 ms */
#define HEARING_FRAGMENTS 64u    /* that may leave before */
#define HEARING_ALONE 16u        /* results that came again, and none by the group between them */

struct hearing {
	uint64_t until; /* it is waited for; 0: there is no group, or it was heard */
	bool is_heard;
	unsigned alone; /* results that were sent again, to us, since something came by the group */
};

static inline void hearing_start(struct hearing *hearing, uint64_t now)
{
	*hearing = (struct hearing){ .until = now + HEARING_FOR };
}

/* Something has come by the group. True: that is news. */
static inline bool hearing_by_group(struct hearing *hearing)
{
	bool news = !hearing->is_heard;

	*hearing = (struct hearing){ .is_heard = true };
	return news;
}

/* A result has come that was sent again, to us alone. True: the group is not heard any more. */
static inline bool hearing_alone(struct hearing *hearing)
{
	if (!hearing->is_heard || ++hearing->alone < HEARING_ALONE)
		return false;
	hearing->is_heard = false;
	return true;
}

/* Has it been waited for at this time? */
static inline bool hearing_waits(const struct hearing *hearing, uint64_t time)
{
	return time < hearing->until;
}

/* Has it been waited for to the end? There is no need to wait for others by that way. */
static inline bool hearing_was_in_vain(const struct hearing *hearing, uint64_t now)
{
	return hearing->until && now >= hearing->until;
}

/* May nothing more be sent, `sent` fragments having left? */
static inline bool hearing_holds(const struct hearing *hearing, uint64_t now, uint64_t sent)
{
	return hearing_waits(hearing, now) && sent >= HEARING_FRAGMENTS;
}

#endif
