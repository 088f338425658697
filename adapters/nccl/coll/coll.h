/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll: collectives. Each communicator of NCCL is a communicator of the library, with a key of its
 * own within the user's job, so that there may be many. coll_open.c makes them, coll_call.c takes
 * calls, coll_start.c starts their collectives.
 *
 * Order: all ranks start collectives of the library in the order of NCCL's calls. A sum with a
 * scale for each element (element_sum.h) takes two of them. So the calls behind it start when its
 * second one has started.
 *
 * Vectors of NCCL hold stale values behind the end of the message. A short sum of floats has a
 * scale for each element, so they do no harm. A long one has the library's scale for each block.
 * There the plugin relies on NCCL's buffers: they start as zeros, and NCCL writes only messages
 * into them. Before NCCL learns that a call has ended, the plugin clears the send buffer. So the
 * stale values are zeros.
 */
#ifndef TRIB_NCCL_COLL_H
#define TRIB_NCCL_COLL_H

#include "common/nccl_abi.h"

#include "tributary.h"

#include <pthread.h>
#include <stdbool.h>

#define COLL_ELEMENT_BYTES 65536u /* a sum of up to this length has a scale for each element */

struct coll_request;

struct coll_comm {
	trib_comm *trib;
	int rank, size;
	pthread_mutex_t lock;
	struct coll_request *requests;      /* NCCL_REQUESTS_MAX of them */
	struct coll_request *first, **last; /* those that have not started all their collectives */
	trib_status failed;                 /* TRIB_OK: not failed */
};

/* coll_call.c: the requests of a communicator. NULL: no memory. */
struct coll_request *coll_new_requests(void);
void coll_free_requests(struct coll_request *requests);
/* Has NCCL requests that it has not seen end? */
bool coll_is_busy(const struct coll_comm *comm);

int coll_listen(int device, void *handle, void **listener);
int coll_connect(void *handles[], int nranks, int rank, void *listener, void **coll_comm);
int coll_close(void *coll_comm);
int coll_close_listen(void *listener);

int coll_support(int type, int op, int *supported);
int coll_allreduce(void *coll_comm, void *send, void *recv, size_t count, int type, int op,
                   void **request);
int coll_allgather(void *coll_comm, void *send, int parts, const struct nccl_part *recv,
                   size_t rank_bytes, size_t window, size_t window_bytes, void **request);
int coll_reduce_scatter(void *coll_comm, int parts, const struct nccl_part *send, void *recv,
                        size_t rank_bytes, size_t window, size_t window_bytes, int type, int op,
                        void **request);
int coll_test(void *request, int *done, int *size);

#endif
