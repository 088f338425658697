/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective is one or more vectors, each with the ranks that contribute (`from`) and the
 * ranks that want the result (`to`). A reduce-scatter is a reduce to each rank, an allgather a
 * broadcast from each.
 */
#include "worker/api/api.h"
#include "worker/comm/residual.h"
#include "worker/requests/requests.h"

#include <stdlib.h>
#include <string.h>

struct call {
	const char *what;
	enum wire_call_kind kind;
	trib_comm *comm;
	const void *send;
	void *recv;
	size_t count;
	trib_type type;
	trib_op op;
	int root;
	trib_call options;
	struct trib_request *request;
};

static trib_status check_call(const struct call *call, size_t parts, trib_request **request)
{
	size_t size = number_size(call->type);

	if (!call->comm || !request)
		return status_fail(TRIB_ERR_ARGUMENT, "%s: no communicator", call->what);
	*request = NULL;
	if (forked_check(call->comm, call->what) != TRIB_OK)
		return TRIB_ERR_ARGUMENT;
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

static bool is_sum(const struct call *call)
{
	return call->op == TRIB_SUM || call->op == TRIB_AVG;
}

/* Compiled against an older or newer header: the fields that both know. */
static trib_status read_options(const trib_call *given, struct call *call)
{
	trib_call *options = &call->options;

	*options = (trib_call)TRIB_CALL_INIT;
	if (!given)
		return TRIB_OK;
	if (given->struct_size < sizeof(size_t))
		return status_fail(TRIB_ERR_ARGUMENT, "%s: trib_call.struct_size is not set",
		                   call->what);
	memcpy(options, given,
	       given->struct_size < sizeof(*options) ? given->struct_size : sizeof(*options));
	if (!is_wire_bits(options->wire_bits))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "%s: trib_call.wire_bits is %d: expected 8, 16 or 32, or 0 for "
		                   "the communicator's",
		                   call->what, options->wire_bits);
	if (options->residual && (call->type != TRIB_F32 || !is_sum(call)))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "%s: residual \"%s\": only a sum or average of f32 has one",
		                   call->what, options->residual);
	return TRIB_OK;
}

/* Error feedback: the request's input is the vector with its residual added. */
static trib_status feed(const struct call *call, size_t elements)
{
	struct trib_request *request = call->request;
	trib_status status;

	if (!call->options.residual || call->comm->config.size == 1 || !elements)
		return TRIB_OK;
	status = residual_hold(call->comm, call->options.residual, elements, &request->residual);
	if (status != TRIB_OK)
		return status;
	request->fed = malloc(elements * sizeof(*request->fed));
	if (!request->fed)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", call->what);
	residual_feed(request->residual, input(call), request->fed);
	return TRIB_OK;
}

/* The request of a sum of `elements`. If it fails, there is none. */
static trib_status open_sum(struct call *call, const trib_call *options, size_t elements)
{
	trib_status status = read_options(options, call);

	if (status != TRIB_OK)
		return status;
	call->request = request_new(call->comm, call->what, call->count);
	if (!call->request)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", call->what);
	status = feed(call, elements);
	if (status != TRIB_OK)
		request_free(call->request);
	return status;
}

/* The seed of a sum that is rounded by chance. It depends only on the calls so far. */
static uint32_t new_dither(struct trib_comm *comm)
{
	uint32_t calls;

	pthread_mutex_lock(&comm->lock);
	calls = comm->dithers++;
	pthread_mutex_unlock(&comm->lock);
	return (calls * WIRE_CHILDREN_MAX + (uint32_t)comm->config.rank) * 0x9e3779b9u | 1;
}

/* What ranks have to agree on; request_post() adds number and rank. */
static struct wire_call signature(const struct call *call, uint8_t per_word)
{
	bool has_root = call->kind == WIRE_CALL_REDUCE || call->kind == WIRE_CALL_BROADCAST;

	return (struct wire_call){ .count = call->count,
		                   .kind = (uint8_t)call->kind,
		                   .type = (uint8_t)call->type,
		                   .op = (uint8_t)call->op,
		                   .root = has_root ? (uint8_t)call->root : WIRE_ALL,
		                   .per_word = per_word };
}

#define SLOT_FIRST_BYTES 262144u /* TRIB_ENGINE=slot: vectors up to this size use slots */

