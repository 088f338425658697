/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who takes part (XAgg §V): whether aggregation is worth it, which workers are
 * alike, and which servers have room for an aggregator.
 */
#ifndef TRIB_PLAN_CANDIDATES_H
#define TRIB_PLAN_CANDIDATES_H

#include "plan/plan.h"

#define CANDIDATES_MEMORY 0.8 /* of a server's memory may be in use with the model */
#define CANDIDATES_WORTH 0.1  /* below this share of communication there is little to gain */

/* A worker's first round. */
struct candidates_round {
	double training_s, transmission_s;
};

/* Whether communication takes at least this share of the rounds, so that aggregation pays. */
bool candidates_worth(const struct candidates_round *rounds, unsigned n, double share);
/* Workers into order[n], the quickest round first, so that neighbours are alike. */
void candidates_order(const struct candidates_round *rounds, unsigned n, uint32_t *order);

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
