/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim: the command trib sim. It reads a fabric, models and jobs (sim_load.c), runs
 * simulations (sim_tasks.c), and shows them (sim_table.c, sim_plot.c). sim_paper.c
 * has the experiments of MINA's paper. The simulator itself is in src/sim; this
 * room must not simulate.
 */
#ifndef TRIB_CLI_SIM_SIM_COMMAND_H
#define TRIB_CLI_SIM_SIM_COMMAND_H

#include "options/json_writer.h"
#include "sim/generate.h"
#include "sim/read.h"
#include "sim/sim.h"

#include <stdio.h>

#define SIM_MODELS_MAX 64u
#define SIM_NAME 64
#define SIM_TIES_HOSTS 4096u /* with more hosts, MINA's order of events takes too long */

/* The options of the command. */
struct sim_setup {
	const char *fabric, *traces, *models, *jobs, *philly, *gavel, *sizes, *paper;
	const char *per_job, *plot;
	uint64_t generate, trace, seed, seeds, limit, gpus, link, switches, candidates, bandwidth;
	double arrivals, shrink;
	struct sim_options sim;
	bool by_arrival, json;
};

/* Steps that were measured, one a model. Models that a list names are added when it is read. */
struct sim_models {
	const char *folder;
	struct sim_step steps[SIM_MODELS_MAX];
	char names[SIM_MODELS_MAX][SIM_NAME];
	unsigned n;
};

/* Reads all models of a list "a,b,c". */
trib_status models_read(struct sim_models *models, const char *list);
void models_free(struct sim_models *models);

/* "fat-tree:16", "fat-tree:16:2", "leaf-spine:16:8:4", or a file. */
trib_status fabric_make(struct fabric *fabric, const struct sim_setup *setup);

/* One simulation of many that run side by side. */
#define SIM_SAMPLES 256u

struct sim_task {
	struct sim_input input;
	struct sim_list list;         /* freed with the task, if the task owns them */
	struct sim_outcome *outcomes; /* NULL: not asked for */
	struct sim_result result;
	struct sim_sample samples[SIM_SAMPLES];
	unsigned n_samples, every, skipped;
	bool is_sampled;
	double wall_s, cpu_s;
	trib_status status;
	char why[256];
	struct tasks *tasks;
};

/*
 * Makes a task with the setup's jobs and options. The caller sets the steps after all models
 * are read.
 */
trib_status task_make(struct sim_task *task, const struct sim_setup *setup,
                      struct sim_models *models, const struct fabric *fabric, uint64_t seed);

/*
 * Runs all tasks, each on a core of its own, with a progress bar on the terminal. If a task
 * fails, the first failure's sentence is the error.
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
/* Members of an object that is open: the options of a simulation, and where its jobs come from. */
void sim_options_json(struct json_writer *json, const struct sim_task *task);
void sim_jobs_json(struct json_writer *json, const struct sim_setup *setup);
trib_status sim_show_jobs(const char *path, const struct sim_task *task,
                          const struct sim_models *models);
trib_status sim_plot(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n);

/* The experiments of MINA's paper: table1, fig11 ... fig14; and jitter. */
int sim_paper(const struct sim_setup *setup, struct sim_models *models);

const char *placement_name(enum sim_placement placement);
const char *trees_name(enum sim_trees trees);
const char *sharing_name(enum turn_policy policy);

#endif