/* round_spec.small: is each vector of the call small enough for slots? Short types of a sum take
 * more bytes in slots than in memory: `size` bytes an element. */
static uint8_t small(const struct call *call, size_t size)
{
	const struct comm_config *config = &call->comm->config;
	size_t bytes = call->count * size;
	bool fits = round_is_small(bytes) ||
	            (config->engine == ENGINE_SLOT_FIRST && bytes <= SLOT_FIRST_BYTES);

	return fits ? (uint8_t)config->size : 0;
}

/*
 * The sum of the elements from `first` on; the target is still to be set.
 */
static inline void sum_spec(const struct call *call, size_t first, uint8_t to,
                            struct round_spec *spec)
{
	const struct comm_config *config = &call->comm->config;
	const struct trib_request *request = call->request;
	unsigned bits =
		call->options.wire_bits ? (unsigned)call->options.wire_bits : config->wire_bits;

	*spec = (struct round_spec){ .count = call->count,
		                     .type = call->type,
		                     .op = call->op,
		                     .from = WIRE_ALL,
		                     .to = to,
		                     .small = small(call, number_wire_size(call->type)) };
	if (call->count)
		spec->source = request->fed ? (const uint8_t *)(request->fed + first)
		                            : input(call) + first * number_size(call->type);
	if (is_sum(call) && !spec->small)
		spec->per_word =
			round_per_word(call->type, call->count, (unsigned)config->size, bits);
	spec->call = signature(call, spec->per_word);
	if (request->residual)
		spec->residual = request->residual->values + first;
	else if (round_is_by_chance(call->type, spec->per_word))
		spec->dither = new_dither(call->comm);
}

static trib_status start(const struct call *call, struct round_spec *specs, size_t n,
                         trib_request **out)
{
	struct trib_request *request = request_new(call->comm, call->what, call->count);

	if (!request)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", call->what);
	return request_post(request, specs, n, out);
}

/* A sum that goes to all ranks, or to call->root alone. */
static trib_status begin_sum(struct call *call, bool to_all, const trib_call *options,
                             trib_request **request)
{
	trib_status status = check_call(call, 1, request);
	struct round_spec spec;
	bool wants;

	if (status != TRIB_OK)
		return status;
	wants = to_all || call->comm->config.rank == call->root;
	if (call->count && wants && !call->recv)
		return status_fail(TRIB_ERR_ARGUMENT, "%s: no output buffer%s", call->what,
		                   to_all ? "" : " on the root");
	status = open_sum(call, options, call->count);
	if (status != TRIB_OK)
		return status;
	sum_spec(call, 0, to_all ? WIRE_ALL : (uint8_t)call->root, &spec);
	spec.target = wants ? call->recv : NULL;
	return request_post(call->request, &spec, 1, request);
}

static trib_status begin_allreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                                   trib_type type, trib_op op, const trib_call *options,
                                   trib_request **request)
{
	struct call call = { .what = "allreduce",
		             .kind = WIRE_CALL_ALLREDUCE,
		             .comm = comm,
		             .send = send,
		             .recv = recv,
		             .count = count,
		             .type = type,
		             .op = op };

	return begin_sum(&call, true, options, request);
}

static trib_status begin_reduce(trib_comm *comm, const void *send, void *recv, size_t count,
                                trib_type type, trib_op op, int root, const trib_call *options,
                                trib_request **request)
{
	struct call call = { .what = "reduce",
		             .kind = WIRE_CALL_REDUCE,
		             .comm = comm,
		             .send = send,
		             .recv = recv,
		             .count = count,
		             .type = type,
		             .op = op,
		             .root = root };

	return begin_sum(&call, false, options, request);
}

static trib_status begin_broadcast(trib_comm *comm, void *buffer, size_t count, trib_type type,
                                   int root, trib_request **request)
{
	struct call call = { .what = "broadcast",
		             .kind = WIRE_CALL_BROADCAST,
		             .comm = comm,
		             .send = buffer,
		             .recv = buffer,
		             .count = count,
		             .type = type,
		             .op = TRIB_SUM,
		             .root = root };
	trib_status status = check_call(&call, 1, request);
	struct round_spec spec = { .copy = true, .from = (uint8_t)root, .to = WIRE_ALL };

	if (status != TRIB_OK)
		return status;
	spec.count = count * number_size(type);
	spec.small = small(&call, number_size(type));
	spec.call = signature(&call, 0);
	spec.source = buffer;
	spec.target = comm->config.rank == root ? NULL : buffer;
	return start(&call, &spec, 1, request);
}

