/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meeting: all nodes of a collective communicator agree whether it can be used. Node 0 is the host:
 * the others connect to it. A node that does not come, or leaves, makes all others fail.
 *
 *   meeting_begin   all say whether they could join; the host draws the communicator's key
 *   (join)
 *   meeting_end     all say whether they have joined
 */
#ifndef TRIB_NCCL_MEETING_H
#define TRIB_NCCL_MEETING_H

#include "common/greeting.h"

#include "wire/packet.h"

struct meeting {
	int rank, size;
	int fds[WIRE_CHILDREN_MAX]; /* the host: of each node; others: [0]; -1: none */
	uint64_t key;               /* of the communicator, the same on all nodes; not 0 */
};

/*
 * `listener` and `host`: of node 0. `refusal`: why this node cannot join; NULL: it can. An error
 * says which node refuses and why.
 */
trib_status meeting_begin(struct meeting *meeting, int listener, const struct handle *host,
                          const char *refusal);
trib_status meeting_end(struct meeting *meeting, const char *refusal);
void meeting_close(struct meeting *meeting);

#endif
