/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregator's counters as values, for metrics and agents. */
#ifndef TRIB_PLANE_CORE_STATS_H
#define TRIB_PLANE_CORE_STATS_H

#include "plane/core/aggregator.h"
#include "wire/packet.h"

#define STATS_COUNTS_MAX 24u

struct stats_count {
	const char *name;
	uint64_t count;
};

/* A child of a communicator, as its lane 0 sees it. */
struct stats_child {
	unsigned rank;   /* the lowest that comes by it */
	uint64_t covers; /* all that do, where it is an aggregator; 0: a worker */
	char host[WIRE_NAME_MAX];
	uint64_t done;      /* fragments whose result it has */
	uint64_t last;      /* fragments that it was the last to bring */
	uint64_t judged;    /* packets of which it knows whether they arrived */
	uint64_t missed;    /* of those, how many were lost on the way up */
	uint64_t repeated;  /* results that came to it only when sent again: lost on the way down */
	double silent_s;    /* since it was last heard of */
	double waits;       /* share of its time, by its own word; below 0: it has not said */
	double carries_bps; /* its link, the same; 0: it does not know */
};

struct stats_comm {
	uint16_t job, comm;
	uint64_t key;        /* as ranks have told it: wire/key.h */
	uint32_t generation; /* of the plan that it is from; 0: there is no controller */
	const char *state;   /* "forming", "running" or "failed" */
	uint32_t size, lanes, kernel_lanes;
	uint64_t pool_bytes;
	uint64_t done;           /* fragments that no child needs any more, in lane 0 */
	uint64_t finished_bytes; /* of vectors, so far: as if all lanes were as far as that */
	unsigned first, n;       /* its children */
};

struct stats {
	const char *plane;
	unsigned threads;
	double uptime_s, cpu_s, kernel_s;
	uint64_t packets, bytes, payload; /* taken in, those of the kernel included */
	uint64_t kernel_packets, kernel_payload;
	uint64_t results, repeats, sends, reports;
	unsigned capacity, at_once,
		most_at_once;          /* jobs with sums under way; capacity 0: not counted */
	uint64_t over_capacity, turns; /* times that one began to; those above the capacity */
	unsigned n_verdicts, n_drops;
	struct stats_count verdicts[STATS_COUNTS_MAX], drops[STATS_COUNTS_MAX];
	unsigned n_comms, n_children;
	struct stats_comm *comms;
	struct stats_child *children;
};

/*
 * From any thread: waits for the aggregator's next tick. Fails where that does
 * not come, or memory is short.
 */
trib_status aggregator_stats(struct aggregator *aggregator, struct stats **out);
void stats_free(struct stats *stats);

#endif
