/* SPDX-License-Identifier: Apache-2.0 */
/* JOIN: which senders may join, which have to wait, which are refused. */
#ifndef TRIB_PLANE_MEMBERSHIP_JOIN_SERVER_H
#define TRIB_PLANE_MEMBERSHIP_JOIN_SERVER_H

#include "plane/core/aggregator_state.h"

/* Takes a JOIN that shows a good cookie. Its content is not trusted. */
void join_take(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
               const struct udp_address *from);

#endif
