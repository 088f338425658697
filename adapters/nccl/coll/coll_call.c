/* SPDX-License-Identifier: Apache-2.0 */
#include "coll_request.h"
#include "element_sum.h"
#include "common/plugin.h"

#include <stdlib.h>
#include <string.h>

static bool type_of(int type, trib_type *out)
{
	static const trib_type types[NCCL_TYPES] = {
		[NCCL_I8] = TRIB_I8,     [NCCL_U8] = TRIB_U8,         [NCCL_I32] = TRIB_I32,
		[NCCL_U32] = TRIB_U32,   [NCCL_I64] = TRIB_I64,       [NCCL_U64] = TRIB_U64,
		[NCCL_F16] = TRIB_F16,   [NCCL_F32] = TRIB_F32,       [NCCL_F64] = TRIB_F64,
		[NCCL_BF16] = TRIB_BF16, [NCCL_F8E4M3] = TRIB_F8E4M3, [NCCL_F8E5M2] = TRIB_F8E5M2,
	};

	if (type < 0 || type >= NCCL_TYPES)
		return false;
	*out = types[type];
	return true;
}

static bool op_of(int op, trib_op *out)
{
	static const trib_op ops[NCCL_OPS] = { [NCCL_SUM] = TRIB_SUM,
		                               [NCCL_MAX] = TRIB_MAX,
		                               [NCCL_MIN] = TRIB_MIN,
		                               [NCCL_AVG] = TRIB_AVG };

	if (op < 0 || op >= NCCL_OPS || op == NCCL_PROD)
		return false;
	*out = ops[op];
	return true;
}

int coll_support(int type, int op, int *supported)
{
	trib_type unused_type;
	trib_op unused_op;

	*supported = type_of(type, &unused_type) && op_of(op, &unused_op);
	return NCCL_SUCCESS;
}

static bool is_float_sum(trib_type type, trib_op op)
{
	return number_is_float(type) && (op == TRIB_SUM || op == TRIB_AVG);
}

/* Lets a short sum of floats have a scale for each element. False: no memory. */
static bool add_step(struct coll_request *request)
{
	const struct coll_call *call = &request->call;

	request->step = ELEMENT_NONE;
	if (call->kind != CALL_ALLREDUCE || !call->count || !is_float_sum(call->type, call->op) ||
	    call->count > COLL_ELEMENT_BYTES / trib_type_size(call->type))
		return true;
	request->step = ELEMENT_CLASSES;
	if (!request->classes) /* an element has at most as many bytes of a class */
		request->classes = malloc(COLL_ELEMENT_BYTES);
	if (!request->integers) /* at most 4 for a byte of the vector */
		request->integers = malloc((size_t)COLL_ELEMENT_BYTES * sizeof(int32_t));
	return request->classes && request->integers;
}

/* A request that is free. NULL: NCCL_REQUESTS_MAX are running. */
static struct coll_request *find_free(struct coll_comm *comm)
{
	for (unsigned i = 0; i < NCCL_REQUESTS_MAX; i++)
		if (!comm->requests[i].used)
			return &comm->requests[i];
	return NULL;
}

/* Takes a call of NCCL. *out NULL: too many are running, and NCCL has to call again. */
static int post(struct coll_comm *comm, const struct coll_call *call, void **out)
{
	struct coll_request *request;
	int result;

	pthread_mutex_lock(&comm->lock);
	result = plugin_result(comm->failed);
	request = comm->failed == TRIB_OK ? find_free(comm) : NULL;
	if (request) {
		request->comm = comm;
		request->call = *call;
		request->started = false;
		request->next = NULL;
		if (!add_step(request)) {
			request = NULL;
			result = NCCL_SYSTEM_ERROR;
		}
	}
	if (request) {
		request->used = true;
		*comm->last = request;
		comm->last = &request->next;
		coll_advance(comm);
	}
	pthread_mutex_unlock(&comm->lock);
	*out = request;
	return result;
}