static trib_status begin_allgather(trib_comm *comm, enum wire_call_kind kind, const void *send,
                                   void *recv, size_t count, trib_type type, trib_request **request)
{
	struct call call = { .what = kind == WIRE_CALL_SPLIT ? "split" : "allgather",
		             .kind = kind,
		             .comm = comm,
		             .send = send,
		             .recv = recv,
		             .count = count,
		             .type = type,
		             .op = TRIB_SUM,
		             .root = 0 };
	size_t ranks = comm ? (size_t)comm->config.size : 0;
	trib_status status = check_call(&call, ranks, request);
	size_t bytes = count * number_size(type);
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
			                        .to = WIRE_ALL,
			                        .small = small(&call, number_size(type)),
			                        .call = signature(&call, 0) };
		if (r == comm->config.rank && !is_in_place(&call))
			specs[r].source = send;
	}
	return start(&call, specs, (size_t)comm->config.size, request);
}

static trib_status begin_reduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                        trib_type type, trib_op op, const trib_call *options,
                                        trib_request **request)
{
	struct call call = { .what = "reduce-scatter",
		             .kind = WIRE_CALL_REDUCE_SCATTER,
		             .comm = comm,
		             .send = send,
		             .recv = recv,
		             .count = count,
		             .type = type,
		             .op = op,
		             .root = 0 };
	size_t ranks = comm ? (size_t)comm->config.size : 0;
	trib_status status = check_call(&call, ranks, request);
	size_t bytes = count * number_size(type);
	struct round_spec specs[WIRE_CHILDREN_MAX];
	void *target = recv;

	if (status != TRIB_OK || !ranks)
		return status;
	if (count && !recv)
		return status_fail(TRIB_ERR_ARGUMENT, "reduce-scatter: no output buffer");
	status = open_sum(&call, options, ranks * count);
	if (status != TRIB_OK)
		return status;
	/* In place, the result would overwrite input that may have to be sent again. */
	if (is_in_place(&call) && !call.request->fed && comm->config.rank > 0 && bytes) {
		target = call.request->spare = malloc(bytes);
		call.request->copy_to = recv;
		call.request->copy_bytes = bytes;
		if (!target) {
			request_free(call.request);
			return status_fail(TRIB_ERR_NO_MEMORY, "reduce-scatter: no memory");
		}
	}
	for (int r = 0; r < comm->config.size; r++) {
		sum_spec(&call, (size_t)r * count, (uint8_t)r, &specs[r]);
		specs[r].target = r == comm->config.rank ? target : NULL;
	}
	return request_post(call.request, specs, ranks, request);
}

static trib_status begin_barrier(trib_comm *comm, trib_request **request)
{
	struct call call = { .what = "barrier",
		             .kind = WIRE_CALL_BARRIER,
		             .comm = comm,
		             .send = NULL,
		             .recv = NULL,
		             .count = 0,
		             .type = TRIB_U8,
		             .op = TRIB_SUM,
		             .root = 0 };
	trib_status status = check_call(&call, 1, request);
	struct round_spec spec = { .type = TRIB_U8,
		                   .from = WIRE_ALL,
		                   .to = WIRE_ALL,
		                   .small = (uint8_t)(comm ? comm->config.size : 0) };

	spec.call = signature(&call, 0);
	return status == TRIB_OK ? start(&call, &spec, 1, request) : status;
}

trib_status trib_drop_residual(trib_comm *comm, const char *name)
{
	if (!comm)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_drop_residual: no communicator");
	if (forked_check(comm, "trib_drop_residual") != TRIB_OK)
		return TRIB_ERR_ARGUMENT;
	return residual_drop(comm, name);
}

/* ---- the forms that do not wait ---- */

/* A small vector leaves at once. */
static trib_status push(trib_status status, trib_request *const *request)
{
	if (status == TRIB_OK && request && *request && !atomic_load(&(*request)->is_held) &&
	    (*request)->driven)
		(*request)->driven->push((*request)->comm);
	return status;
}

