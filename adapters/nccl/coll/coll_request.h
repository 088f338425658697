/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside coll: a request of NCCL, and which collectives of the library it becomes (coll_start.c).
 */
#ifndef TRIB_NCCL_COLL_REQUEST_H
#define TRIB_NCCL_COLL_REQUEST_H

#include "coll.h"

#include "wire/packet.h"

enum call_kind { CALL_ALLREDUCE, CALL_ALLGATHER, CALL_REDUCE_SCATTER };
/* Of a sum with a scale for each element. */
enum element_step { ELEMENT_NONE, ELEMENT_CLASSES, ELEMENT_SUM };

/* What NCCL has called. */
struct coll_call {
	enum call_kind kind;
	void *send, *recv;
	trib_type type;
	trib_op op;
	size_t count;                            /* allreduce: elements */
	size_t rank_bytes, window, window_bytes; /* others, see struct nccl_collnet_v11 */
};

struct coll_request {
	struct coll_request *next; /* in coll_comm.first */
	struct coll_comm *comm;
	bool used;
	bool started;
	struct coll_call call;
	enum element_step step;
	void *classes, *integers; /* room for a sum of COLL_ELEMENT_BYTES; NULL: none so far */
	/* The library's collectives: one, or one for each rank. NULL: has not started, or has
	 * ended. */
	trib_request *parts[WIRE_CHILDREN_MAX];
};

/* The part of the window that belongs to a rank. Gives its bytes; *first: its first byte in the
 * window. */
size_t coll_part(const struct coll_call *call, unsigned rank, size_t *first);
/* Starts what can start, in the order of calls. */
void coll_advance(struct coll_comm *comm);
/* Have all collectives that were started ended? The communicator may have failed. */
bool coll_parts_ended(struct coll_request *request);

#endif
