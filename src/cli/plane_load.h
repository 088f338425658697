/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load for an aggregator: all children of one job, in this process. They
 * join as workers do, and then send fragments as fast as the aggregator takes
 * them, or at a rate. A lane is a thread with a socket a child.
 *
 * What a worker does around that is left out: no conversion, no buffer that is
 * walked through, nothing is sent twice. Payloads are the same each time, and
 * checksums are made before the clock runs.
 */
#ifndef TRIB_CLI_PLANE_LOAD_H
#define TRIB_CLI_PLANE_LOAD_H

#include "cli/plane_frames.h"
#include "net/cluster.h"
#include "path/udp.h"

#include <stdatomic.h>

#define LOAD_CHILDREN_MAX 16u
#define LOAD_LANES_MAX 16u
#define LOAD_UNLIMITED 0.0
#define LOAD_SILENT (-1.0) /* only heartbeats */

struct load_options {
	bool tcp;
	bool gso;    /* many packets in a send, which the sender's kernel cuts */
	bool check;  /* look at every word of every result */
	bool to_all; /* every child wants the result; otherwise child 0 alone */
	unsigned children, lanes;
	unsigned elements; /* of 4 bytes in a fragment */
	unsigned window;   /* fragments under way, where the rate is not limited; 0: what is best */
	uint64_t pool_bytes; /* of a lane */
	uint16_t port;       /* of the aggregator's lane 0 */
	const char *address; /* of the aggregator */
	const struct cluster_host *hosts[LOAD_LANES_MAX][LOAD_CHILDREN_MAX]; /* who is where */
	unsigned cores[LOAD_LANES_MAX];                                      /* of the threads */
	struct frames *frames[LOAD_LANES_MAX];      /* that send instead of sockets; or NULL */
	int fds[LOAD_LANES_MAX][LOAD_CHILDREN_MAX]; /* theirs, opened by load_open */
};

/* All lanes together. */
struct load_counts {
	uint64_t packets;                 /* of DATA that were handed to the kernel */
	uint64_t fragments;               /* sent by all children */
	uint64_t results;                 /* that came back to child 0 */
	uint64_t copies;                  /* ... and to the others */
	uint64_t wrong;                   /* with another sum than it has to be */
	uint64_t repeated;                /* that came twice, or were not waited for */
	uint64_t segments, retransmitted; /* of TCP */
};

struct load;

trib_status load_open(const struct load_options *options, struct load **out);
void load_close(struct load *load);
uint32_t load_cells(const struct load *load);

/* Starts the threads; `rate` is in fragments a second and lane; about so long, so that they can
   prepare. Comes back when they send. */
trib_status load_start(struct load *load, double rate, double seconds);
/* Latencies are noted from now on. */
void load_note(struct load *load);
/* No more is sent; waits for what is under way. After that results that miss are lost. */
void load_stop(struct load *load);

void load_count(const struct load *load, struct load_counts *sum);
/* Seconds from a fragment's last packet to its result, at this share of all; 0: none were noted. */
double load_latency(const struct load *load, double share);

#endif
