/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts jobs get that ask for a number of them. Jobs wait in the order in
 * which they came, and the first one waits until there are enough for it: as in
 * the simulator, with the placement of src/plan. Pure: from how the hosts are now
 * to who is let in; nothing is remembered.
 */
#ifndef TRIB_CONTROL_ADMISSION_H
#define TRIB_CONTROL_ADMISSION_H

#include "control/racks.h"

/* In the order of the words of TRIB_PLACEMENT. */
enum admission_policy {
	ADMISSION_SMART,
	ADMISSION_FIRST,
	ADMISSION_RANDOM,
	ADMISSION_POLICIES_END
};

const char *admission_policy_name(enum admission_policy policy);

enum host_state {
	HOST_FREE,
	HOST_BUSY, /* a job has it */
	HOST_AWAY, /* it is silent or drained: for nobody */
	HOST_STATES_END
};

struct admission_host {
	const char *rack;
	enum host_state state;
};

struct admission {
	const struct admission_host *hosts;
	uint32_t n;
	enum admission_policy policy;
	double alpha;  /* of ADMISSION_SMART: plan/placement.h */
	uint64_t seed; /* of what is drawn */
};

uint32_t admission_count(const struct admission *admission, enum host_state state);

struct admission_result {
	unsigned admitted; /* so many, from the first */
	bool is_cut;       /* racks are so unlike that their last names did not count */
};

/*
 * For jobs that want so many hosts each, in their order: the indices of the hosts of those that get
 * some stand one job after the other in `chosen`, in the order of ranks.
 */
trib_status admission_run(const struct admission *admission, const uint32_t *wants, unsigned n,
                          uint32_t *chosen, struct admission_result *result);

#endif
