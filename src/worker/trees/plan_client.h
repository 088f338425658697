/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the controller for a plan: the trees, and this process's rank and size. */
#ifndef TRIB_WORKER_TREES_PLAN_CLIENT_H
#define TRIB_WORKER_TREES_PLAN_CLIENT_H

#include "worker/comm/comm.h"

/*
 * Asks until the controller gives a plan of a newer generation than the current one. Sets the
 * configuration's trees and generation, planned_rank and planned_size.
 */
trib_status comm_ask_plan(struct trib_comm *comm, uint64_t deadline);
/* Is the aggregator's address a controller's? *answered: a process there has answered. */
bool comm_find_controller(const struct trib_comm *comm, bool *answered);
/* Tells the controller that this process leaves the job, until it has heard so. */
void comm_tell_controller_bye(const struct trib_comm *comm);

#endif
