/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the aggregator with a capacity at which each job takes its turns. As many jobs as
 * possible get an aggregator of their own (plan/fabric/assign.h). The others share the least wanted
 * ones (plan/fabric/tree_share.h). Pure: the result depends only on the present assignment.
 *
 * A job's turns are at one aggregator, which its ranks reach directly. The aggregator must be above
 * all hosts of the job in the topology; the closest one is preferred.
 */
#ifndef TRIB_CONTROL_POLICY_STAR_POLICY_H
#define TRIB_CONTROL_POLICY_STAR_POLICY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define STAR_POLICY_NONE UINT32_MAX

/* An aggregator. */
struct star_policy_site {
	const char *above; /* the part of the network that it serves: topology.h */
	uint32_t capacity; /* from 1 */
};

struct star_policy_job {
	const char *rack;   /* common beginning of its hosts' racks; NULL: unknown */
	uint32_t root;      /* its present site; STAR_POLICY_NONE: none */
	bool stays;         /* it must not migrate now */
	double worth;       /* seconds that it gains with an aggregator of its own */
	double migration_s; /* seconds that a migration costs */
	double demand;      /* share of its time in which it wants a turn */
};

/*
 * roots[job]: the site where the job should be; STAR_POLICY_NONE: no site is above it. Jobs are in
 * the order in which they got their sites. A job that has a site migrates only if that pays: to be
 * alone at another site, or to make room for a job that gains more than all migrations cost.
 */
trib_status star_policy_assign(const struct star_policy_site *sites, uint32_t n_sites,
                               const struct star_policy_job *jobs, uint32_t n, uint32_t *roots);

#endif
