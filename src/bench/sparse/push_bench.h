/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `trib bench sparse` share. */
#ifndef TRIB_BENCH_SPARSE_PUSH_BENCH_H
#define TRIB_BENCH_SPARSE_PUSH_BENCH_H

#include "bench/bed/bench_bed.h"
#include "bench/bed/plane_ways.h"
#include "bench/report/json_report.h"
#include "bench/sparse/push_lines.h"

#define PUSH_LIST_MAX 6u
#define PUSH_SYSTEMS_MAX 8u
#define PUSH_CASES_MAX (PUSH_LIST_MAX * PUSH_LIST_MAX * PUSH_SYSTEMS_MAX)
#define PUSH_ITERATIONS_MAX 500u
#define PUSH_SHARDS_MAX 8u

struct push_options {
	struct bench_options bench; /* pool_bytes: memory of the aggregator */
	uint64_t workers[PUSH_LIST_MAX];
	double losses[PUSH_LIST_MAX];
	unsigned n_workers, n_losses;
	uint64_t server_bps, shards;
	uint64_t keys, width, rows, steps;
	double zipf;
	const char *systems, *planes, *tensors, *sums, *sync;
	unsigned files; /* of tensors, one a worker; workers beyond them take the same again */
	bool drift, pulls;
};

enum push_way { PUSH_HOT, PUSH_SERVERS, PUSH_DENSE };

struct push_system {
	enum push_way way;
	const char *name, *plane;
};

/* The iterations of a run. */
struct push_curve {
	double seconds[PUSH_ITERATIONS_MAX], hot_share[PUSH_ITERATIONS_MAX];
	unsigned n;
};

/* What the processes of runs have told. A run that failed does not count. */
struct push_told {
	unsigned runs;
	struct push_figures figures; /* sums over these runs */
	double link_bytes;           /* received by the servers' links, in the timed parts */
	struct push_curve curve;     /* of the last one */
};

/* A row: a system, workers and a probability of loss. */
struct push_case {
	struct bench_system system; /* the first member: hooks find the case by it */
	const struct push_system *of;
	const struct push_options *options;
	const struct bench_place *place;
	const struct cluster_host *servers; /* hosts of the shards; NULL: this machine */
	double loss;
	struct push_told *told;
};

struct push_report {
	const struct push_options *options;
	struct bench_place beds[PUSH_LIST_MAX]; /* one for each probability of loss */
	struct bench_place places[PUSH_LIST_MAX][PUSH_LIST_MAX]; /* by loss, by workers */
	struct tree_layout trees[PUSH_LIST_MAX][PUSH_LIST_MAX];  /* of these places */
	struct push_system systems[PUSH_SYSTEMS_MAX];
	unsigned n_systems;
	struct push_case cases[PUSH_CASES_MAX];
	struct push_told told[PUSH_CASES_MAX];
	struct bench_result results[PUSH_CASES_MAX];
	unsigned n;
	char left_out[LEFT_OUT_MAX];
};

/* Fills report->systems. Systems that cannot run here go to report->left_out. */
trib_status push_systems_choose(struct push_report *report);
/* Fills row->system. `trees` are those of its workers. */
void push_case_place(struct push_case *row, const struct tree_layout *trees);

/* Updates of rows in an iteration, of all workers together; NaN: no run has succeeded. */
double push_updates(const struct push_report *report, unsigned row);
/* Updates of rows a second, of all workers together; NaN: no run has succeeded. */
double push_rate(const struct push_report *report, unsigned row);
/* The row's rate over that of the servers alone, with the same workers and loss; NaN: unknown. */
double push_gain(const struct push_report *report, unsigned row);

/* For the driver; `context` is a struct push_report. */
void push_table_print(const void *context);
extern const struct json_report push_json;
/* Updates a second over workers, over loss, or over time (--drift). */
trib_status push_plot_write(const void *context, const char *path);

#endif
