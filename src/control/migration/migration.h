/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migration: decides, at each heartbeat of a node, whether a running job should leave that node.
 *
 * This folder owns that decision; policy/migration_policy.h has the rules. It makes no plan. It
 * only answers the node's agent with what to leave. The aggregator then aborts these trees, the
 * ranks ask for a plan, and jobs/plan_server.c makes one that does without the node.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_MIGRATION_MIGRATION_H
#define TRIB_CONTROL_MIGRATION_MIGRATION_H

#include "control/state/controller_state.h"

#include <jansson.h>

/*
 * Takes the telemetry of a heartbeat, and returns the list of trees that the node has to leave;
 * NULL: none. The answer to each heartbeat repeats the list until the aggregator has left.
 */
json_t *migration_for_node(struct controller *controller, struct node *node, uint64_t now);

#endif
