/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/core: the aggregator, whatever carries its packets: threads, lanes and
 * pools around engine/dense.h, and who is let in. It never decides what a sum
 * is. Datagrams are in plane/udp, connections in plane/tcp (struct carrier),
 * sums in the kernel in plane/xdp.
 *
 * Thread t listens on port + t and owns lane t of every communicator, so that
 * no lock is on the way of a packet. Thread 0 also lets workers in and out
 * (registry.c), which takes a lock.
 */
#ifndef TRIB_PLANE_CORE_AGGREGATOR_H
#define TRIB_PLANE_CORE_AGGREGATOR_H

#include "base/secret.h"
#include "path/udp.h"

#define AGGREGATOR_QUEUE_BYTES (1u << 20) /* as long as nobody asks for more or less */

struct aggregator_options {
	const char *plane; /* "udp", "tcp", or "xdp": udp, and the kernel sums; NULL: udp */
	struct udp_address listen;
	uint64_t cookie;     /* what a worker must show to be let in */
	unsigned threads;    /* at least as many as a job has lanes */
	uint64_t pool_bytes; /* the most that all pools may take; 0: no limit */
	uint64_t link_bps;   /* that its children share; 0: as the device says, or unknown */
	unsigned capacity;   /* jobs that should have sums under way at once; 0: any number */
	bool multicast;
	bool native;            /* xdp: in the driver where that can be */
	const char *interfaces; /* xdp: which, "eth0,eth1"; NULL: those with the address */
	uint32_t queue_bytes;   /* xdp: of each thread's check queue; 0: its socket does */
	const char *pin;        /* cores for the threads, "0,1"; NULL: none */
	struct udp_options socket;
};

struct aggregator;

trib_status aggregator_start(const struct aggregator_options *options, struct aggregator **out);
/* Ends the threads. */
void aggregator_stop(struct aggregator *aggregator);
void aggregator_free(struct aggregator *aggregator);
/* The port that was bound, where 0 was asked for. */
uint16_t aggregator_port(const struct aggregator *aggregator);
/* "xdp: on eth0 (driver mode)", or "udp: XDP was asked for, but ...". */
const char *aggregator_plane(const struct aggregator *aggregator);
/*
 * From now on the cookies made from this secret are let in, and a cookie of 0
 * is no longer; the one in the options is as before. Any thread may call it.
 */
void aggregator_set_secret(struct aggregator *aggregator, const struct secret *secret);
/*
 * Takes this aggregator out of the trees of a communicator's plan: what it has of it
 * ends, and its ranks are told by whom and why. Any thread may call it; it is done
 * within a tick. False: too many such requests are waiting, ask again.
 */
bool aggregator_leave(struct aggregator *aggregator, uint16_t job, uint64_t key,
                      uint32_t generation, const char *why);
/* Out of all trees; returns when the ranks have been told, before aggregator_stop. */
void aggregator_leave_all(struct aggregator *aggregator, const char *why);
/* The first of the pages that tell of the plane; see describe.c. */
#define DESCRIBE_PLANE 65536u
/* One line of JSON with all counters; after aggregator_stop. Gives the length. */
int aggregator_describe(struct aggregator *aggregator, char *out, size_t size);

#endif
