/* SPDX-License-Identifier: Apache-2.0 */
/* Which children live, which have left, and when a communicator has ended. */
#ifndef TRIB_PLANE_MEMBERSHIP_LIVENESS_H
#define TRIB_PLANE_MEMBERSHIP_LIVENESS_H

#include "plane/lane/agg_lane.h"

/* Looks at every communicator. `gap`: time that this process stood still; 0: it did not. */
void liveness_tick(struct aggregator *aggregator, uint64_t gap);
/* A child says BYE. */
void liveness_take_bye(struct aggregator *aggregator, struct agg_lane *lane,
                       const struct wire_control *header, const struct udp_address *from);
/* The port at this address is closed, so its process has ended. */
void liveness_port_closed(struct aggregator *aggregator, const struct udp_address *address);
/* The child is lost. The lane's own thread may call it. */
void liveness_fail_child(struct agg_lane *lane, unsigned child, const char *why,
                         uint64_t silent_ns);

#endif
