/* SPDX-License-Identifier: Apache-2.0 */
/* ring_abort: a rank that fails tells other ranks why, around the ring and directly. */
#ifndef TRIB_WORKER_RANKS_RING_ABORT_H
#define TRIB_WORKER_RANKS_RING_ABORT_H

#include "worker/comm/comm.h"
#include "worker/ring/message_queue.h"
#include "worker/ring/ring.h"

struct ring_abort {
	struct ring_head head;
	int32_t status;
	uint32_t rank; /* the rank concerned, as in struct wire_abort */
	char text[512];
};

/* False: the communicator has not failed. */
bool ring_abort_write(struct trib_comm *comm, struct ring_abort *abort);
/* If the message is such news, the communicator fails. */
void ring_abort_take(struct trib_comm *comm, const struct message *message);

#endif
