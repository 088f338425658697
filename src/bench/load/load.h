/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: a load generator for an aggregator. It plays all children of one job in
 * this process. They join as workers do, then send fragments as fast as the
 * aggregator takes them, or at a rate. A lane is a thread with a socket for each
 * child.
 *
 * It does less than a worker: it converts nothing, reads no buffer, and repeats
 * nothing. Payloads are always the same, and checksums are made before the clock
 * runs.
 *
 * This room speaks the wire format (src/wire) and must not include a plane, the
 * worker, or another benchmark.
 */
#ifndef TRIB_BENCH_LOAD_LOAD_H
#define TRIB_BENCH_LOAD_LOAD_H

#include "bench/load/frame_sender.h"
#include "net/cluster.h"
#include "path/udp.h"

#include <stdatomic.h>

#define LOAD_CHILDREN_MAX 16u
#define LOAD_LANES_MAX 16u
#define LOAD_UNLIMITED 0.0
#define LOAD_SILENT (-1.0) /* sends heartbeats only */

struct load_options {
	bool tcp;
	bool gso;    /* many packets in one send, which the sender's kernel splits */
	bool check;  /* check every word of every result */
	bool to_all; /* every child wants the result; otherwise child 0 alone */
	unsigned children, lanes;
	unsigned elements; /* in a fragment, of 4 bytes each */
	unsigned window;   /* fragments in flight, if the rate is not limited; 0: the best known */
	uint64_t pool_bytes; /* pool of a lane */
	uint16_t port;       /* of the aggregator's lane 0 */
	const char *address; /* of the aggregator */
	const struct cluster_host
		*hosts[LOAD_LANES_MAX][LOAD_CHILDREN_MAX]; /* the host of each child */
	unsigned cores[LOAD_LANES_MAX];                    /* of each lane's thread */
	struct frames
		*frames[LOAD_LANES_MAX]; /* frame senders in place of sockets; NULL: sockets */
	int fds[LOAD_LANES_MAX]
	       [LOAD_CHILDREN_MAX]; /* sockets of the children, opened by load_open */
};

/* Sums over all lanes. */
struct load_counts {
	uint64_t packets;                 /* DATA packets given to the kernel */
	uint64_t fragments;               /* sent by all children */
	uint64_t results;                 /* results that child 0 received */
	uint64_t copies;                  /* results that the other children received */
	uint64_t wrong;                   /* results with a wrong sum */
	uint64_t repeated;                /* results that came twice, or unexpected */
	uint64_t segments, retransmitted; /* of TCP */
};

struct load;

trib_status load_open(const struct load_options *options, struct load **out);
void load_close(struct load *load);

/*
 * Starts the threads and returns when they send. `rate` is in fragments a second
 * for each lane; `seconds` is about how long they will send, so that they can
 * prepare.
 */
trib_status load_start(struct load *load, double rate, double seconds);
/* Records latencies from now on. */
void load_note(struct load *load);
/* Stops sending and waits for what is in flight. Results that are missing then count as lost. */
void load_stop(struct load *load);

void load_count(const struct load *load, struct load_counts *sum);
/*
 * Seconds from a fragment's last packet to its result, at this quantile (0 to 1). 0: none was
 * recorded.
 */
double load_latency(const struct load *load, double share);

#endif
