/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench plane: what a plane's aggregator can take and what it costs.
 * bench_plane.c reads the command line, bench_plane_run.c decides what runs
 * when and condenses it, plane_bed.c runs one measurement, and
 * bench_plane_show.c prints, writes and draws.
 */
#ifndef TRIB_CLI_BENCH_PLANE_H
#define TRIB_CLI_BENCH_PLANE_H

#include "cli/plane_bed.h"

#define PLANES_MAX 8u
#define PLANE_NIC "xdp-nic" /* xdp, with frames as in a NIC's driver (plane_frames.h) */
#define PLANE_FRAMED \
	"-nic" /* udp, tcp: packets in pages, as a NIC's driver has them (net/relay.h) */
#define PLANE_RELAYED "xdp-relay" /* xdp, in the same way */
#define PLANE_CORES_MAX 8u
#define PLANE_COPIED "tcp-copied" /* tcp, with veth's copies that xdp has to pay */
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
	uint64_t rate; /* packets a second that a lane's children send; PLANE_NO_RATE: all it takes
	                */
	bool one_port, to_all, offload, gro, singly, check, hurry, steady, urgent;
	const char *json, *plot;
};

/* A figure over all repeats. */
struct plane_value {
	double median, low, high;
};

struct plane_row {
	const char *plane;
	unsigned cores;
	double offered; /* load: fragments a second; 0: as fast as it takes them */
	double share;   /* ... of the most */
	struct bed_figures runs[PLANE_REPEATS_MAX];
	unsigned n;
	char failed[200];
	/* Of the runs: */
	struct plane_value gbps, packets; /* payload that came to be in sums; packets a second */
	struct plane_value cost;          /* Gb a CPU-second */
	struct plane_value ns;            /* CPU time of a packet */
	struct plane_value busy;          /* of the aggregator's cores, 1 is all */
	struct plane_value
		threads; /* ns of a packet, by the threads' own time; 0: not all is in threads */
	struct plane_value program; /* ns of a packet in the XDP program alone */
	struct plane_value latency_50, latency_99, lost, retransmitted;
	unsigned disturbed; /* runs in each try of which others used the cores */
	bool shared;        /* the load ran on the same cores */
};

struct plane_report {
	const struct plane_options *options;
	struct plane_row rows[PLANE_ROWS_MAX];
	unsigned n;
};

/* Is it one that net/relay.h makes frames for? */
bool bench_plane_is_framed(const char *plane);
trib_status bench_plane_measure(struct plane_report *report);
const struct plane_row *bench_plane_find(const struct plane_report *report, const char *plane,
                                         unsigned cores, double share);

/* bench_plane_show.c */
void bench_plane_print(const struct plane_report *report);
trib_status bench_plane_json(const struct plane_report *report, const char *path);
trib_status bench_plane_plot(const struct plane_report *report, const char *path);

#endif
