/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a vector can move through trees over a cluster's links: what each NIC
 * has to send and receive for one vector, over its rate. No implementation can be
 * faster with these trees and links.
 */
#ifndef TRIB_LAUNCH_TREE_RATE_H
#define TRIB_LAUNCH_TREE_RATE_H

#include "launch/tree_layout.h"

struct nic_load {
	double in, out; /* vectors */
};

struct layout_use {
	unsigned workers;
	bool to_one; /* only rank 0 gets the result */
	bool copies; /* a result is sent to each child separately, as TCP has to */
};

/* Adds to loads[], which has one entry for each host of the cluster. */
void layout_load(const struct tree_layout *trees, const struct cluster *cluster,
                 const struct layout_use *use, struct nic_load *loads);

/* Bits a second, with headers, at which the busiest NIC is full; 0: no link is shaped. */
double loads_rate(const struct nic_load *loads, const struct cluster *cluster);

/*
 * The value of TRIB_RATE for workers. All workers send at the rate of the trees, so
 * that packets neither wait nor get lost before an aggregator's link. 0: no limit
 * is known.
 */
uint64_t layout_rate(const struct tree_layout *trees, const struct cluster *cluster,
                     unsigned workers);

#endif
