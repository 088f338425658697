/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants turns at shared aggregators: takes the ranks' packets, runs the protocol
 * (policy/turn_protocol.h), asks policy/turn_policy.h which job is next, and answers. Packets are
 * sent from the worker server's thread. All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_SHARING_TURN_SERVER_H
#define TRIB_CONTROL_SHARING_TURN_SERVER_H

#include "control/state/controller_state.h"

#include <jansson.h>

/* Takes a TURN packet of a rank or an aggregator. */
void turn_server_take(struct controller *controller, const struct wire_control *header,
                      const struct udp_address *from);
/* True: an aggregator is shared, so the caller should tick often. */
bool turn_server_tick(struct controller *controller, uint64_t now);
json_t *turn_server_to_json(const struct controller *controller);

#endif
