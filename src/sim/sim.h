/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim: many jobs on one fabric, event by event, without a clock, a file or a
 * thread: what placement, trees and turns (src/plan) would do to completion
 * times. The same input gives the same result on every machine.
 *
 * A job is a number of equal steps (plan/pattern.h). Jobs wait in a queue in
 * the order in which they arrive, and the first one waits until there are
 * enough hosts for it. Its completion time counts from when it gets them.
 */
#ifndef TRIB_SIM_SIM_H
#define TRIB_SIM_SIM_H

#include "base/status.h"
#include "plan/fabric.h"
#include "plan/turn.h"

#include <stdbool.h>

enum sim_placement { SIM_PLACE_FIRST, SIM_PLACE_RANDOM, SIM_PLACE_SMART };
enum sim_trees { SIM_TREES_NONE, SIM_TREES_FIRST, SIM_TREES_RANDOM, SIM_TREES_SMART };

/* One training step as it was measured. */
struct sim_step {
	const char *name;
	double compute_s;
	unsigned n;
	double *start_s;
	uint64_t *bytes;
};

#define SIM_ENDLESS 0u

struct sim_job {
	double arrive_s;
	uint32_t step; /* which of the input's */
	uint32_t hosts;
	uint32_t steps; /* how many of them; SIM_ENDLESS until the simulation ends */
};

struct sim_options {
	enum sim_placement placement;
	enum sim_trees trees;
	enum turn_policy sharing;
	struct wire_model wire;
	double speedup;      /* of the computation, against the measured steps */
	double alpha;        /* of the placement's score */
	uint32_t candidates; /* trees of a job that are looked at; 0 is all */
	double migrate_s;    /* without aggregation, while a job's tree is moved */
	double until_s;      /* ends then, whatever is not done; 0: when all is */
	bool public_ties; /* events at the same time in the order of MINA's simulator: sim/ties.h */
	uint64_t seed;
};

#define SIM_OPTIONS_DEFAULT                                                                     \
	(struct sim_options)                                                                    \
	{                                                                                       \
		.placement = SIM_PLACE_SMART, .trees = SIM_TREES_SMART, .sharing = TURN_FRUGAL, \
		.wire = WIRE_MODEL_DEFAULT, .speedup = 1, .alpha = 0.5, .public_ties = true,    \
		.seed = 1                                                                       \
	}

/* How it stood when a job had come or gone. */
struct sim_sample {
	double time_s;
	uint32_t running;
	uint32_t fragments;  /* of the free hosts */
	uint32_t conflicted; /* jobs that have to share a tree's links, or have no tree */
	double aggregated_s; /* until now, over all jobs */
	double run_s;        /* seconds that jobs have run until now */
};

/* What became of a job. */
struct sim_outcome {
	double start_s, end_s;  /* end_s is negative where it did not come to that */
	double fast_s, plain_s; /* how long it would have taken with all and no aggregation */
	double aggregated_s;
	uint32_t moves;
};

struct sim_result {
	uint64_t events;
	double jct_s, jct_all_s, jct_none_s;                /* sums over jobs */
	double weighted_s, weighted_all_s, weighted_none_s; /* the same times a job's hosts */
	double aggregated_s;
	double wait_s; /* in the queue, over all jobs */
	double end_s;
	double host_s;                  /* hosts times seconds that they were taken */
	uint64_t done, moves, unserved; /* jobs; unserved ones never had a tree */
	uint64_t peak;                  /* most jobs at once */
	uint64_t place_ns, trees_ns;    /* spent on hosts and on trees, where there is a clock */
	uint64_t trees_longest_ns;      /* for one arrival or departure */
};

/* 0: as slow as without aggregation; 1: as fast as with all of it, or nothing is to be gained. */
double sim_score(const struct sim_result *result);
double sim_score_weighted(const struct sim_result *result);
double sim_utilization(const struct sim_result *result);
/* Seconds saved of those without aggregation, as a share; and with everything aggregated. */
double sim_gain(const struct sim_result *result);
double sim_gain_all(const struct sim_result *result);

struct sim_hooks {
	void (*progress)(void *context, uint64_t done, uint64_t jobs, double now_s);
	void (*sample)(void *context, const struct sim_sample *sample);
	uint64_t (*clock)(
		void *context); /* ns, for place_ns and trees_ns; nothing else depends on it */
	void *context;
};

struct sim_input {
	struct fabric fabric;
	const struct sim_step *steps;
	unsigned n_steps;
	const struct sim_job *jobs; /* by arrival */
	uint32_t n_jobs;
	struct sim_options options;
	struct sim_hooks hooks;
};

/* `outcomes` may be NULL, or has room for each job. */
trib_status sim_run(const struct sim_input *input, struct sim_outcome *outcomes,
                    struct sim_result *result);

#endif
