/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/comm.h"

#include "base/clock.h"
#include "worker/comm/residual.h"

#include <stdio.h>
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
	struct trib_request *request =
		atomic_exchange_explicit(&comm->spare_request, NULL, memory_order_acquire);

	if (!request)
		request = malloc(sizeof(*request)); /* as in round_renew() */
	if (!request)
		return NULL;
	*request = (struct trib_request){
		.comm = comm, .what = what, .count = count, .is_users = true
	};
	return request;
}

void request_list(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;

	if (!request->is_users || request->link)
		return;
	request->next = comm->requests;
	request->link = &comm->requests;
	if (request->next)
		request->next->link = &request->next;
	comm->requests = request;
}

void request_unhold(struct trib_request *request)
{
	struct trial *trial = &request->comm->trial;

	*request->held_link = request->held_next;
	if (request->held_next)
		request->held_next->held_link = request->held_link;
	else
		trial->end = request->held_link;
	request->held_link = NULL;
	atomic_store(&trial->holds, trial->busy || trial->first);
}

void request_round_finished(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;

	if (atomic_fetch_sub_explicit(&request->rounds_left, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&comm->lock);
	if (request->took)
		*request->took = clock_now() - request->started_at + 1;
	if (request->ledger) {
		request->ledger->request = NULL;
		request->ledger = NULL;
	}
	if (request->is_users) {
		comm->in_flight--;
		comm->rounds++;
	}
	if (comm->turn_client)
		leave_lane_set(request);
	if (atomic_load_explicit(&request->blocks, memory_order_relaxed) && !request->starting)
		request_leave(request);
	atomic_store_explicit(&request->done, true, memory_order_release);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

void request_leave(struct trib_request *request)
{
	while (request->starting)
		pthread_cond_wait(&request->comm->changed, &request->comm->lock);
	if (request->held_link)
		request_unhold(request);
	if (request->ledger) /* the request failed */
		request->ledger->request = NULL;
	if (request->link)
		*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	if (request->residual)
		request->residual->held = false;
	request->has_left = true;
}

void request_free(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;

	if (!request->has_left) {
		pthread_mutex_lock(&comm->lock);
		request_leave(request);
		pthread_mutex_unlock(&comm->lock);
	}
	if (request->held || request->spare || request->fed) {
		free(request->held);
		free(request->spare);
		free(request->fed);
	}
	request = atomic_exchange_explicit(&comm->spare_request, request, memory_order_acq_rel);
	if (request)
		free(request);
}

const char *request_name(struct trib_request *request, char out[REQUEST_NAME_MAX])
{
	pthread_mutex_lock(&request->comm->lock);
	if (request->posted)
		snprintf(out, REQUEST_NAME_MAX, "%s #%llu", request->what,
		         (unsigned long long)request->number);
	else
		snprintf(out, REQUEST_NAME_MAX, "%s", request->what);
	pthread_mutex_unlock(&request->comm->lock);
	return out;
}

trib_status request_end(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;
	trib_status status = TRIB_OK;
	char name[REQUEST_NAME_MAX];

	if (!request->done)
		status = status_fail(comm->failed, "%s: %s", request_name(request, name),
		                     comm->failure);
	else if (request->spare)
		memcpy(request->copy_to, request->spare, request->copy_bytes);
	request_free(request);
	return status;
}
