/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simnet: a network in memory with a simulated clock. On one side are the streams of workers, on
 * the other a dense lane or a tree of them. Packets are lost, duplicated, delayed and reordered,
 * all from one seed.
 */
#ifndef TRIB_TESTS_SIMNET_H
#define TRIB_TESTS_SIMNET_H

#include "engine/dense.h"
#include "worker/dense/stream.h"

#define SIM_WORKERS_MAX 64
#define SIM_NODES_MAX 16

struct simnet_options {
	unsigned workers;
	unsigned nodes;                 /* number of aggregators; 0: one for all workers */
	unsigned parent[SIM_NODES_MAX]; /* of each node, a lower one; node 0 is the root */
	unsigned leaf[SIM_WORKERS_MAX]; /* the aggregator of each worker */
	uint32_t cells, payload;
	double loss, dup, delayed; /* probabilities in each direction */
	uint64_t latency_ns;       /* in each direction; 0: 20 us */
	bool reliable;             /* no loss, duplication or delay, and order is kept */
	unsigned ring;             /* packets that can wait at a worker; 0: any number */
	uint64_t drain_ns;         /* time to take a waiting packet */
	uint64_t seed;
	uint64_t start_ns[SIM_WORKERS_MAX]; /* when each worker starts to send */
};

struct simnet;

struct simnet *simnet_new(const struct simnet_options *options);
void simnet_free(struct simnet *sim);
struct stream *simnet_stream(struct simnet *sim, unsigned worker);
/* Starts a round at a worker. The simulation counts unfinished rounds. */
void simnet_post(struct simnet *sim, unsigned worker, const struct round_spec *spec);
/* Runs until all rounds are finished. False: no progress for `limit_ns` of simulated time. */
bool simnet_run(struct simnet *sim, uint64_t limit_ns);
uint64_t simnet_packets(const struct simnet *sim);
/* Results that were sent again to a single worker. */
uint64_t simnet_repeats(const struct simnet *sim);
/* Losses that the aggregators below the root report, and sums that parents have missed. */
struct simnet_losses {
	uint64_t judged, lost, again, missed;
};
struct simnet_losses simnet_losses(const struct simnet *sim);
uint64_t simnet_now(const struct simnet *sim);
uint64_t simnet_verdicts(const struct simnet *sim, enum dense_verdict verdict);
uint64_t simnet_random(struct simnet *sim);

#endif
