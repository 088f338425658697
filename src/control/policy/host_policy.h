/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses hosts for jobs that ask for a number of them. Jobs wait in the order in which they came,
 * and no job overtakes the first one. The simulator has the same rule, with the placement of
 * plan/fabric/placement.h. Pure: the result depends only on the hosts as they are now.
 */
#ifndef TRIB_CONTROL_POLICY_HOST_POLICY_H
#define TRIB_CONTROL_POLICY_HOST_POLICY_H

#include "control/policy/topology.h"

/* In the order of the values of TRIB_PLACEMENT. */
enum host_policy { HOST_POLICY_SMART, HOST_POLICY_FIRST, HOST_POLICY_RANDOM, HOST_POLICIES_END };

const char *host_policy_name(enum host_policy policy);

enum host_state {
	HOST_FREE,
	HOST_BUSY, /* a job has it */
	HOST_AWAY, /* silent or drained: no job gets it */
	HOST_STATES_END
};

struct host_candidate {
	const char *rack;
	enum host_state state;
};

struct host_policy_input {
	const struct host_candidate *hosts;
	uint32_t n;
	enum host_policy policy;
	double alpha;  /* of HOST_POLICY_SMART: plan/fabric/placement.h */
	uint64_t seed; /* of random choices */
};

struct host_policy_result {
	unsigned admitted; /* number of jobs that get hosts; these are the first in the queue */
	bool is_cut;       /* racks differ so much in size that their last names were ignored */
};

/*
 * `wants` has the number of hosts of each waiting job, in their order. `chosen` gets the indices of
 * hosts: those of the first job in the order of its ranks, then those of the second job, and so on.
 */
trib_status host_policy_run(const struct host_policy_input *input, const uint32_t *wants,
                            unsigned n, uint32_t *chosen, struct host_policy_result *result);

#endif
