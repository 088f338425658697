/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_probe: finds out whether packets to a multicast group reach this host. Pure.
 *
 * A switch forwards multicast only after it has seen our membership report. The kernel
 * sends that report some clock ticks after the socket joined the group, so the sender's
 * first packets may not arrive. Until the first packet arrives, or GROUP_PROBE_FOR has
 * passed, the receiver reports every GROUP_PROBE_EVERY that it hears nothing, and the
 * sender probes the group again.
 *
 * While the probe lasts, a sender has at most GROUP_PROBE_FRAGMENTS in flight. Otherwise
 * results would arrive twice, by multicast and by unicast, and overflow the queue of
 * our link.
 *
 * A group may fall silent later: a switch without a querier forgets its members, and a
 * freshly started switch floods everything for a while before it filters. If
 * GROUP_PROBE_ALONE results in a row arrive only as unicast repeats, the receiver reports
 * that it no longer hears the group.
 */
#ifndef TRIB_PATH_GROUP_PROBE_H
#define TRIB_PATH_GROUP_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define GROUP_PROBE_EVERY 4000000ull /* ns between two reports that nothing is heard */
#define GROUP_PROBE_FOR                                                                        \
	100000000ull              /* ns; a kernel with 100 ticks a second joins in 20 to 30 ms \
	                           */
#define GROUP_PROBE_FRAGMENTS 64u /* in flight at most while the probe lasts */
#define GROUP_PROBE_ALONE 16u     /* unicast repeats in a row that mean: group not heard */

struct group_probe {
	uint64_t until; /* end of the probe; 0: no probe runs */
	bool is_heard;
	unsigned alone; /* unicast repeats since the last multicast packet */
};

static inline void group_probe_start(struct group_probe *group_probe, uint64_t now)
{
	*group_probe = (struct group_probe){ .until = now + GROUP_PROBE_FOR };
}

/* A packet has come by multicast. True: it is the first one. */
static inline bool group_probe_by_group(struct group_probe *group_probe)
{
	bool news = !group_probe->is_heard;

	*group_probe = (struct group_probe){ .is_heard = true };
	return news;
}

/* A result has come as a unicast repeat. True: the group is no longer heard. */
static inline bool group_probe_alone(struct group_probe *group_probe)
{
	if (!group_probe->is_heard || ++group_probe->alone < GROUP_PROBE_ALONE)
		return false;
	group_probe->is_heard = false;
	return true;
}

/* Does the probe last at this time? */
static inline bool group_probe_waits(const struct group_probe *group_probe, uint64_t time)
{
	return time < group_probe->until;
}

/* Has the probe ended without a packet? Then the group is not used. */
static inline bool group_probe_failed(const struct group_probe *group_probe, uint64_t now)
{
	return group_probe->until && now >= group_probe->until;
}

/* Does the probe forbid to send more than these `sent` fragments? */
static inline bool group_probe_holds(const struct group_probe *group_probe, uint64_t now,
                                     uint64_t sent)
{
	return group_probe_waits(group_probe, now) && sent >= GROUP_PROBE_FRAGMENTS;
}

#endif
