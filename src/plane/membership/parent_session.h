/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining and leaving the aggregator above. When all children of a communicator
 * have joined, the communicator asks its parent as one child that covers all
 * their ranks. When the parent lets it join, it lets its children join.
 */
#ifndef TRIB_PLANE_MEMBERSHIP_PARENT_SESSION_H
#define TRIB_PLANE_MEMBERSHIP_PARENT_SESSION_H

#include "plane/lane/agg_lane.h"

void parent_ask(struct aggregator *aggregator, struct comm *comm);
/* False: this aggregator has not asked. */
bool parent_take_welcome(struct aggregator *aggregator, const struct wire_control *header,
                         uint32_t bytes);
/* The parent that is being asked has given up. False: no parent is being asked. */
bool parent_take_abort(struct aggregator *aggregator, const struct wire_control *header);
/* The communicator is not complete: asks again, or tells which ranks have arrived. */
void parent_tick_forming(struct aggregator *aggregator, struct comm *comm);
/* Is the sender a parent that we ask, or that has let us join? */
bool parent_is_known(const struct aggregator *aggregator, const struct wire_control *header,
                     const struct udp_address *from);
/* Fails the communicator if its parent is silent. `gap`: time that this process stood still. */
void parent_check(struct thread *thread, struct agg_lane *lane, uint64_t gap);
/* All children have left: says BYE. True: the parent knows, or has been asked long enough. */
bool parent_leave(struct thread *thread, struct agg_lane *lane);
/* The connection to a parent is closed. The thread that owned the connection calls it. */
void parent_hung_up(struct thread *thread, uint64_t link);
/* The port at this address is closed. */
void parent_port_closed(struct aggregator *aggregator, const struct udp_address *address);

#endif
