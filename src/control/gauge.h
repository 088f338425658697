/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the way between two agents carries, found out by filling it for a moment: first one sends as
 * much as the way takes, then the other does. A connection is its own judge of how much that is,
 * and leaves others their part; so a link is credited with all that its interface carried
 * meanwhile. As soon as the claimed rate is nearly there, it is enough.
 *
 * Each agent listens for it, and asks others when it is told to; who asks has to know the secret.
 */
#ifndef TRIB_CONTROL_GAUGE_H
#define TRIB_CONTROL_GAUGE_H

#include "base/secret.h"
#include "control/nodes.h"
#include "path/udp.h"

struct gauge;

/* What an agent is told to do. */
struct gauge_wish {
	char self[TREE_NAME_MAX], with[TREE_NAME_MAX]; /* both as nodes are named */
	struct udp_address at;                         /* where the other one listens; length 0:
	                                                * that is not known */
	uint64_t enough_bps;
	bool may_stay; /* on this machine: for tests */
};

/*
 * Listens by TCP at the address, at any port. `done` is called from its thread when something new
 * is known.
 */
trib_status gauge_open(const struct udp_address *listen, void (*done)(void *context), void *context,
                       struct gauge **out);
void gauge_close(struct gauge *gauge);
uint16_t gauge_port(const struct gauge *gauge);
/* Until there is one, nobody is served. */
void gauge_set_secret(struct gauge *gauge, const struct secret *secret);
/* Soon, and in its own thread, one trial at a time: of several wishes the last one counts. */
void gauge_ask(struct gauge *gauge, const struct gauge_wish *wish);
/* What was seen before does not count any more. */
void gauge_forget(struct gauge *gauge, uint64_t before);
/* What is known by now, the newest first. */
unsigned gauge_ways(struct gauge *gauge, struct node_way out[NODE_WAYS]);

#endif
