/* SPDX-License-Identifier: Apache-2.0 */
/* What an aggregator counts, and the names under which users see the counts. */
#ifndef TRIB_PLANE_CORE_COUNTERS_H
#define TRIB_PLANE_CORE_COUNTERS_H

#include "engine/engines.h"
#include "wire/parse.h"

/* Why a packet was dropped: the first reason found. The faults of wire_parse() come first. */
enum drop {
	DROP_UNKNOWN = WIRE_FAULTS_END, /* no such job or communicator */
	DROP_COOKIE,
	DROP_UNPROVEN, /* a report from a new address without its token */
	DROP_EPOCH,
	DROP_LANE,
	DROP_STRANGER,   /* the sender is not a child of the communicator */
	DROP_REPLAYED,   /* a report that is older than one already taken */
	DROP_UNEXPECTED, /* a packet type that aggregators do not take */
	DROP_REFUSED,    /* a JOIN that cannot be granted */
	DROP_RESULT,     /* a parent's result that does not match the sum sent up */
	DROPS_END,
};

/* Made of uint64_t only: stats.c adds such structs field by field. */
struct counters {
	uint64_t packets, bytes; /* received, of all types */
	uint64_t payload;        /* payload bytes added to sums */
	uint64_t results, repeats, reports, sends;
	uint64_t messages;        /* a message holds several results of `sends` (UDP GSO) */
	uint64_t raised, lowered; /* sums sent to the parent, results received from it */
	uint64_t verdicts[ENGINE_COUNTED];
	uint64_t drops[DROPS_END];
	struct engine_counts on_switch; /* of engines that run on a switch */
};

/* The counts of all threads and of the kernel part. */
struct totals {
	struct counters sum; /* those of the kernel part included */
	double cpu_s, kernel_s;
	uint64_t kernel_packets, kernel_payload, kernel_results, kernel_busy;
	uint64_t kernel_raised, kernel_lowered, kernel_left;
	uint64_t kernel_queued, kernel_full;
	unsigned kernel_pools; /* lanes whose pool the kernel part shares */
};

/* The name in JSON and metrics; NULL: this value is never counted. */
const char *verdict_name(unsigned verdict);
const char *drop_name(unsigned drop);

#endif