trib_status trib_iallreduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                 trib_type type, trib_op op, const trib_call *options,
                                 trib_request **request)
{
	return push(begin_allreduce(comm, send, recv, count, type, op, options, request), request);
}

trib_status trib_ireduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                              trib_type type, trib_op op, int root, const trib_call *options,
                              trib_request **request)
{
	return push(begin_reduce(comm, send, recv, count, type, op, root, options, request),
	            request);
}

trib_status trib_ibroadcast(trib_comm *comm, void *buffer, size_t count, trib_type type, int root,
                            trib_request **request)
{
	return push(begin_broadcast(comm, buffer, count, type, root, request), request);
}

trib_status trib_iallgather(trib_comm *comm, const void *send, void *recv, size_t count,
                            trib_type type, trib_request **request)
{
	return push(begin_allgather(comm, WIRE_CALL_ALLGATHER, send, recv, count, type, request),
	            request);
}

trib_status trib_ireduce_scatter_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                      trib_type type, trib_op op, const trib_call *options,
                                      trib_request **request)
{
	return push(begin_reduce_scatter(comm, send, recv, count, type, op, options, request),
	            request);
}

trib_status trib_ibarrier(trib_comm *comm, trib_request **request)
{
	return push(begin_barrier(comm, request), request);
}

trib_status trib_iallreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                            trib_type type, trib_op op, trib_request **request)
{
	return trib_iallreduce_with(comm, send, recv, count, type, op, NULL, request);
}

trib_status trib_ireduce(trib_comm *comm, const void *send, void *recv, size_t count,
                         trib_type type, trib_op op, int root, trib_request **request)
{
	return trib_ireduce_with(comm, send, recv, count, type, op, root, NULL, request);
}

trib_status trib_ireduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                 trib_type type, trib_op op, trib_request **request)
{
	return trib_ireduce_scatter_with(comm, send, recv, count, type, op, NULL, request);
}

/* ---- the forms that wait ---- */

/* The blocking form: starts the request and waits for it. */
#define FINISH(started)                                                      \
	do {                                                                 \
		trib_request *request = NULL;                                \
		trib_status status = (started);                              \
		return status == TRIB_OK ? request_finish(request) : status; \
	} while (0)

trib_status trib_allreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                           trib_type type, trib_op op)
{
	FINISH(begin_allreduce(comm, send, recv, count, type, op, NULL, &request));
}

trib_status trib_reduce(trib_comm *comm, const void *send, void *recv, size_t count, trib_type type,
                        trib_op op, int root)
{
	FINISH(begin_reduce(comm, send, recv, count, type, op, root, NULL, &request));
}

trib_status trib_broadcast(trib_comm *comm, void *buffer, size_t count, trib_type type, int root)
{
	FINISH(begin_broadcast(comm, buffer, count, type, root, &request));
}

trib_status trib_allgather(trib_comm *comm, const void *send, void *recv, size_t count,
                           trib_type type)
{
	FINISH(begin_allgather(comm, WIRE_CALL_ALLGATHER, send, recv, count, type, &request));
}

trib_status collective_split(trib_comm *comm, const void *send, void *recv, size_t bytes)
{
	FINISH(begin_allgather(comm, WIRE_CALL_SPLIT, send, recv, bytes, TRIB_U8, &request));
}

trib_status trib_reduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                trib_type type, trib_op op)
{
	FINISH(begin_reduce_scatter(comm, send, recv, count, type, op, NULL, &request));
}

trib_status trib_allreduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                trib_type type, trib_op op, const trib_call *call)
{
	FINISH(begin_allreduce(comm, send, recv, count, type, op, call, &request));
}

trib_status trib_reduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                             trib_type type, trib_op op, int root, const trib_call *call)
{
	FINISH(begin_reduce(comm, send, recv, count, type, op, root, call, &request));
}

trib_status trib_reduce_scatter_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                     trib_type type, trib_op op, const trib_call *call)
{
	FINISH(begin_reduce_scatter(comm, send, recv, count, type, op, call, &request));
}

trib_status trib_barrier(trib_comm *comm)
{
	FINISH(begin_barrier(comm, &request));
}
