/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs: the life of a job and of its communicators.
 *
 * This folder owns making, loading and ending jobs (job_table), and giving plans to ranks that ask
 * (plan_server). Every change is stored before anybody is told. It reads no packets and no HTTP:
 * server/ and api/ call it.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_JOBS_JOB_TABLE_H
#define TRIB_CONTROL_JOBS_JOB_TABLE_H

#include "control/state/controller_state.h"

/* Restores jobs, communicators and nodes from the store. */
trib_status job_table_load(struct controller *controller);
void job_table_free(struct controller *controller);
/* Gives the job an id and stores it. */
trib_status job_table_add(struct controller *controller, const struct job *wish,
                          struct job_entry **out);
trib_status job_table_end(struct controller *controller, uint16_t id);
/* Ends jobs whose lease has ended, and gives free hosts to waiting jobs. */
void job_table_tick(struct controller *controller, uint64_t now);
/* The live jobs, for the answer to a heartbeat. */
json_t *job_table_roster(struct controller *controller);
/* The communicator with this key, made if there is none; NULL: no memory. */
struct membership_entry *job_table_membership(struct controller *controller, struct job_entry *job,
                                              uint64_t key);

#endif
