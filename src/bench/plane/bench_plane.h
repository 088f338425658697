/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench plane: how much a plane's aggregator can take, and its CPU time.
 *
 * bench_plane.c reads the command line. plane_run.c decides what runs when and
 * condenses the results. plane_bed.c runs one measurement with a load (bench/load).
 * plane_table.c and plane_plot.c show the results.
 *
 * This room starts the aggregator in its own process, through
 * plane/aggregator.h; it must not use the inside of a plane.
 */
#ifndef TRIB_BENCH_PLANE_BENCH_PLANE_H
#define TRIB_BENCH_PLANE_BENCH_PLANE_H

#include "bench/plane/plane_bed.h"

#define PLANES_MAX 8u
#define PLANE_NIC                                                                                \
	"xdp-nic"           /* xdp, with frames as in a NIC's driver (bench/load/frame_sender.h) \
	                     */
#define PLANE_FRAMED "-nic" /* udp, tcp: packets in pages, as from a NIC's driver (net/relay.h) */
#define PLANE_RELAYED "xdp-relay" /* xdp, with packets from net/relay.h */
#define PLANE_CORES_MAX 8u
#define PLANE_COPIED "tcp-copied" /* tcp, with the same copies by veth that xdp has */
#define PLANE_NO_RATE UINT64_MAX
#define PLANE_ROWS_MAX 64u
#define PLANE_REPEATS_MAX 99u

enum plane_mode { PLANE_THROUGHPUT, PLANE_CORES, PLANE_LOAD };

struct plane_options {
	enum plane_mode mode;
	const char *planes[PLANES_MAX];
	unsigned n_planes;
	unsigned cores[PLANE_CORES_MAX];
	unsigned n_cores;
	uint64_t children, elements, window, pool_bytes, repeats;
	double seconds;
	uint64_t rate; /* packets a second that the children of a lane send; PLANE_NO_RATE: as many
	                  as it takes */
	bool one_port, to_all, offload, gro, singly, check, hurry, steady, urgent;
	const char *json, *plot;
};

/* A figure over all repeats of a row. */
struct plane_value {
	double median, low, high;
};

struct plane_row {
	const char *plane;
	unsigned cores;
	double offered; /* load: fragments a second; 0: as fast as the aggregator takes them */
	double share; /* load: `offered` over the most that it takes; below 0: this row measures the
	                 most */
	struct bed_figures runs[PLANE_REPEATS_MAX];
	unsigned n;
	char failed[200];
	/* Condensed from the runs: */
	struct plane_value gbps, packets; /* payload in sums, in Gb/s; packets a second */
	struct plane_value cost;          /* Gb added in a CPU-second */
	struct plane_value ns;            /* CPU time of a packet, in nanoseconds */
	struct plane_value busy;          /* share of the aggregator's cores; 1: all */
	struct plane_value threads;       /* CPU time of a packet in the aggregator's threads, in
	                                     nanoseconds; 0: not all work is in threads */
	struct plane_value program; /* time of a packet in the XDP program alone, in nanoseconds */
	struct plane_value latency_50, latency_99, lost, retransmitted;
	unsigned disturbed; /* runs in which other processes used the cores, at each attempt */
	bool shared;        /* the load ran on the same cores */
};

struct plane_report {
	const struct plane_options *options;
	struct plane_row rows[PLANE_ROWS_MAX];
	unsigned n;
};

/* Does net/relay.h make frames for this plane? */
bool bench_plane_is_framed(const char *plane);
trib_status bench_plane_measure(struct plane_report *report);
const struct plane_row *bench_plane_find(const struct plane_report *report, const char *plane,
                                         unsigned cores, double share);

/* plane_table.c and plane_plot.c */
void bench_plane_print(const struct plane_report *report);
trib_status bench_plane_json(const struct plane_report *report, const char *path);
trib_status bench_plane_plot(const struct plane_report *report, const char *path);

/* trib bench plane */
int bench_plane_run(int argc, char **argv);

#endif
