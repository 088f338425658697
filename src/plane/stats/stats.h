/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/stats: what an aggregator tells about itself. It owns counters as values
 * for metrics and agents (stats), as JSON (describe), and their totals (totals).
 * It reads other rooms' data and must not change it.
 */
#ifndef TRIB_PLANE_STATS_STATS_H
#define TRIB_PLANE_STATS_STATS_H

#include "base/status.h"
#include "wire/packet.h"

#define STATS_COUNTS_MAX 24u

struct stats_count {
	const char *name;
	uint64_t count;
};

/* A child of a communicator, as its lane 0 sees it. */
struct stats_child {
	unsigned rank;   /* the lowest rank of the child */
	uint64_t covers; /* all ranks of the child, if it is an aggregator; 0: a worker */
	char host[WIRE_NAME_MAX];
	uint64_t done;     /* fragments whose result it has */
	uint64_t last;     /* fragments of which it was the last to arrive */
	uint64_t judged;   /* packets whose fate it knows */
	uint64_t missed;   /* those of `judged` that were lost on the way up */
	uint64_t repeated; /* results that it got only when repeated: lost on the way down */
	double silent_s;   /* seconds since its last packet */
	double waits;      /* part of its time that it waits, by its own report; below 0: unknown */
	double carries_bps; /* rate of its link, by its own report; 0: unknown */
	double away; /* how many times as fast the ring is that its large vectors take; 0: none */
};

struct stats_comm {
	uint16_t job, comm;
	uint64_t key;        /* the key that the ranks told: wire/key.h */
	uint32_t generation; /* generation of its plan; 0: there is no controller */
	const char *state;   /* "forming", "running" or "failed" */
	uint32_t size, lanes, kernel_lanes;
	uint64_t pool_bytes;
	uint64_t done;           /* fragments of lane 0 that no child needs any more */
	uint64_t finished_bytes; /* bytes of vectors, if all lanes are as far as lane 0 */
	unsigned first, n;       /* its children: `n` entries of stats.children from `first` on */
};

struct stats {
	const char *plane;
	unsigned threads;
	double uptime_s, cpu_s, kernel_s;
	uint64_t packets, bytes, payload; /* received, the kernel part included */
	uint64_t kernel_packets, kernel_payload;
	uint64_t results, repeats, sends, reports;
	unsigned capacity, at_once,
		most_at_once; /* jobs with sums in flight; capacity 0: not counted */
	uint64_t over_capacity,
		turns; /* times that a job began beyond the capacity; times that one began */
	unsigned n_verdicts, n_drops;
	struct stats_count verdicts[STATS_COUNTS_MAX], drops[STATS_COUNTS_MAX];
	unsigned n_comms, n_children;
	struct stats_comm *comms;
	struct stats_child *children;
};

struct aggregator;

void stats_open(struct aggregator *aggregator);
void stats_close(struct aggregator *aggregator);
/* Thread 0: fills what was requested. */
void stats_serve(struct aggregator *aggregator);
/* From any thread: waits for the aggregator's next tick. Fails if none comes, or without memory. */
trib_status aggregator_stats(struct aggregator *aggregator, struct stats **out);
void stats_free(struct stats *stats);

#endif
