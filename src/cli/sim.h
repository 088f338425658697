/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of trib sim share. */
#ifndef TRIB_CLI_SIM_H
#define TRIB_CLI_SIM_H

#include "sim/generate.h"
#include "sim/read.h"
#include "sim/sim.h"

#include <stdio.h>

#define SIM_MODELS_MAX 64u
#define SIM_NAME 64
#define SIM_TIES_HOSTS 4096u /* beyond that MINA's order of events costs too much */

/* What was asked for. */
struct sim_setup {
	const char *fabric, *traces, *models, *jobs, *philly, *gavel, *sizes, *paper;
	const char *per_job, *plot;
	uint64_t generate, trace, seed, seeds, limit, gpus, link, switches, candidates, bandwidth;
	double arrivals, shrink;
	struct sim_options sim;
	bool by_arrival, json;
};

/* Measured steps; those that a list names are added as it is read. */
struct sim_models {
	const char *folder;
	struct sim_step steps[SIM_MODELS_MAX];
	char names[SIM_MODELS_MAX][SIM_NAME];
	unsigned n;
};

/* The number of a model, which is read if it is new; also as "traces/NAME.json". */
trib_status models_find(struct sim_models *models, const char *name, uint32_t *step);
/* All of a list "a,b,c". */
trib_status models_read(struct sim_models *models, const char *list);
void models_free(struct sim_models *models);

/* "fat-tree:16", "fat-tree:16:2", "leaf-spine:16:8:4", or a file. */
trib_status fabric_make(struct fabric *fabric, const struct sim_setup *setup);

/* The jobs of one seed: a list, a generator or a trace. */
trib_status workload_make(struct sim_list *list, const struct sim_setup *setup,
                          struct sim_models *models, const struct fabric *fabric, uint64_t seed);

/* One simulation of many that run side by side. */
#define SIM_SAMPLES 256u

struct sim_task {
	struct sim_input input;
	struct sim_list list;         /* to be freed with the task, where it is its own */
	struct sim_outcome *outcomes; /* or NULL */
	struct sim_result result;
	struct sim_sample samples[SIM_SAMPLES];
	unsigned n_samples, every, skipped;
	bool is_sampled;
	double wall_s, cpu_s;
	trib_status status;
	char why[256];
	struct tasks *tasks;
};

/* One with the setup's jobs and options; steps are the caller's, when all models are read. */
trib_status task_make(struct sim_task *task, const struct sim_setup *setup,
                      struct sim_models *models, const struct fabric *fabric, uint64_t seed);

/*
 * Runs them all, each on a core of its own; a bar on the terminal says how far
 * it is. Fails with the first one's sentence that failed.
 */
trib_status tasks_run(struct sim_task *tasks, unsigned n, bool with_bar);
void tasks_free(struct sim_task *tasks, unsigned n);

/* Mean, smallest and largest. */
struct sim_spread {
	double mean, low, high;
};

typedef double sim_figure(const struct sim_result *result);
struct sim_spread spread_of(const struct sim_task *tasks, unsigned n, sim_figure *figure);

/* Text, JSON, a line a job, pictures. */
void sim_show_text(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n);
void sim_show_json(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n);
/* Parts of an object: how a simulation was set, and where its jobs are from. */
void sim_options_json(const struct sim_task *task);
void sim_jobs_json(const struct sim_setup *setup);
trib_status sim_show_jobs(const char *path, const struct sim_task *task,
                          const struct sim_models *models);
trib_status sim_plot(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n);

/* The experiments of MINA's paper: table1, fig11 ... fig14. */
int sim_paper(const struct sim_setup *setup, struct sim_models *models);

const char *placement_name(enum sim_placement placement);
const char *trees_name(enum sim_trees trees);
const char *sharing_name(enum turn_policy policy);

#endif
