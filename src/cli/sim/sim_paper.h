/* SPDX-License-Identifier: Apache-2.0 */
/* A table of simulations, and how it is shown. */
#ifndef TRIB_CLI_SIM_SIM_PAPER_H
#define TRIB_CLI_SIM_SIM_PAPER_H

#include "cli/sim/sim_command.h"

#define PAPER_COLUMNS_MAX 4u

struct paper;

struct paper_policies {
	const char *name;
	enum sim_placement placement;
	enum sim_trees trees;
	enum turn_policy sharing;
	uint32_t candidates;
	double score, utilization; /* the paper's figure; 0: the paper has none */
};

/* Where the jobs of an experiment come from. */
enum paper_jobs {
	PAPER_JOBS_ASKED,  /* from the options */
	PAPER_JOBS_TRACES, /* drawn, a trace for each row */
	PAPER_JOBS_PAIRS,  /* two jobs of its own */
};

struct paper_about {
	const char *name, *title;
	enum paper_jobs jobs;
	unsigned rows, columns;
	const char *column_names[PAPER_COLUMNS_MAX];
	trib_status (*make)(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
	                    struct sim_task *task);
	void (*row_name)(unsigned row, char *name, size_t room);
	const struct paper_policies *reference; /* figures of the paper for each row, or NULL */
	const double *at; /* where a plot shows each row; NULL: one after the other */
};

struct paper {
	const struct sim_setup *setup;
	struct sim_models *models;
	const struct paper_about *about;
	struct sim_task *tasks; /* by row, column, seed */
	unsigned n_tasks, seeds;
};

/* Prints the table or JSON, and draws plots if they are asked for. */
trib_status paper_show(const struct paper *paper);

#endif
