/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for requests, and the message of a timeout. */
#include "worker/api/api.h"
#include "worker/ranks/direct_io.h"
#include "worker/trees/trees.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX 1e9       /* seconds */
#define IDLE_NS 4000000ull /* 4 ms between two calls of trib_options.idle */
#define WAITED_SPAN NSEC_PER_SEC
#define LOSS_TOLD 0.001 /* a lower loss ratio explains no timeout */

/* Has the communicator failed, and does no lane touch users' buffers any more? */
static bool is_quiet(const struct trib_comm *comm)
{
	return comm->failed != TRIB_OK && !comm->recovering && comm->quiet_lanes == comm->n_lanes &&
	       (!comm->ring_mail || comm->ring_mail->quiet);
}

trib_status trib_test(trib_request **request)
{
	struct trib_comm *comm;
	trib_status status;
	bool ended, held;

	if (!request || !*request)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_test: no request");
	comm = (*request)->comm;
	status = forked_check(comm, "trib_test");
	if (status != TRIB_OK)
		return status;
	held = atomic_load(&(*request)->is_held);
	if (!held && (*request)->driven)
		(*request)->driven->poll(comm);
	if (!held && (*request)->direct)
		direct_poll(comm);
	pthread_mutex_lock(&comm->lock);
	ended = (*request)->done || is_quiet(comm);
	if (comm->turn_client) { /* calling trib_test counts as waiting in the step profile */
		step_profile_wait(&comm->profile, clock_now());
		step_profile_waited(&comm->profile, clock_now());
	}
	pthread_mutex_unlock(&comm->lock);
	if (!ended)
		return TRIB_IN_PROGRESS;
	status = request_end(*request);
	*request = NULL;
	return status;
}

static double lane_loss(const struct lane *lane)
{
	uint64_t judged = atomic_load(&lane->judged);

	return judged ? (double)atomic_load(&lane->lost) / (double)judged : 0;
}

/* The loss on the way to the aggregator, of the worst lane, if it is high. */
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

/* The ranks that are waited for, or another cause, and the position of an unfinished lane. */
static void describe_missing(struct trib_comm *comm, char *out, size_t size)
{
	const struct lane *lane = NULL;
	uint64_t mask = 0;
	char ranks[260] = "no rank is known to be missing: the network is slow or broken";
	char address[64], losses[160];

	if (comm->recovering) {
		snprintf(out, size, "%.300s; %s the controller at %s", comm->failure,
		         comm->controller_heard ? "no working trees yet from" : "no answer from",
		         udp_text(&comm->config.controller, address, sizeof(address)));
		return;
	}
	if (comm->turn_client && comm->next_start < comm->posts && !comm->started[0] &&
	    !comm->started[1]) {
		snprintf(out, size,
		         "it has not started: the controller has not decided whether it may use "
		         "the shared aggregator, and does not answer");
		return;
	}
	for (unsigned i = 0; i < comm->n_lanes; i++) {
		mask |= atomic_load(&comm->lanes[i]->waiting);
		if (!lane || atomic_load(&lane->done) == atomic_load(&lane->next_base))
			lane = comm->lanes[i];
	}
	mask |= atomic_load(&comm->ring_waiting) | atomic_load(&comm->direct_waiting);
	if (mask) {
		size_t used = (size_t)snprintf(ranks, sizeof(ranks), "waiting for rank ");

		comm_list_ranks(mask, ranks + used, sizeof(ranks) - used);
	}
	if (!lane) {
		snprintf(out, size, "%s (among the ranks)", ranks);
		return;
	}
	describe_losses(comm, losses, sizeof(losses));
	snprintf(out, size, "%s (fragments %llu to %llu of lane %u)%s", ranks,
	         (unsigned long long)atomic_load(&lane->done),
	         (unsigned long long)atomic_load(&lane->next_base), lane->number, losses);
}

static trib_status fail_timeout(struct trib_request *request, double seconds)
{
	struct trib_comm *comm = request->comm;
	char missing[500], name[REQUEST_NAME_MAX];

	pthread_mutex_lock(&comm->lock); /* failover may replace lanes */
	describe_missing(comm, missing, sizeof(missing));
	pthread_mutex_unlock(&comm->lock);
	return status_fail(
		TRIB_ERR_TIMEOUT, "%s of %zu elements has not ended after %.1f s on rank %d: %s",
		request_name(request, name), request->count, seconds, comm->config.rank, missing);
}

/*
 * Publishes the share of time that is spent waiting, measured over WAITED_SPAN or more and over
 * whole steps: from the end of one wait to the end of another. Computing while requests are in
 * flight does not count as waiting.
 */
