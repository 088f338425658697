/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim owns the simulator: many jobs on one fabric, event by event. It shows what placement,
 * trees and turns (src/plan) do to completion times. It must not touch clocks, files or
 * threads. The same input gives the same result on every machine.
 *
 * A job is a number of equal steps (plan/turns/pattern.h). Jobs wait in a queue in order of
 * arrival. The first job waits until there are enough hosts for it. A job's completion time
 * counts from the moment that it gets its hosts.
 */
#ifndef TRIB_SIM_SIM_H
#define TRIB_SIM_SIM_H

#include "base/status.h"
#include "plan/fabric/fabric.h"
#include "plan/turns/turn_rule.h"

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
	uint32_t step; /* index of the input's step */
	uint32_t hosts;
	uint32_t steps; /* number of steps; SIM_ENDLESS: until the simulation ends */
};

struct sim_options {
	enum sim_placement placement;
	enum sim_trees trees;
	enum turn_policy sharing;
	struct wire_model wire;
	double speedup;      /* speed-up of the computation against the measured steps */
	double jitter;       /* standard deviation of the computation of a step, of its mean */
	double alpha;        /* alpha of the placement's score */
	uint32_t candidates; /* trees examined for a job; 0: all */
	double migrate_s;    /* time without aggregation when a job's tree migrates */
	double until_s;      /* end of the simulation; 0: when all jobs have ended */
	bool public_ties;    /* orders simultaneous events as MINA's simulator does: sim/ties.h */
	uint64_t seed;
};

#define SIM_OPTIONS_DEFAULT                                                                     \
	(struct sim_options)                                                                    \
	{                                                                                       \
		.placement = SIM_PLACE_SMART, .trees = SIM_TREES_SMART, .sharing = TURN_FRUGAL, \
		.wire = WIRE_MODEL_DEFAULT, .speedup = 1, .alpha = 0.5, .public_ties = true,    \
		.seed = 1                                                                       \
	}

/* The state of the cluster after an arrival or departure of a job. */
struct sim_sample {
	double time_s;
	uint32_t running;
	uint32_t fragments;  /* of the free hosts */
	uint32_t conflicted; /* jobs that must share a tree's links, or have no tree */
	double aggregated_s; /* seconds aggregated so far, over all jobs */
	double run_s;        /* seconds run so far, over all jobs */
};

/* The outcome of a job. */
struct sim_outcome {
	double start_s, end_s;  /* end_s negative: it did not end */
	double fast_s, plain_s; /* its ideal durations, with all and without any aggregation */
	double aggregated_s;
	uint32_t migrations;
};

struct sim_result {
	uint64_t events;
	double jct_s, jct_all_s, jct_none_s;                /* sums over jobs */
	double weighted_s, weighted_all_s, weighted_none_s; /* sums weighted by a job's hosts */
	double aggregated_s;
	double wait_s; /* time in the queue, over all jobs */
	double end_s;
	double host_s;             /* host seconds in use */
	uint64_t done;             /* jobs that ended */
	uint64_t migrations;       /* to another tree */
	uint64_t unserved;         /* jobs that never had a tree */
	uint64_t peak;             /* most jobs at once */
	uint64_t place_ns;         /* time to choose hosts; 0 without a clock */
	uint64_t trees_ns;         /* time to choose trees; 0 without a clock */
	uint64_t trees_longest_ns; /* longest time for one arrival or departure */
};

/* 0: as slow as without aggregation. 1: as fast as with full aggregation, or no gain is possible.
 */
double sim_score(const struct sim_result *result);
double sim_score_weighted(const struct sim_result *result);
double sim_utilization(const struct sim_result *result);
/* The share of time saved against no aggregation: as simulated, and with full aggregation. */
double sim_gain(const struct sim_result *result);
double sim_gain_all(const struct sim_result *result);

struct sim_hooks {
	void (*progress)(void *context, uint64_t done, uint64_t jobs, double now_s);
	void (*sample)(void *context, const struct sim_sample *sample);
	/* Nanoseconds, only for place_ns and trees_ns; NULL: no clock. */
	uint64_t (*clock)(void *context);
	void *context;
};

struct sim_input {
	struct fabric fabric;
	const struct sim_step *steps;
	unsigned n_steps;
	const struct sim_job *jobs; /* sorted by arrival */
	uint32_t n_jobs;
	struct sim_options options;
	struct sim_hooks hooks;
};

/* `outcomes` has room for each job, or is NULL. */
trib_status sim_run(const struct sim_input *input, struct sim_outcome *outcomes,
                    struct sim_result *result);

#endif
