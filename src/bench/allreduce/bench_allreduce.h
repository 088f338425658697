/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench allreduce: time and bandwidth of allreduces, of all systems side by side.
 * src/bench/bed has the hosts, the systems and the order of runs.
 *
 * bench_allreduce.c reads the command line, system_choice.c chooses systems and
 * trees, link_limit.c computes what the links allow. result_rows.c makes rows of the
 * results; result_table.c, result_json.c and result_plot.c show them.
 * merge_results.c shows results that were saved, which saved_results.c reads.
 *
 * This room starts no process: bed does.
 */
#ifndef TRIB_BENCH_ALLREDUCE_BENCH_ALLREDUCE_H
#define TRIB_BENCH_ALLREDUCE_BENCH_ALLREDUCE_H

#include "bench/bed/bench_bed.h"
#include "bench/bed/plane_ways.h"
#include "bench/report/json_report.h"

#define BENCH_SYSTEMS_MAX 12

struct bench_report {
	const struct bench_options *options;
	const struct bench_place *place;
	struct tree_layout trees[BENCH_TREES_MAX]; /* as in the options; a star if none is given */
	struct bench_system chosen[BENCH_SYSTEMS_MAX];
	char names[BENCH_SYSTEMS_MAX][64];
	const struct bench_system *systems[BENCH_SYSTEMS_MAX]; /* the first one is Tributary */
	unsigned n_systems;
	struct bench_result results[BENCH_SIZES_MAX * BENCH_SYSTEMS_MAX]; /* ordered by size */
	unsigned n;
	char where[256];             /* text of bench_place_describe */
	char times[64];              /* "3 x 10": repeats and iterations */
	char left_out[LEFT_OUT_MAX]; /* systems that cannot run here, and why */
};

/* Gb/s of a vector; 0: there is no result. */
double bench_gbps(const struct bench_result *result);

/* Shares of fragments and of results that had to be sent again. False: nothing was counted. */
bool bench_again(const struct bench_report *report, const struct bench_result *result,
                 double *fragments, double *results);

/* Least time that the links allow for an allreduce; 0: no limit. */
double bench_limit(const struct bench_place *place, const struct bench_options *options,
                   const struct bench_system *system, uint64_t bytes);

/* Fills report->systems from options->against. Systems that cannot run go to report->left_out. */
trib_status bench_systems_choose(struct bench_report *report);
/* Fills report->trees for the hosts of report->place. */
trib_status bench_trees_read(struct bench_report *report);

/* For the driver; `context` is a struct bench_report. */
void bench_table_print(const void *context);
extern const struct json_report bench_json;
trib_status bench_plot_write(const void *context, const char *path);

/* trib bench plot: a table and a plot of saved results. */
int bench_merge_run(int argc, char **argv);
/* trib bench allreduce */
int bench_allreduce_run(int argc, char **argv);

#endif
