/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP side of the controller: its thread takes the packets of workers (requests for plans,
 * goodbyes, questions, turns) and asks silent aggregators whether they live.
 */
#ifndef TRIB_CONTROL_SERVER_WORKER_SERVER_H
#define TRIB_CONTROL_SERVER_WORKER_SERVER_H

#include "control/state/controller_state.h"

trib_status worker_server_open(struct controller *controller, const struct udp_address *listen);
void worker_server_close(struct controller *controller);

#endif
