/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the controller's packets about turns. A lost packet is repeated by the caller. */
#ifndef TRIB_CONTROL_SHARING_TURN_PACKET_H
#define TRIB_CONTROL_SHARING_TURN_PACKET_H

#include "control/state/controller_state.h"

/* `hop`: the aggregator's address in a MOVE; NULL for all other packets. */
void turn_packet_send(struct controller *controller, uint16_t job, uint64_t cookie,
                      const struct wire_turn *turn, const struct wire_hop *hop,
                      const struct udp_address *to);

#endif
