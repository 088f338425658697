/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read: reads steps, job lists and cluster traces from text in memory. An error starts with
 * the line number.
 */
#ifndef TRIB_SIM_READ_H
#define TRIB_SIM_READ_H

#include "sim/sim.h"

#include <stddef.h>

#define READ_OPS_MAX 65536u
#define READ_JOBS_MAX (1u << 24)
#define READ_STEPS_MAX 1000000000u
#define READ_TIME_MAX 1e12

/*
 * A step as a JSON object: "duration" in seconds, "allreduces" with "start" in
 * seconds and "size" in bytes, in the order in which they run. Other members are ignored.
 */
trib_status read_step(struct sim_step *step, const char *text);
void step_free(struct sim_step *step);

struct sim_list {
	struct sim_job *jobs;
	uint32_t n, room;
};

trib_status list_add(struct sim_list *list, const struct sim_job *job);
void list_free(struct sim_list *list);
/* Sorts by arrival; the order of equal arrivals stays. */
trib_status list_sort(struct sim_list *list);

/* Finds the step of a model by name; the error says why there is none. */
struct read_models {
	trib_status (*find)(void *context, const char *name, uint32_t *step);
	void *context;
	uint32_t most; /* larger jobs are refused, because the fabric has no more hosts; 0: none */
};

/* Lines "index,model,hosts,steps[,arrival in s]"; # starts a comment. */
trib_status read_jobs(struct sim_list *list, const char *text, const struct read_models *models);

/* How jobs of another cluster's trace are converted. The trace has other models than ours, so a
 * model is drawn at random. */
struct read_cluster {
	const double *step_s; /* by model: seconds of computation in a step */
	unsigned n_models;
	uint32_t gpus_per_host;
	double shrink; /* durations and arrival times are divided by this */
	uint32_t most; /* larger jobs get this many hosts */
	uint64_t seed;
};

/* Microsoft's Philly: "timestamp,duration,num_gpus,gpu_time,cluster"; names may come first. */
trib_status read_philly(struct sim_list *list, const char *text,
                        const struct read_cluster *cluster);
/*
 * Gavel, separated by tabs: type, command, flag, flag, steps, arrival, scale factor; or, in its
 * traces of a physical cluster, type, command, folder, flag, flag, steps, scale factor, priority,
 * objective, arrival.
 */
trib_status read_gavel(struct sim_list *list, const char *text, const struct read_cluster *cluster);

#endif
