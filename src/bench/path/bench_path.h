/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench path: what a leaf-spine fabric carries between two hosts over several paths: by our
 * channel, by TCP flows that the fabric's hash spreads (ECMP), and by the kernel's own multipath
 * TCP.
 *
 * bench_path.c reads the command line and measures case by case. path_bed.c has the fabric and the
 * background traffic. path_channel.c and path_stream.c carry the bytes, path_mice.c short flows
 * beside them. path_timeline.c cuts paths meanwhile. path_table.c shows the rows.
 *
 * This room measures the channel from outside: it sends and receives as any user does.
 */
#ifndef TRIB_BENCH_PATH_BENCH_PATH_H
#define TRIB_BENCH_PATH_BENCH_PATH_H

#include "net/cluster.h"
#include "path/balance/monitor.h"

#include <pthread.h>
#include <stdatomic.h>

#define PATH_ROWS_MAX 256u
#define PATH_LIST_MAX 16u
#define PATH_LATENCIES 4096u
#define PATH_EVENTS_MAX 16u
#define PATH_CURVE_MAX 500u
#define PATH_CURVE_S 0.05 /* between two points */
#define PATH_MICE_MAX 8192u

enum path_transport { TRANSPORT_OURS, TRANSPORT_ECMP, TRANSPORT_MPTCP, TRANSPORT_TCP, TRANSPORTS };

struct path_bed {
	struct cluster cluster;
	bool made; /* by this process, which removes it */
	const struct cluster_host *from, *to, *load_from,
		*load_to; /* load: NULL if too few hosts */
	unsigned paths;
	double bps[PATHS_MAX];  /* rate of each path; 0: not shaped */
	double load[PATHS_MAX]; /* share of it that background traffic takes */
};

struct path_case {
	enum path_transport transport;
	unsigned paths;
	uint32_t bytes; /* of a message */
	uint32_t chunk; /* 0: TRIB_CHUNK */
	bool token;     /* a message of 2 bytes goes there and back */
	bool found;     /* paths are found by discovery */
	bool check;     /* every byte is compared */
	bool timeline;  /* the row has a curve */
	uint32_t mice;  /* bytes of short flows beside it; 0: none */
	double warm_s, seconds;
};

/* Bytes that have come, at points in time. */
struct path_curve {
	unsigned n;
	struct path_point {
		double at_s;
		uint64_t bytes;
	} points[PATH_CURVE_MAX];
};

/* What happens to paths during a run. */
struct path_events {
	unsigned n;
	struct path_event {
		double at_s; /* below 0: before the run begins */
		bool cuts;   /* false: restores */
		unsigned path;
	} list[PATH_EVENTS_MAX];
};

/* How long short flows took; in order when they have ended. */
struct path_fct {
	unsigned n;
	double seconds[PATH_MICE_MAX];
};

struct path_row {
	struct path_case what;
	double gbps;             /* of messages */
	double share_of_sum;     /* of what the free bandwidth of all paths carries */
	double paths[PATHS_MAX]; /* ours: Gb/s of each path */
	double cpu;              /* cores in use, sender and receiver */
	double repeated;         /* ours: share of packets that were sent again */
	double latency_s;        /* token: median of half a round trip; 0: not measured */
	uint64_t messages;
	double mice_s, mice_p99_s; /* median and 99th percentile of short flows */
	struct path_curve curve;
	char note[200]; /* why it failed; "": it did not */
};

/* What the threads of a run share. */
struct path_job {
	const struct path_bed *bed;
	const struct path_case *what;
	uint16_t port;
	_Atomic int ready; /* the receiver's port is known, or it has failed */
	_Atomic bool stop; /* told by the main thread, and by a thread that failed */
	_Atomic bool failed;
	char why[200];
	_Atomic uint64_t bytes, at; /* received up to this time */
	_Atomic uint64_t messages;
	_Atomic uint64_t by_path[PATHS_MAX];
	_Atomic uint64_t packets, repeated;
	_Atomic uint64_t cpu_ns[2];
	double latencies[PATH_LATENCIES];
	_Atomic unsigned n_latencies;
};

typedef void *(*path_thread)(void *job);

/* Ends the job with the last error's sentence. */
void path_job_fail(struct path_job *job);
void path_job_count(struct path_job *job, uint64_t bytes);
/* Tells the CPU time of the calling thread. */
void path_job_cpu(struct path_job *job, unsigned side);

trib_status path_bed_open(struct path_bed *bed, const struct cluster_options *options,
                          const char *name);
void path_bed_close(struct path_bed *bed);
/* What `paths` paths leave free, as bits of messages a second. */
double path_bed_sum(const struct path_bed *bed, unsigned paths);

/* Constant background traffic on the paths, by bed->load. */
struct path_load;
trib_status path_load_start(const struct path_bed *bed, struct path_load **out);
void path_load_stop(struct path_load *load);

/* "1:cut=2,3.5:restore=2": seconds, and a path. */
trib_status path_events_parse(const char *text, struct path_events *events);
/* Makes those happen that are between two points in time. */
trib_status path_events_reach(const struct path_events *events, struct cluster *cluster,
                              double from_s, double to_s);
/* Restores all paths. */
trib_status path_events_undo(const struct path_events *events, struct cluster *cluster);
void path_curve_add(struct path_curve *curve, double at_s, uint64_t bytes);
/* The rate between points i - 1 and i. */
double path_curve_gbps(const struct path_curve *curve, unsigned i);

/* Short flows between the other two hosts. bytes 0: none, and *out is NULL. */
struct path_mice;
trib_status path_mice_start(const struct path_bed *bed, uint32_t bytes, struct path_fct *fct,
                            struct path_mice **out);
void path_mice_stop(struct path_mice *mice);
/* The time that this share of the flows was below. */
double path_fct_at(const struct path_fct *fct, double share);

/* Sender and receiver of each transport. */
void *path_channel_send(void *job);
void *path_channel_receive(void *job);
void *path_stream_send(void *job);
void *path_stream_receive(void *job);
/* NULL: multipath TCP works here. Otherwise why it does not. */
const char *path_mptcp_missing(void);

const char *path_transport_name(enum path_transport transport);
void path_table_print(const struct path_row *rows, unsigned n);
trib_status path_json_write(const struct path_bed *bed, const struct path_row *rows, unsigned n,
                            const char *file);
trib_status path_plot_write(const struct path_row *rows, unsigned n, const char *file);

/* trib bench path */
int bench_path_run(int argc, char **argv);

#endif