static void publish_waited(struct trib_comm *comm, uint64_t now)
{
	uint64_t since = atomic_load(&comm->waited_since), waited = atomic_load(&comm->wait_ns);

	if (since && clock_since(now, since) < WAITED_SPAN)
		return; /* another thread was first */
	if (since) {
		double share = (double)(waited - comm->waited_then) / (double)(now - since);

		atomic_store(&comm->waited, (uint16_t)(1.5 + 1000 * (share < 1 ? share : 1)));
	}
	atomic_store(&comm->waited_since, now);
	comm->waited_then = waited;
}

static void note_waited(struct trib_comm *comm, uint64_t start, uint64_t now)
{
	uint64_t since = atomic_load_explicit(&comm->waited_since, memory_order_relaxed);

	atomic_fetch_add_explicit(&comm->wait_ns, now - start, memory_order_relaxed);
	if (since && clock_since(now, since) < WAITED_SPAN)
		return;
	pthread_mutex_lock(&comm->lock);
	publish_waited(comm, now);
	pthread_mutex_unlock(&comm->lock);
}

/* A trial of ways may hold the request for a moment. False: it has not started. */
static bool wait_started(struct trib_request *request, uint64_t deadline, uint64_t *now)
{
	struct trib_comm *comm = request->comm;
	struct timespec until;
	int error = 0;

	if (!atomic_load(&request->is_held))
		return true;
	until = clock_span(deadline);
	pthread_mutex_lock(&comm->lock);
	while (atomic_load(&request->is_held) && !is_quiet(comm) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	pthread_mutex_unlock(&comm->lock);
	*now = clock_now();
	return !atomic_load(&request->is_held);
}

/* Waits until the request has ended, or the deadline. The caller holds `lock`. */
static bool sleep_until(struct trib_request *request, uint64_t deadline)
{
	struct trib_comm *comm = request->comm;
	struct timespec until = clock_span(deadline);
	bool ended;
	int error = 0;

	while (!(ended = request->done || is_quiet(comm)) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	return ended;
}

/* The request has not ended while this thread drove its lanes: others do. */
static bool wait_for_others(struct trib_request *request, uint64_t start, uint64_t deadline)
{
	struct trib_comm *comm = request->comm;
	bool ended;

	pthread_mutex_lock(&comm->lock);
	if (comm->turn_client)
		step_profile_wait(&comm->profile, start);
	ended = sleep_until(request, deadline);
	if (comm->turn_client)
		step_profile_waited(&comm->profile, clock_now());
	if (comm->turn_client && comm->config.rank == 0 && !comm->in_flight)
		comm_wake_turns(comm); /* the next training step has begun */
	if (ended && !request->has_left)
		request_leave(request);
	pthread_mutex_unlock(&comm->lock);
	return ended;
}

/* False: the deadline passed first. */
static bool wait_until(struct trib_request *request, uint64_t start, uint64_t deadline)
{
	struct trib_comm *comm = request->comm;
	uint64_t now = start;
	bool ended, started = wait_started(request, deadline, &now);

	if (started && request->driven)
		now = request->driven->drive(comm, request, now, deadline);
	if (started && request->direct)
		direct_drive(comm, request, deadline);
	ended = started && request->driven && atomic_load(&request->done);
	if (!ended) {
		ended = wait_for_others(request, start, deadline);
		now = clock_now();
	}
	note_waited(comm, start, now);
	return ended;
}

/* False: so many seconds passed first. */
static bool wait_ended(struct trib_request *request, double seconds)
{
	const struct comm_config *config = &request->comm->config;
	uint64_t now = clock_now(), deadline = now + (uint64_t)(seconds * 1e9);

	for (;; now = clock_now()) {
		bool last = !config->idle || now + IDLE_NS >= deadline;

		if (wait_until(request, now, last ? deadline : now + IDLE_NS))
			return true;
		if (last)
			return false;
		config->idle(config->idle_context);
	}
}

trib_status trib_wait(trib_request **request, double seconds)
{
	trib_status status;

	if (!request || !*request)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_wait: no request");
	status = forked_check((*request)->comm, "trib_wait");
	if (status != TRIB_OK)
		return status;
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

	atomic_store_explicit(&request->blocks, true, memory_order_relaxed);
	if (!wait_ended(request, seconds)) {
		/* The caller's buffers must be free when it gets its error. */
		fail_timeout(request, seconds);
		comm_fail(comm, TRIB_ERR_TIMEOUT, "%s", trib_last_error());
		wait_quiet(comm);
		comm_tell_failure(comm);
	}
	return request_end(request);
}
