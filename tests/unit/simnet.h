/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in memory, with a clock of its own: streams of workers on one
 * side, a dense lane or a tree of them on the other, and packets that are
 * lost, doubled, delayed and so reordered in between, all from one seed.
 */
#ifndef TRIB_TESTS_SIMNET_H
#define TRIB_TESTS_SIMNET_H

#include "engine/dense.h"
#include "worker/stream.h"

#define SIM_WORKERS_MAX 64
#define SIM_NODES_MAX 16

struct sim_options {
	unsigned workers;
	unsigned nodes;                 /* aggregators; 0: one, for all */
	unsigned parent[SIM_NODES_MAX]; /* of each but the first, which is the root; a lower one */
	unsigned leaf[SIM_WORKERS_MAX]; /* the aggregator of each worker */
	uint32_t cells, payload;
	double loss, dup, delayed; /* probabilities, each way */
	uint64_t latency_ns;       /* each way; 0: 20 us */
	bool reliable;             /* none of that, and the order is kept */
	unsigned ring;             /* packets that wait before a worker; 0: any number */
	uint64_t drain_ns;         /* and how long it takes for one */
	uint64_t seed;
	uint64_t start_ns[SIM_WORKERS_MAX]; /* when each begins to send */
};

struct sim;

struct sim *sim_new(const struct sim_options *options);
void sim_free(struct sim *sim);
struct stream *sim_stream(struct sim *sim, unsigned worker);
/* Posts a round on a worker; the sim counts what is unfinished. */
void sim_post(struct sim *sim, unsigned worker, const struct round_spec *spec);
/* Runs until all rounds are finished. False: stuck for `limit_ns` of its own time. */
bool sim_run(struct sim *sim, uint64_t limit_ns);
uint64_t sim_packets(const struct sim *sim);
/* Results that were sent once more, to one worker. */
uint64_t sim_repeats(const struct sim *sim);
/* What the aggregators below the root tell of losses, and how many sums parents have missed. */
struct sim_losses {
	uint64_t judged, lost, again, missed;
};
struct sim_losses sim_losses(const struct sim *sim);
uint64_t sim_now(const struct sim *sim);
uint64_t sim_verdicts(const struct sim *sim, enum dense_verdict verdict);
uint64_t sim_random(struct sim *sim);

#endif
