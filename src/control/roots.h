/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At which aggregator with a capacity each job takes its turns: as many jobs as
 * possible at one of their own, by the search of plan/assign, and those for which
 * there is none where they are wanted least, by plan/share. Pure: from how it is
 * now to how it should be; nothing is remembered.
 *
 * A job's turns are at one aggregator, which its ranks reach directly, so the tree
 * is its root and takes no other resource. It may be any that is above all of the
 * job's hosts, and rather the closest.
 */
#ifndef TRIB_CONTROL_ROOTS_H
#define TRIB_CONTROL_ROOTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ROOTS_NONE UINT32_MAX

/* An aggregator. */
struct roots_site {
	const char *above; /* the part of the network that it is for: racks.h */
	uint32_t capacity; /* from 1 */
};

struct roots_job {
	const char *rack; /* what the racks of all its hosts begin with; NULL: they are not known */
	uint32_t root;    /* where it is, or ROOTS_NONE */
	bool rests;       /* it stays there */
	double worth;     /* seconds that it gains by an aggregator of its own */
	double move;      /* seconds that it costs to go to another */
	double demand;    /* share of its time that it wants one */
};

/*
 * Where each job should be, into roots[]; ROOTS_NONE: no aggregator is above it. Jobs come in the
 * order in which they have got theirs. One that has a root already moves only where that pays: to
 * be alone at another one, or to make room for one that is worth more than all that move for it.
 */
trib_status roots_assign(const struct roots_site *sites, uint32_t n_sites,
                         const struct roots_job *jobs, uint32_t n, uint32_t *roots);

#endif
