/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench latency: how long a small allreduce takes, of all systems side by side.
 * src/bench/bed has the hosts, the systems and the order of runs.
 *
 * bench_latency.c reads the command line and measures. latency_systems.c knows the
 * systems: Tributary's planes and engines, the peers with the settings that make
 * small messages fast, and a bare round trip. call_counts.c decides how many calls a
 * run makes. latency_table.c shows the rows and writes them as JSON,
 * latency_plot.c draws them.
 *
 * This room starts no process: bed does.
 */
#ifndef TRIB_BENCH_LATENCY_BENCH_LATENCY_H
#define TRIB_BENCH_LATENCY_BENCH_LATENCY_H

#include "bench/bed/bench_bed.h"
#include "bench/bed/plane_ways.h"
#include "bench/report/json_report.h"

#define LATENCY_HOSTS_MAX 8 /* numbers of hosts in one measurement */
#define LATENCY_SYSTEMS_MAX 14
#define LATENCY_ROWS_MAX (LATENCY_HOSTS_MAX * BENCH_SIZES_MAX * LATENCY_SYSTEMS_MAX)

struct latency_options {
	struct bench_options bench;
	uint64_t hosts[LATENCY_HOSTS_MAX];
	unsigned n_hosts;
	const char *systems; /* "xdp,udp" */
};

struct latency_report {
	const struct latency_options *options;
	struct bench_place bed;                       /* with the most hosts */
	struct bench_place places[LATENCY_HOSTS_MAX]; /* the first hosts of the bed */
	struct tree_layout trees[LATENCY_HOSTS_MAX];
	struct bench_system
		systems[LATENCY_SYSTEMS_MAX]; /* ours, then peers, then bare round trips */
	unsigned n_systems;
	/* The same systems, with the trees of each number of hosts. */
	struct bench_system placed[LATENCY_HOSTS_MAX][LATENCY_SYSTEMS_MAX];
	struct bench_result results[LATENCY_ROWS_MAX]; /* ordered by hosts, then by size */
	unsigned n;
	char left_out[LEFT_OUT_MAX]; /* systems that cannot run here, and why */
};

/* Fills report->systems. Systems that cannot run here go to report->left_out. */
trib_status latency_systems_choose(struct latency_report *report);
bool latency_system_is_peer(const struct bench_system *system);
/* Can the system make this call at all? A bare round trip is one packet. */
bool latency_system_takes(const struct bench_system *system, const struct bench_place *place,
                          const struct bench_options *options, uint64_t bytes);

/* For the driver; `context` is a struct latency_report. */
void latency_table_print(const void *context);
extern const struct json_report latency_json;
/* Over the size; with one size alone, over the number of hosts. */
trib_status latency_plot_write(const void *context, const char *path);

/* trib bench latency */
int bench_latency_run(int argc, char **argv);

#endif
