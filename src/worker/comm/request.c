/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/comm.h"

#include "base/clock.h"
#include "worker/comm/residual.h"

#include <stdlib.h>
#include <string.h>

/*
 * Where an aggregator is shared: measures how long the request took, for the step profile.
 * The caller holds `lock`.
 */
static void leave_lane_set(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;
	uint64_t now = clock_now(), since = request->started_at;
	bool behind;

	if (!request->generation || request->generation != comm->config.generation)
		return; /* recovery has completed it in other trees */
	comm->started[request->shared]--;
	comm->started_bytes -= request->bytes;
	behind = comm->came_at > since;
	if (behind)
		since = comm->came_at;
	comm->came_at = comm->busy_at = now;
	step_profile_took(&comm->profile, request->shared, behind, request->bytes, now - since);
	comm_wake_turns(comm);
}

struct trib_request *request_new(struct trib_comm *comm, const char *what, size_t count)
{
	struct trib_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->comm = comm;
	pthread_mutex_lock(&comm->lock);
	request->next = comm->requests;
	request->link = &comm->requests;
	if (request->next)
		request->next->link = &request->next;
	comm->requests = request;
	pthread_mutex_unlock(&comm->lock);
	request->what = what;
	request->count = count;
	return request;
}

void request_round_finished(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;

	if (atomic_fetch_sub_explicit(&request->rounds_left, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&comm->lock);
	request->done = true;
	if (request->ledger) {
		request->ledger->request = NULL;
		request->ledger = NULL;
	}
	if (request->link) {
		comm->in_flight--;
		comm->rounds++;
	}
	if (comm->turn_client)
		leave_lane_set(request);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

void request_free(struct trib_request *request)
{
	pthread_mutex_lock(&request->comm->lock);
	if (request->ledger) /* the request failed */
		request->ledger->request = NULL;
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	if (request->residual)
		request->residual->held = false;
	pthread_mutex_unlock(&request->comm->lock);
	free(request->spare);
	free(request->fed);
	free(request);
}

trib_status request_end(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;
	trib_status status = TRIB_OK;

	if (!request->done)
		status = status_fail(comm->failed, "%s #%llu: %s", request->what,
		                     (unsigned long long)request->number, comm->failure);
	else if (request->spare)
		memcpy(request->copy_to, request->spare, request->copy_bytes);
	request_free(request);
	return status;
}
