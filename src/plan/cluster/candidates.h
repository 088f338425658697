/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates: which machines take part (XAgg §V). Decides whether aggregation pays, and which
 * servers have room for an aggregator.
 */
#ifndef TRIB_PLAN_CLUSTER_CANDIDATES_H
#define TRIB_PLAN_CLUSTER_CANDIDATES_H

#include "plan/cluster/plan.h"

#define CANDIDATES_MEMORY 0.8 /* largest part of a server's memory in use, model included */

/* The times of a worker's first round. */
struct candidates_round {
	double training_s, transmission_s;
};

/* Whether communication takes at least this share of the rounds, so that aggregation pays. */
bool candidates_worth(const struct candidates_round *rounds, unsigned n, double share);

/* Whether the host may aggregate and has memory for the model. */
bool candidate_fits(const struct plan_host *host, const struct plan_limits *limits);
/*
 * The servers (no workers) that fit and whose idle cores keep up with their
 * links, the best first, into out[n]: by bandwidth, then cores, then memory.
 * Returns how many.
 */
unsigned candidates_select(const struct plan_host *hosts, unsigned n,
                           const struct plan_limits *limits, uint32_t *out);

#endif
