/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a lane's load as frames instead of datagrams. So an XDP program is measured
 * where nothing is copied for it, as in a NIC's driver. All children are on one
 * host. See bpf/frames.bpf.c.
 */
#ifndef TRIB_BENCH_LOAD_FRAME_SENDER_H
#define TRIB_BENCH_LOAD_FRAME_SENDER_H

#include "base/status.h"
#include "bench/load/bpf/frame_template.h"

struct frames;

/* A build that cannot compile BPF programs leaves these functions out: frames_open is NULL then. */
#define WITH_BPF __attribute__((weak))

struct frames_options {
	const char *host, *server;    /* their addresses */
	const char *namespace, *link; /* of the host */
	uint8_t host_mac[6], server_mac[6];
	uint16_t port;             /* of the lane */
	unsigned children, window; /* packets in flight */
	uint64_t packets;          /* how many can be sent after a frames_prepare */
};

/* Also attaches a program to the host's link that catches results. */
trib_status frames_open(const struct frames_options *options, struct frames **out) WITH_BPF;
void frames_close(struct frames *frames) WITH_BPF;

/* Makes the sealed packet of a child and position; returns its length in bytes. */
typedef uint32_t frames_packet(void *context, unsigned child, uint64_t position, void *packet);
/* Makes templates and checksums from position `first` on. `sum` is the first word of a result. */
trib_status frames_prepare(struct frames *frames, uint64_t first, uint64_t behind, uint64_t sum,
                           frames_packet *packet, void *context) WITH_BPF;
/* Sends until frames_end is called. The calling thread is in the host's namespace meanwhile. */
trib_status frames_run(struct frames *frames) WITH_BPF;
void frames_end(struct frames *frames) WITH_BPF;
/* Counters since frames_prepare; NULL: it was not called. */
struct frames_state *frames_state(struct frames *frames) WITH_BPF;

#endif
