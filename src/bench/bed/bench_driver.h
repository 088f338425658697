/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_driver: what happens in a benchmark that compares systems. The driver reads options,
 * measures systems in turns, shows a table, writes JSON and a plot, and removes the hosts. A
 * benchmark says what it measures, and how it shows it.
 */
#ifndef TRIB_BENCH_BED_BENCH_DRIVER_H
#define TRIB_BENCH_BED_BENCH_DRIVER_H

#include "bench/bed/bench_bed.h"
#include "bench/report/json_report.h"
#include "options/options.h"

/*
 * Rows of options that are alike. `what`: the word for a run. `drawing`: what --plot does.
 * `bench` points to struct bench_options.
 */
/* clang-format off */
#define BENCH_OUTPUT_ROWS(bench, what, drawing)                                              \
	{ "hurry", 0, OPTION_FLAG, &(bench)->hurry, NULL,                                    \
	  "do not wait before every " what " until the machine is idle", NULL },             \
	{ "json", 0, OPTION_TEXT, &(bench)->json, "FILE",                                    \
	  "write the results to FILE as JSON (-: standard output)", NULL },                  \
	{ "plot", 0, OPTION_TEXT, &(bench)->plot, "FILE", drawing, NULL }
/* clang-format on */

/* Hook of --sizes; `options` is a struct bench_options. */
trib_status bench_sizes_take(void *options, const char *text);

struct bench_driver {
	const struct options *options;
	const struct bench_options *asked; /* a part of what the options fill */
	/*
	 * The benchmark's own; the functions get it. It has no initializer: otherwise all its
	 * zeros would be in the program's file.
	 */
	void *report;
	struct bench_result *results; /* a part of the report, of which *n are used */
	const unsigned *n;
	struct bench_place *beds; /* that `prepare` may open: they are closed at the end */
	unsigned n_beds;
	/* Completes the options. Returns what is wrong with them; NULL: nothing. */
	const char *(*settle)(void);
	/* Chooses systems, opens the hosts, and lays out the results that are to be measured. */
	trib_status (*prepare)(void *report);
	void (*table_print)(const void *report);
	const struct json_report *json;
	trib_status (*plot_write)(const void *report, const char *path);
	/* After all is shown: has the benchmark failed? */
	trib_status (*judge)(const void *report);
};

/* The command `trib bench NAME`; returns its exit code. */
int bench_drive(const struct bench_driver *driver, int argc, char **argv);

/* For `judge`. If a peer fails, that is a result. If Tributary fails, the benchmark has failed. */
trib_status bench_ours_check(const struct bench_result *results, unsigned n);

#endif
