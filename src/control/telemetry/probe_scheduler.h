/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which two nodes probe the link between them, and when. Unknown links are probed while no
 * job runs on either node. If a job is slower than its plan, its links are probed at once.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_TELEMETRY_PROBE_SCHEDULER_H
#define TRIB_CONTROL_TELEMETRY_PROBE_SCHEDULER_H

#include "control/state/controller_state.h"

#include <jansson.h>

/* The probe that this node has to make, for the answer to its heartbeat; NULL: none. */
json_t *probe_scheduler_for_node(struct controller *controller, struct node *node, uint64_t now);
/* True: probes of nodes that have just joined are due soon, so a first plan may wait for them. */
bool probe_scheduler_awaited(struct controller *controller, uint64_t now);
/* Makes the nodes of a plan, and those of its ranks, probe their links again. */
void probe_scheduler_recheck_plan(struct controller *controller,
                                  const struct membership *membership, uint64_t now);

#endif
