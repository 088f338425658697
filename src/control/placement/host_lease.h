/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement: which hosts a job gets, and until when.
 *
 * This folder owns the leases of hosts (host_lease), the table of hosts (host_table) and what users
 * see of both (host_lease_show). policy/host_policy.h chooses the hosts. This folder starts no
 * ranks, makes no plans and ends no jobs: jobs/ ends those that host_lease_next_ended names.
 *
 * A lease ends with its job. A job with hosts ends if nobody renews its lease and its ranks are
 * gone. Ranks count as gone after GONE_NS (1 s) without a sign of life, once every aggregator of
 * the plan has denied having them or has been silent for DEAD_NS (60 s). A rank that is merely out
 * of reach keeps its host.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_PLACEMENT_HOST_LEASE_H
#define TRIB_CONTROL_PLACEMENT_HOST_LEASE_H

#include "control/state/controller_state.h"

/*
 * Asks for the hosts of a job. TRIB_ERR_REFUSED: there can never be enough hosts; or there are too
 * few now, and `waits` is false.
 */
trib_status host_lease_ask(struct controller *controller, struct job_entry *entry, bool waits);
/* Restores a lease from the store. */
trib_status host_lease_load(struct controller *controller, struct job_entry *entry,
                            const struct placement_row *row);
/* The job ends: waiting jobs may have its hosts. */
void host_lease_end_job(struct controller *controller, struct job_entry *entry);
/* Is it time to look for ended leases? True about five times a second. */
bool host_lease_is_due(struct controller *controller, uint64_t now);
/* The next job after id `after` whose lease has ended, and why; 0: there is none. */
uint16_t host_lease_next_ended(struct controller *controller, uint16_t after, uint64_t now,
                               const char **why);
/* Gives free hosts to waiting jobs. */
void host_lease_admit(struct controller *controller, uint64_t now);
/* Keeps the job for `lease_s` seconds; 0: as long as its ranks live. */
void host_lease_renew(struct job_entry *entry, double lease_s, uint64_t now);
/* A sign of life of the job's ranks. */
void host_lease_hear(struct job_entry *entry, uint64_t now);
/* Signs of life that an aggregator reports with its heartbeat. */
void host_lease_hear_node(struct controller *controller, const struct node *node);

#endif
