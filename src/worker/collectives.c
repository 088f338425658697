/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective is one or more rounds: who contributes (`from`) and who
 * wants the result (`to`). A reduce-scatter is a reduce to each rank in turn,
 * an allgather a broadcast from each.
 */
#include "worker/comm.h"

#include <stdlib.h>
#include <string.h>

struct call {
	const char *what;
	trib_comm *comm;
	const void *send;
	void *recv;
	size_t count;
	trib_type type;
	trib_op op;
	int root;
};

static trib_status check_call(const struct call *call, size_t parts, trib_request **request)
{
	size_t size = trib_type_size(call->type);

	if (!call->comm || !request)
		return status_fail(TRIB_ERR_ARGUMENT, "%s: no communicator", call->what);
	*request = NULL;
	if (!size || (unsigned)call->op > TRIB_AVG)
		return status_fail(TRIB_ERR_ARGUMENT, "%s: unknown type %d or operation %d",
		                   call->what, (int)call->type, (int)call->op);
	if (call->root < 0 || call->root >= call->comm->config.size)
		return status_fail(TRIB_ERR_ARGUMENT, "%s: root %d is not in 0..%d", call->what,
		                   call->root, call->comm->config.size - 1);
	if (call->count > SIZE_MAX / 2 / size / parts)
		return status_fail(TRIB_ERR_ARGUMENT, "%s: %zu elements do not fit in memory",
		                   call->what, call->count);
	if (call->count && (!call->send || (call->send == TRIB_IN_PLACE && !call->recv)))
		return status_fail(TRIB_ERR_ARGUMENT, "%s: no input buffer", call->what);
	return TRIB_OK;
}

static bool is_in_place(const struct call *call)
{
	return call->send == TRIB_IN_PLACE || call->send == call->recv;
}

static const uint8_t *input(const struct call *call)
{
	return call->send == TRIB_IN_PLACE ? call->recv : call->send;
}

static trib_status start(const struct call *call, const struct round_spec *specs, size_t n,
                         trib_request **out)
{
	struct trib_request *request = request_new(call->comm, call->what, call->count);

	if (!request)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", call->what);
	return request_post(request, specs, n, out);
}

trib_status trib_iallreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                            trib_type type, trib_op op, trib_request **request)
{
	struct call call = { "allreduce", comm, send, recv, count, type, op, 0 };
	trib_status status = check_call(&call, 1, request);
	struct round_spec spec = {
		.count = count, .type = type, .op = op, .from = WIRE_ALL, .to = WIRE_ALL
	};

	if (status != TRIB_OK)
		return status;
	if (count && !recv)
		return status_fail(TRIB_ERR_ARGUMENT, "allreduce: no output buffer");
	spec.source = input(&call);
	spec.target = recv;
	return start(&call, &spec, 1, request);
}

trib_status trib_ireduce(trib_comm *comm, const void *send, void *recv, size_t count,
                         trib_type type, trib_op op, int root, trib_request **request)
{
	struct call call = { "reduce", comm, send, recv, count, type, op, root };
	trib_status status = check_call(&call, 1, request);
	struct round_spec spec = {
		.count = count, .type = type, .op = op, .from = WIRE_ALL, .to = (uint8_t)root
	};

	if (status != TRIB_OK)
		return status;
	if (count && comm->config.rank == root && !recv)
		return status_fail(TRIB_ERR_ARGUMENT, "reduce: no output buffer on the root");
	spec.source = input(&call);
	spec.target = comm->config.rank == root ? recv : NULL;
	return start(&call, &spec, 1, request);
}

trib_status trib_ibroadcast(trib_comm *comm, void *buffer, size_t count, trib_type type, int root,
                            trib_request **request)
{
	struct call call = { "broadcast", comm, buffer, buffer, count, type, TRIB_SUM, root };
	trib_status status = check_call(&call, 1, request);
	struct round_spec spec = { .copy = true, .from = (uint8_t)root, .to = WIRE_ALL };

	if (status != TRIB_OK)
		return status;
	spec.count = count * trib_type_size(type);
	spec.source = buffer;
	spec.target = comm->config.rank == root ? NULL : buffer;
	return start(&call, &spec, 1, request);
}

