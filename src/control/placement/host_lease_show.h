/* SPDX-License-Identifier: Apache-2.0 */
/* What users see of leases. All functions need the controller's lock. */
#ifndef TRIB_CONTROL_PLACEMENT_HOST_LEASE_SHOW_H
#define TRIB_CONTROL_PLACEMENT_HOST_LEASE_SHOW_H

#include "control/state/controller_state.h"

#include <jansson.h>

/* Why a waiting job has no hosts. */
void host_lease_why(const struct controller *controller, const struct job_entry *entry, char *out,
                    size_t size);
/* Counts hosts by state, into hosts[HOST_STATES_END], and waiting jobs. */
void host_lease_count(const struct controller *controller, uint64_t now, uint32_t *hosts,
                      unsigned *waiting);
/* For each node, in the order of the table, the job that has it; 0: none. */
void host_lease_mark(const struct controller *controller, uint16_t *jobs);
/* Warns if a rank of the plan runs on a host that the job was not given. */
void host_lease_check(const struct job_entry *entry, const struct membership *membership);
void host_lease_to_json(const struct controller *controller, const struct job_entry *entry,
                        json_t *json);

#endif
