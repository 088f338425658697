/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's load as frames instead of datagrams: what an XDP program costs
 * where nothing has to be copied for it, as in a NIC's driver. All children
 * are on one host. See bpf/frames.bpf.c.
 */
#ifndef TRIB_CLI_PLANE_FRAMES_H
#define TRIB_CLI_PLANE_FRAMES_H

#include "base/status.h"
#include "cli/bpf/frames.h"

struct frames;

struct frames_options {
	const char *host, *server;    /* their addresses */
	const char *namespace, *link; /* of the host */
	uint8_t host_mac[6], server_mac[6];
	uint16_t port;             /* of the lane */
	unsigned children, window; /* packets under way */
	uint64_t packets;          /* that can be sent after a frames_prepare */
};

/* From now on results are caught at the host's link. */
trib_status frames_open(const struct frames_options *options, struct frames **out);
void frames_close(struct frames *frames);

/* Makes the packet of a child and position, sealed; gives its length. */
typedef uint32_t frames_packet(void *context, unsigned child, uint64_t position, void *packet);
/* Makes templates and checksums from position `first` on; `sum` is a result's first word. */
trib_status frames_prepare(struct frames *frames, uint64_t first, uint64_t behind, uint64_t sum,
                           frames_packet *packet, void *context);
/* Sends until frames_end is called; the caller's thread is in the host's namespace meanwhile. */
trib_status frames_run(struct frames *frames);
void frames_end(struct frames *frames);
/* What it has done since frames_prepare; NULL: it is not prepared. */
struct frames_state *frames_state(struct frames *frames);

#endif
