/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives plans to ranks that ask. policy/rendezvous.h decides whether a plan is due,
 * policy/planner.h makes the trees. All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_JOBS_PLAN_SERVER_H
#define TRIB_CONTROL_JOBS_PLAN_SERVER_H

#include "control/state/controller_state.h"

/* A rank asks. A new plan is stored before this returns; an error: nothing has changed. */
trib_status plan_server_ask(struct controller *controller, struct membership_entry *entry,
                            const struct ask *ask, uint64_t now, struct answer *answer);
/* A process has said goodbye; `nonce`: the part of its nonce that fits a packet's position. */
trib_status plan_server_leave(struct controller *controller, struct job_entry *job, uint64_t nonce);

#endif
