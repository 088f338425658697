/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases hosts from a controller for a command that starts ranks there. It asks for
 * hosts, waits for them if it may, renews the lease while the ranks run, and gives
 * the hosts back.
 */
#ifndef TRIB_LAUNCH_HOST_LEASE_CLIENT_H
#define TRIB_LAUNCH_HOST_LEASE_CLIENT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lease_request {
	const char *command;    /* for messages while it waits: "trib run" */
	const char *controller; /* NULL: TRIB_CONTROLLER, or one on this machine */
	const char *name;       /* NULL: "job" */
	const char *policy;
	uint64_t hosts, per_host, min;
	bool waits; /* wait if there are not enough hosts */
};

struct host_lease;

/* A build without the control plane leaves these functions out: lease_start is NULL then. */
#define WITH_CONTROL __attribute__((weak))

/* Returns when the job has its hosts. */
trib_status lease_start(const struct lease_request *wish, struct host_lease **out) WITH_CONTROL;
/* From now on the job is ended by its ranks or by trib job end, not by lease_end. */
void lease_hand_over(struct host_lease *lease);
/* Ends the job, unless it was handed over. */
void lease_end(struct host_lease *lease) WITH_CONTROL;

unsigned lease_count(const struct host_lease *lease);
const char *lease_address(const struct host_lease *lease, unsigned host) WITH_CONTROL;
/* Address of the controller, as workers need it in TRIB_AGGREGATOR. */
const char *lease_controller(const struct host_lease *lease) WITH_CONTROL;
uint64_t lease_job(const struct host_lease *lease) WITH_CONTROL;
uint64_t lease_cookie(const struct host_lease *lease) WITH_CONTROL;
/* Prints all that the controller answered, as JSON. */
void lease_dump(const struct host_lease *lease);

#endif
