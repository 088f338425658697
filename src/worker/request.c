/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX 1e9    /* seconds */
#define LOSS_TOLD 0.001 /* of a link: less does not explain anything */

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
	if (comm->turner)
		dispatch_ended(request);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

/* Failed: true once no lane touches the user's buffers any more. */
static bool is_quiet(const struct trib_comm *comm)
{
	return comm->failed != TRIB_OK && !comm->recovering && comm->quiet_lanes == comm->n_lanes;
}

void request_free(struct trib_request *request)
{
	pthread_mutex_lock(&request->comm->lock);
	if (request->ledger) /* it failed */
		request->ledger->request = NULL;
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	pthread_mutex_unlock(&request->comm->lock);
	free(request->spare);
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

trib_status trib_test(trib_request **request)
{
	struct trib_comm *comm;
	bool ended;

	if (!request || !*request)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_test: no request");
	comm = (*request)->comm;
	pthread_mutex_lock(&comm->lock);
	ended = (*request)->done || is_quiet(comm);
	if (comm->turner) { /* who asks has nothing else to do */
		rhythm_wait(&comm->rhythm, clock_now());
		rhythm_waited(&comm->rhythm, clock_now());
	}
	pthread_mutex_unlock(&comm->lock);
	if (!ended)
		return TRIB_IN_PROGRESS;
	trib_status status = request_end(*request);
	*request = NULL;
	return status;
}

static double lane_loss(const struct lane *lane)
{
	uint64_t judged = atomic_load(&lane->judged);

	return judged ? (double)atomic_load(&lane->lost) / (double)judged : 0;
}

/* What our own links have lost, where that is much; by the lane that lost most. */
static void describe_losses(const struct trib_comm *comm, char *out, size_t size)
{
	const struct lane *worst = NULL;
	char address[64];

	*out = '\0';
	for (unsigned i = 0; i < comm->n_lanes; i++)
		if (lane_loss(comm->lanes[i]) >= (worst ? lane_loss(worst) : LOSS_TOLD))
			worst = comm->lanes[i];
	if (worst)
		snprintf(out, size, "; of %llu packets from here to %s %.1f %% were lost",
		         (unsigned long long)atomic_load(&worst->judged),
		         udp_text(&worst->trunk->aggregator, address, sizeof(address)),
		         lane_loss(worst) * 100);
}

/* "rank 1, 3", or what else is known, and where the first lane is that has not ended. */
static void describe_missing(struct trib_comm *comm, char *out, size_t size)
{
	const struct lane *lane = NULL;
	uint64_t mask = 0;
	char ranks[260] = "no rank is known to be missing: the network is slow or broken";
	char address[64], losses[160];

	if (comm->recovering) {
		snprintf(out, size, "%.300s; %s the controller at %s", comm->failure,
		         comm->controller_heard ? "no trees that serve have come yet from"
		                                : "no answer from",
		         udp_text(&comm->config.controller, address, sizeof(address)));
		return;
	}
	if (comm->turner && comm->begun < comm->posts && !comm->under_way[0] &&
	    !comm->under_way[1]) {
		snprintf(out, size,
		         "it has not begun: whether it may use the shared aggregator is "
		         "not decided, and the controller does not answer");
		return;
	}
	for (unsigned i = 0; i < comm->n_lanes; i++) {
		mask |= atomic_load(&comm->lanes[i]->waiting);
		if (!lane || atomic_load(&lane->done) == atomic_load(&lane->next_base))
			lane = comm->lanes[i];
	}
	if (mask) {
		size_t used = (size_t)snprintf(ranks, sizeof(ranks), "waiting for rank ");

		comm_list_ranks(mask, ranks + used, sizeof(ranks) - used);
	}
	describe_losses(comm, losses, sizeof(losses));
	snprintf(out, size, "%s (fragments %llu to %llu of lane %u)%s", ranks,
	         (unsigned long long)(lane ? atomic_load(&lane->done) : 0),
	         (unsigned long long)(lane ? atomic_load(&lane->next_base) : 0),
	         lane ? lane->number : 0, losses);
}

static trib_status fail_timeout(struct trib_request *request, double seconds)
{
	struct trib_comm *comm = request->comm;
	char missing[500];

	pthread_mutex_lock(&comm->lock); /* lanes may be replaced */
	describe_missing(comm, missing, sizeof(missing));
	pthread_mutex_unlock(&comm->lock);
	return status_fail(TRIB_ERR_TIMEOUT,
	                   "%s #%llu of %zu elements has not ended after %.1f s on rank %d: %s",
	                   request->what, (unsigned long long)request->number, request->count,
	                   seconds, comm->config.rank, missing);
}

/*
 * Over a second at least, and whole steps: from the end of one wait to that of
 * another. What is computed while requests are under way is no waiting.
 */
static void note_waited(struct trib_comm *comm, uint64_t now)
{
	double seconds = (double)(now - comm->waited_since) / 1e9;

	if (comm->waited_since && seconds < 1)
		return;
	if (comm->waited_since) {
		double share = (comm->wait_s - comm->waited_then) / seconds;

		atomic_store(&comm->waited, (uint16_t)(1.5 + 1000 * (share < 1 ? share : 1)));
	}
	comm->waited_since = now;
	comm->waited_then = comm->wait_s;
}

/* False: the deadline passed first. */
static bool wait_ended(struct trib_request *request, double seconds)
{
	struct trib_comm *comm = request->comm;
	uint64_t start = clock_now(), now;
	struct timespec until = clock_span(start + (uint64_t)(seconds * 1e9));
	bool ended;
	int error = 0;

	pthread_mutex_lock(&comm->lock);
	if (comm->turner)
		rhythm_wait(&comm->rhythm, start);
	while (!(ended = request->done || is_quiet(comm)) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	now = clock_now();
	if (comm->turner)
		rhythm_waited(&comm->rhythm, now);
	if (comm->turner && comm->config.rank == 0 && !comm->in_flight)
		turner_wake(comm); /* the next step has begun */
	comm->wait_s += (double)(now - start) / 1e9;
	note_waited(comm, now);
	pthread_mutex_unlock(&comm->lock);
	return ended;
}

trib_status trib_wait(trib_request **request, double seconds)
{
	trib_status status;

	if (!request || !*request)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_wait: no request");
	if (!(seconds >= 0))
		seconds = (*request)->comm->config.timeout_s;
	if (seconds > WAIT_MAX)
		seconds = WAIT_MAX;
	if (!wait_ended(*request, seconds))
		return fail_timeout(*request, seconds);
	status = request_end(*request);
	*request = NULL;
	return status;
}

static void wait_quiet(struct trib_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	while (!is_quiet(comm))
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

trib_status request_finish(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;
	double seconds = comm->config.timeout_s;

	if (!wait_ended(request, seconds)) {
		/* The caller's buffers must be free when it gets its error. */
		fail_timeout(request, seconds);
		comm_fail(comm, TRIB_ERR_TIMEOUT, "%s", trib_last_error());
		wait_quiet(comm);
		comm_tell_failure(comm);
	}
	return request_end(request);
}
