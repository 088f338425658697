/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balancer: which path takes the next chunk. Pure.
 *
 * All kinds: a path without room gets nothing, and a dead one neither. A path that has never
 * answered gets chunks only while no path has: until then its probes must do. A path with room is
 * used, also if others would be better and have none.
 */
#ifndef TRIB_PATH_BALANCE_BALANCER_H
#define TRIB_PATH_BALANCE_BALANCER_H

#include "path/balance/monitor.h"

#define BALANCE_SMALL 4096u /* bytes: messages up to this take the path of the least latency */

/* In the order of the words of TRIB_BALANCER. */
enum balancer_kind {
	BALANCE_ROUND_ROBIN, /* one after the other; also small messages */
	BALANCE_BANDWIDTH,   /* shares in proportion to measured bandwidth; half if congested */
	BALANCE_LATENCY,     /* the least round trip that has room */
	BALANCE_FLOWLET, /* stay on a path until a gap that hides the change, then by bandwidth */
	BALANCE_KINDS,
};

struct balancer {
	enum balancer_kind kind;
	unsigned current;         /* the path of the last chunk; PATHS_MAX: none */
	uint64_t last;            /* time of that chunk */
	double credit[PATHS_MAX]; /* bytes that a path is owed, if the shares are to come out even
	                           */
};

void balancer_init(struct balancer *balancer, enum balancer_kind kind);

/*
 * The path for a chunk of `bytes` of a message of `message` bytes; -1: none has room. room[i] is
 * the bytes that path i can take now (congestion window minus in flight). A path has room if
 * room[i] >= bytes.
 */
int balancer_choose(struct balancer *balancer, const struct monitor *monitor, const uint32_t room[],
                    uint32_t bytes, uint64_t message, uint64_t now);

#endif
