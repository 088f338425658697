/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which children send and which are idle, so that link_share.h divides the link
 * among those that send. Never per packet: a sharing follows when a child
 * becomes active or idle or loses much, when a lane comes or goes, and when a
 * parent grants another rate.
 *
 * A child says in its REPORT whether it is active. "Idle" counts only after
 * IDLE_AFTER_NS, because the next vector often follows at once; so a stream of
 * vectors changes nothing. A child whose rate has changed is told at once, by
 * the thread that owns its lane. Other children are told nothing.
 */
#ifndef TRIB_PLANE_STREAM_CHILD_RATES_H
#define TRIB_PLANE_STREAM_CHILD_RATES_H

#include "plane/lane/agg_lane.h"

/* DATA arrives at an idle lane. */
void child_rates_wake(struct thread *thread, struct agg_lane *lane);
void child_rates_take_report(struct thread *thread, struct agg_lane *lane,
                             const struct wire_control *header);
/* After each batch of packets: tells children whose rate has changed. */
void child_rates_look(struct thread *thread);
void child_rates_tick(struct thread *thread);

/* DATA has arrived. */
static inline void child_rates_note(struct thread *thread, struct agg_lane *lane)
{
	lane->rates.seen_at = thread->now;
	if (!lane->rates.works)
		child_rates_wake(thread, lane);
}

#endif
