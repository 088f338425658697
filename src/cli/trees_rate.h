/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a vector can move through trees over a cluster's links: what each
 * NIC has to send and to receive for a vector of one, over its rate. Whoever
 * moves these bytes over these links takes at least this long.
 */
#ifndef TRIB_CLI_TREES_RATE_H
#define TRIB_CLI_TREES_RATE_H

#include "cli/trees.h"

struct nic_load {
	double in, out; /* vectors */
};

struct trees_use {
	unsigned workers;
	bool to_one; /* the result is wanted by rank 0 alone */
	bool copies; /* a result is sent to each child by itself, as TCP has to */
};

/* Adds to loads[], which is as the cluster's hosts. */
void trees_load(const struct trees *trees, const struct cluster *cluster,
                const struct trees_use *use, struct nic_load *loads);

/* Bits a second, headers and all, at which the fullest NIC is full; 0: none is shaped. */
double loads_rate(const struct nic_load *loads, const struct cluster *cluster);

/*
 * What workers are told as TRIB_RATE: all at the rate of the trees, so that
 * nobody's packets wait before an aggregator's link, or are lost there. 0: no
 * limit is known.
 */
uint64_t trees_pace(const struct trees *trees, const struct cluster *cluster, unsigned workers);

#endif