trib_status trib_iallgather(trib_comm *comm, const void *send, void *recv, size_t count,
                            trib_type type, trib_request **request)
{
	struct call call = { "allgather", comm, send, recv, count, type, TRIB_SUM, 0 };
	size_t ranks = comm ? (size_t)comm->config.size : 0;
	trib_status status = check_call(&call, ranks, request);
	size_t bytes = count * trib_type_size(type);
	struct round_spec specs[WIRE_CHILDREN_MAX];

	if (status != TRIB_OK || !ranks)
		return status;
	if (count && !recv)
		return status_fail(TRIB_ERR_ARGUMENT, "allgather: no output buffer");
	for (int r = 0; r < comm->config.size; r++) {
		uint8_t *part = recv ? (uint8_t *)recv + (size_t)r * bytes : NULL;

		specs[r] = (struct round_spec){ .copy = true,
			                        .count = bytes,
			                        .source = part,
			                        .target = part,
			                        .from = (uint8_t)r,
			                        .to = WIRE_ALL };
		if (r == comm->config.rank && !is_in_place(&call))
			specs[r].source = send;
	}
	return start(&call, specs, (size_t)comm->config.size, request);
}

trib_status trib_ireduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                 trib_type type, trib_op op, trib_request **request)
{
	struct call call = { "reduce-scatter", comm, send, recv, count, type, op, 0 };
	size_t ranks = comm ? (size_t)comm->config.size : 0;
	trib_status status = check_call(&call, ranks, request);
	size_t bytes = count * trib_type_size(type);
	struct round_spec specs[WIRE_CHILDREN_MAX];
	struct trib_request *made;

	if (status != TRIB_OK || !ranks)
		return status;
	if (count && !recv)
		return status_fail(TRIB_ERR_ARGUMENT, "reduce-scatter: no output buffer");
	made = request_new(comm, call.what, count);
	if (!made)
		return status_fail(TRIB_ERR_NO_MEMORY, "reduce-scatter: no memory");
	/* In place, the result would fall on input that may have to be sent again. */
	if (is_in_place(&call) && comm->config.rank > 0 && bytes) {
		made->spare = malloc(bytes);
		made->copy_to = recv;
		made->copy_bytes = bytes;
		if (!made->spare) {
			request_free(made);
			return status_fail(TRIB_ERR_NO_MEMORY, "reduce-scatter: no memory");
		}
	}
	for (int r = 0; r < comm->config.size; r++) {
		specs[r] = (struct round_spec){ .count = count,
			                        .type = type,
			                        .op = op,
			                        .source = bytes ? input(&call) + (size_t)r * bytes
			                                        : NULL,
			                        .from = WIRE_ALL,
			                        .to = (uint8_t)r };
		if (r == comm->config.rank)
			specs[r].target = made->spare ? made->spare : recv;
	}
	return request_post(made, specs, (size_t)comm->config.size, request);
}

trib_status trib_ibarrier(trib_comm *comm, trib_request **request)
{
	struct call call = { "barrier", comm, NULL, NULL, 0, TRIB_U8, TRIB_SUM, 0 };
	trib_status status = check_call(&call, 1, request);
	struct round_spec spec = { .type = TRIB_U8, .from = WIRE_ALL, .to = WIRE_ALL };

	return status == TRIB_OK ? start(&call, &spec, 1, request) : status;
}

/* The blocking form: started, and finished whatever comes. */
#define FINISH(started)                                                      \
	do {                                                                 \
		trib_request *request = NULL;                                \
		trib_status status = (started);                              \
		return status == TRIB_OK ? request_finish(request) : status; \
	} while (0)

trib_status trib_allreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                           trib_type type, trib_op op)
{
	FINISH(trib_iallreduce(comm, send, recv, count, type, op, &request));
}

trib_status trib_reduce(trib_comm *comm, const void *send, void *recv, size_t count, trib_type type,
                        trib_op op, int root)
{
	FINISH(trib_ireduce(comm, send, recv, count, type, op, root, &request));
}

trib_status trib_broadcast(trib_comm *comm, void *buffer, size_t count, trib_type type, int root)
{
	FINISH(trib_ibroadcast(comm, buffer, count, type, root, &request));
}

trib_status trib_allgather(trib_comm *comm, const void *send, void *recv, size_t count,
                           trib_type type)
{
	FINISH(trib_iallgather(comm, send, recv, count, type, &request));
}

trib_status trib_reduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                trib_type type, trib_op op)
{
	FINISH(trib_ireduce_scatter(comm, send, recv, count, type, op, &request));
}

trib_status trib_barrier(trib_comm *comm)
{
	FINISH(trib_ibarrier(comm, &request));
}