int coll_allreduce(void *coll_comm, void *send, void *recv, size_t count, int type, int op,
                   void **out)
{
	struct coll_call call = {
		.kind = CALL_ALLREDUCE, .send = send, .recv = recv, .count = count
	};

	*out = NULL;
	if (!type_of(type, &call.type) || !op_of(op, &call.op))
		return NCCL_INVALID_ARGUMENT;
	return post(coll_comm, &call, out);
}

int coll_allgather(void *coll_comm, void *send, int parts, const struct nccl_part *recv,
                   size_t rank_bytes, size_t window, size_t window_bytes, void **out)
{
	struct coll_call call = { .kind = CALL_ALLGATHER,
		                  .send = send,
		                  .type = TRIB_U8,
		                  .rank_bytes = rank_bytes,
		                  .window = window,
		                  .window_bytes = window_bytes };

	*out = NULL;
	if (parts != 1 || recv->size < window_bytes)
		return NCCL_INVALID_ARGUMENT;
	call.recv = recv->address;
	return post(coll_comm, &call, out);
}

int coll_reduce_scatter(void *coll_comm, int parts, const struct nccl_part *send, void *recv,
                        size_t rank_bytes, size_t window, size_t window_bytes, int type, int op,
                        void **out)
{
	struct coll_call call = { .kind = CALL_REDUCE_SCATTER,
		                  .recv = recv,
		                  .rank_bytes = rank_bytes,
		                  .window = window,
		                  .window_bytes = window_bytes };
	size_t size;

	*out = NULL;
	if (parts != 1 || send->size < window_bytes || !type_of(type, &call.type) ||
	    !op_of(op, &call.op))
		return NCCL_INVALID_ARGUMENT;
	size = trib_type_size(call.type);
	if (rank_bytes % size || window % size || window_bytes % size)
		return NCCL_INVALID_ARGUMENT;
	call.send = send->address;
	return post(coll_comm, &call, out);
}

static size_t received_bytes(const struct coll_call *call)
{
	return call->kind == CALL_ALLREDUCE ? call->count * trib_type_size(call->type)
	                                    : call->window_bytes;
}

/* Stale values of this call must not be in the next one; see coll.h. */
static void clear_sent(const struct coll_call *call, unsigned rank)
{
	uint8_t *sent = call->send, *received = call->recv;
	size_t first, all = received_bytes(call);
	size_t bytes = call->kind == CALL_ALLGATHER ? coll_part(call, rank, &first) : all;

	if (sent + bytes <= received || received + all <= sent)
		memset(sent, 0, bytes);
}

/* The result is here. */
static void complete(struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	const struct coll_comm *comm = request->comm;

	if (request->step == ELEMENT_SUM)
		element_decode(call->type, request->integers, call->count, request->classes,
		               (unsigned)comm->size, call->op == TRIB_AVG, call->recv);
	clear_sent(call, (unsigned)comm->rank);
	request->used = false;
}

int coll_test(void *tested, int *done, int *size)
{
	struct coll_request *request = tested;
	struct coll_comm *comm = request->comm;
	int result;
	bool ended;

	*done = 0;
	pthread_mutex_lock(&comm->lock);
	coll_advance(comm);
	ended = request->started && request->step != ELEMENT_CLASSES && coll_parts_ended(request);
	result = plugin_result(comm->failed);
	if (ended && comm->failed == TRIB_OK) {
		complete(request);
		*done = 1;
		if (size)
			*size = (int)received_bytes(&request->call);
	}
	pthread_mutex_unlock(&comm->lock);
	return result;
}

struct coll_request *coll_new_requests(void)
{
	return calloc(NCCL_REQUESTS_MAX, sizeof(struct coll_request));
}

bool coll_is_busy(const struct coll_comm *comm)
{
	for (unsigned i = 0; i < NCCL_REQUESTS_MAX; i++)
		if (comm->requests[i].used)
			return true;
	return false;
}

void coll_free_requests(struct coll_request *requests)
{
	for (unsigned i = 0; requests && i < NCCL_REQUESTS_MAX; i++) {
		free(requests[i].classes);
		free(requests[i].integers);
	}
	free(requests);
}
