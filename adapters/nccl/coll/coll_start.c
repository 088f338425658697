/* SPDX-License-Identifier: Apache-2.0 */
#include "coll_request.h"
#include "element_sum.h"
#include "common/plugin.h"

#include <string.h>

static void fail(struct coll_comm *comm, trib_status status)
{
	if (comm->failed != TRIB_OK)
		return;
	comm->failed = status;
	plugin_warn("a collective failed on node %d: %s", comm->rank, trib_last_error());
}

size_t coll_part(const struct coll_call *call, unsigned rank, size_t *first)
{
	size_t from = rank * call->rank_bytes, to = from + call->rank_bytes;
	size_t end = call->window + call->window_bytes;

	from = from > call->window ? from : call->window;
	to = to < end ? to : end;
	*first = from - call->window;
	return from < to ? to - from : 0;
}

/* Every rank broadcasts its part. */
static trib_status start_allgather(struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	const struct coll_comm *comm = request->comm;
	trib_status status = TRIB_OK;

	for (int r = 0; r < comm->size && status == TRIB_OK; r++) {
		size_t first, bytes = coll_part(call, (unsigned)r, &first);
		uint8_t *to = (uint8_t *)call->recv + first;

		if (bytes && r == comm->rank)
			memmove(to, call->send, bytes);
		if (bytes)
			status = trib_ibroadcast(comm->trib, to, bytes, TRIB_U8, r,
			                         &request->parts[r]);
	}
	return status;
}

/* Each part is a reduce to its rank. */
static trib_status start_reduce_scatter(struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	const struct coll_comm *comm = request->comm;
	size_t size = trib_type_size(call->type);
	trib_status status = TRIB_OK;

	for (int r = 0; r < comm->size && status == TRIB_OK; r++) {
		size_t first, bytes = coll_part(call, (unsigned)r, &first);
		const uint8_t *from = (const uint8_t *)call->send + first;

		if (bytes)
			status = trib_ireduce(comm->trib, from, r == comm->rank ? call->recv : NULL,
			                      bytes / size, call->type, call->op, r,
			                      &request->parts[r]);
	}
	return status;
}

static trib_status start_allreduce(struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	trib_comm *trib = request->comm->trib;

	if (request->step == ELEMENT_NONE)
		return trib_iallreduce(trib, call->send, call->recv, call->count, call->type,
		                       call->op, &request->parts[0]);
	element_classify(call->type, call->send, call->count, request->classes);
	return trib_iallreduce(trib, TRIB_IN_PLACE, request->classes, call->count,
	                       element_class_type(call->type), TRIB_MAX, &request->parts[0]);
}

static trib_status start(struct coll_request *request)
{
	request->started = true;
	return request->call.kind == CALL_ALLREDUCE   ? start_allreduce(request)
	       : request->call.kind == CALL_ALLGATHER ? start_allgather(request)
	                                              : start_reduce_scatter(request);
}

/* The second step of a sum with a scale for each element: all ranks know the classes. */
static trib_status start_sum(struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	const struct coll_comm *comm = request->comm;

	request->step = ELEMENT_SUM;
	element_encode(call->type, call->send, call->count, request->classes, (unsigned)comm->size,
	               request->integers);
	return trib_iallreduce(comm->trib, TRIB_IN_PLACE, request->integers, call->count,
	                       element_integer_type(call->type), TRIB_SUM, &request->parts[0]);
}

bool coll_parts_ended(struct coll_request *request)
{
	bool ended = true;

	for (int r = 0; r < request->comm->size; r++) {
		trib_status status = request->parts[r] ? trib_test(&request->parts[r]) : TRIB_OK;

		if (status == TRIB_IN_PROGRESS)
			ended = false;
		else if (status != TRIB_OK)
			fail(request->comm, status);
	}
	return ended;
}

void coll_advance(struct coll_comm *comm)
{
	struct coll_request *request;

	while ((request = comm->first) && comm->failed == TRIB_OK) {
		trib_status status = request->started ? TRIB_OK : start(request);

		if (status == TRIB_OK && request->step == ELEMENT_CLASSES) {
			if (!coll_parts_ended(request))
				return;
			if (comm->failed == TRIB_OK)
				status = start_sum(request);
		}
		if (status != TRIB_OK)
			fail(comm, status);
		comm->first = request->next;
		if (!comm->first)
			comm->last = &comm->first;
	}
}
