/* SPDX-License-Identifier: Apache-2.0 */
/* The lifetime of a communicator, and its rank, size and statistics. */
#include "worker/api/api.h"
#include "worker/api/introduce.h"
#include "worker/failover/failover.h"
#include "worker/comm/residual.h"
#include "worker/sharing/sharing.h"
#include "worker/ranks/direct_io.h"
#include "worker/requests/requests.h"
#include "worker/ranks/ring_thread.h"
#include "worker/trees/plan_client.h"
#include "worker/trees/ring_meet.h"
#include "worker/trees/trees.h"

#include "base/clock.h"
#include "base/log.h"
#include "path/channel/channel_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LAST_SHARE 6.0 /* 1/6 of the timeout for the last needs of other ranks */

void comm_free(struct trib_comm *comm)
{
	trunks_close(comm);
	ring_close(comm);
	while (comm->ledgers)
		ledger_drop(comm, comm->ledgers);
	residual_drop(comm, NULL);
	pthread_cond_destroy(&comm->changed);
	pthread_cond_destroy(&comm->trial.wake);
	pthread_mutex_destroy(&comm->lock);
	pthread_mutex_destroy(&comm->posting);
	pthread_mutex_destroy(&comm->trunks_lock);
	pthread_mutex_destroy(&comm->slot_driver);
	pthread_mutex_destroy(&comm->paths.lock);
	channel_listener_free(comm->config.ring_listener);
	free(comm->config.ring_seats);
	free(comm->config.trees);
	free(atomic_load(&comm->spare_request));
	free(atomic_load(&comm->spare_round));
	free(comm);
}

/* The ranks know each other from the communicator that this one was split from, or they meet. */
static trib_status find_seats(struct comm_config *config, struct ring_seat *seats,
                              uint64_t deadline)
{
	trib_status status;

	if (config->ring_seats) {
		memcpy(seats, config->ring_seats, sizeof(*seats) * (size_t)config->size);
		return TRIB_OK;
	}
	status = ring_listen(config, &config->rendezvous, &config->ring_listener,
	                     &seats[config->rank]);
	return status == TRIB_OK ? ring_meet(config, seats, deadline) : status;
}

/* No aggregator: the ranks sum among themselves. */
static trib_status open_ring(struct trib_comm *comm, uint64_t deadline)
{
	struct comm_config *config = &comm->config;
	struct ring_seat seats[WIRE_CHILDREN_MAX];
	trib_status status = TRIB_OK;

	if (config->rendezvous.length)
		status = route_wait(comm, &config->rendezvous, "rendezvous", deadline);
	if (status == TRIB_OK)
		status = find_seats(config, seats, deadline);
	if (status != TRIB_OK)
		return status;
	status = ring_open(comm, config->ring_listener);
	config->ring_listener = NULL;
	if (status != TRIB_OK)
		return status;
	comm->payload = WIRE_PAYLOAD_MAX;
	for (int r = 0; r < config->size; r++)
		if (seats[r].payload < comm->payload)
			comm->payload = seats[r].payload;
	if (comm->payload < WIRE_PAYLOAD_MIN || comm->payload % 8)
		return status_fail(TRIB_ERR_CONFIG, "packets of %u bytes are too small",
		                   comm->payload);
	memcpy(comm->ring_mail->seats, seats, sizeof(seats));
	comm->ring_mail->exchange.done = true;
	return ring_run(comm);
}

/* In case that the controller has no aggregator for these ranks. */
static void listen_for_ring(struct comm_config *config)
{
	if (config->ring == RING_NEVER || config->tcp)
		return;
	if (ring_listen(config, &config->controller, &config->ring_listener, &config->ring_seat) !=
	    TRIB_OK)
		log_info("no ring is possible without aggregators: %s", trib_last_error());
}

/* The controller's plan has no trees. */
static trib_status open_planned_ring(struct trib_comm *comm, uint64_t deadline)
{
	trib_status status;

	comm->keeps_ledgers = false; /* they are for other trees */
	log_notice("no aggregator is available: %d ranks sum among themselves (trib explain %u)",
	           comm->config.size, comm->config.job);
	status = open_ring(comm, deadline);
	return status == TRIB_OK ? failover_start(comm) : status;
}

static trib_status open_with_controller(struct trib_comm *comm, uint64_t deadline)
{
	struct comm_config *config = &comm->config;
	trib_status status;
	bool shares;

	comm->keeps_ledgers = true; /* before a lane can read it */
	status = route_wait(comm, &config->controller, "controller", deadline);
	if (status != TRIB_OK)
		return status;
	listen_for_ring(config);
	status = failover_find_trees(comm, true, deadline);
	comm->opened = true;
	if (status == TRIB_OK && config->ring_seats && config->size > 1)
		return open_planned_ring(comm, deadline);
	channel_listener_free(config->ring_listener);
	config->ring_listener = NULL;
	shares = comm->shared.striping.n; /* from here on failover may change trees */
	if (status == TRIB_OK && config->size > 1)
		status = failover_start(comm);
	return status == TRIB_OK && shares ? turn_client_start(comm) : status;
}

static trib_status comm_start(struct trib_comm *comm)
{
	uint64_t deadline = clock_now() + (uint64_t)(comm->config.timeout_s * 1e9);
	trib_status status;

	if (comm->config.size == 1 && !comm->config.controller.length &&
	    !(comm->config.asks && comm->config.aggregator.length))
		return TRIB_OK; /* one rank: nothing to join */
	while (!comm->nonce)
		if (getrandom(&comm->nonce, sizeof(comm->nonce), 0) != sizeof(comm->nonce))
			return status_fail_errno("no random numbers");
	if (comm->config.controller.length)
		return open_with_controller(comm, deadline);
	if (comm->config.rendezvous.length)
		return open_ring(comm, deadline);
	status = trunks_plan(comm);
	if (status == TRIB_OK)
		status = trunks_open(comm, deadline);
	if (status != TRIB_IN_PROGRESS)
		return status;
	comm->config.controller = comm->config.aggregator; /* a controller has answered there */
	if (comm->config.asks)
		comm->config.seat = -1;
	trunks_close(comm);
	return open_with_controller(comm, deadline);
}

trib_status comm_open(const struct comm_config *config, const struct trib_comm *before,
                      struct trib_comm **out)
{
	struct trib_comm *comm = calloc(1, sizeof(*comm));
	pthread_condattr_t attributes;
	trib_status status;

	*out = NULL;
	if (!comm) {
		channel_listener_free(config->ring_listener);
		free(config->ring_seats);
		free(config->trees);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a communicator");
	}
	comm->config = *config;
	comm->forks = forked_times();
	if (before) { /* the controller knows this process by its nonce */
		comm->nonce = before->nonce;
		comm->lost = before->lost;
	}
	comm->turn_wake_fd = -1;
	comm->ledgers_end = &comm->ledgers;
	comm->trial.end = &comm->trial.first;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_mutex_init(&comm->posting, NULL);
	pthread_mutex_init(&comm->trunks_lock, NULL);
	pthread_mutex_init(&comm->slot_driver, NULL);
	pthread_mutex_init(&comm->paths.lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&comm->changed, &attributes);
	pthread_cond_init(&comm->trial.wake, NULL);
	pthread_condattr_destroy(&attributes);
	status = comm_start(comm);
	if (status != TRIB_OK) {
		atomic_store(&comm->closing, true);
		if (comm->failover_runs)
			failover_stop(comm);
		trunks_stop(comm);
		ring_stop(comm);
		comm_free(comm);
		return status;
	}
	*out = comm;
	return TRIB_OK;
}

/* Opens on all ranks or on none. `status`: what this rank found in its settings. */
static trib_status open_together(const trib_options *options, trib_status status,
                                 struct comm_config *config, struct trib_comm **comm)
{
	config->rank = options->rank;
	config->size = options->size;
	status = introduce(options, status, config);
	if (status == TRIB_OK)
		status = comm_open(config, NULL, comm);
	else
		free(config->trees);
	status = introduce_agree(options, status, config);
	if (status != TRIB_OK && *comm) {
		comm_close(*comm);
		comm_free(*comm);
		*comm = NULL;
	}
	return status;
}

/* An exchange comes with rank and size, which all ranks have right. */
static bool is_together(const trib_options *options)
{
	const size_t known = offsetof(trib_options, exchange_context) + sizeof(void *);

	return options && options->struct_size >= known && options->exchange && options->has_rank &&
	       options->size <= (int)WIRE_CHILDREN_MAX;
}

trib_status trib_init(trib_comm **comm, const trib_options *options)
{
	struct comm_config config;
	trib_status status;
	char prefix[32];

	if (!comm)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_init: comm is NULL");
	*comm = NULL;
	status = comm_config_read(options, &config);
	if (status != TRIB_OK && !is_together(options))
		return status;
	snprintf(prefix, sizeof(prefix), "tributary: rank %d", config.rank);
	log_set_prefix(prefix);
	return is_together(options) ? open_together(options, status, &config, comm)
	                            : comm_open(&config, NULL, comm);
}

/*
 * Gives the number of requests that have not ended when the deadline passes. *was_well: without
 * aggregators, or without ranks that have left, a rank can still leave.
 */
static unsigned wait_in_flight(struct trib_comm *comm, const struct timespec *until, bool *was_well)
{
	unsigned left;
	int error = 0;
	bool ended;

	pthread_mutex_lock(&comm->lock);
	while (!(ended = (!comm->in_flight && !comm->trial.busy && !comm->trial.first) ||
	                 comm->failed != TRIB_OK) &&
	       error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, until);
	left = ended ? 0 : comm->in_flight;
	*was_well = comm->failed == TRIB_OK || comm->unhurt;
	pthread_mutex_unlock(&comm->lock);
	return left;
}

/*
 * Waits until no rank can need anything of this one, because an aggregator may be lost even now.
 * Other ranks may have left already and would not come to other trees. So the wait is short, and
 * its timeout is no failure.
 */
static void wait_needed(struct trib_comm *comm)
{
	double seconds = comm->config.timeout_s / LAST_SHARE;
	struct timespec until = clock_span(clock_now() + (uint64_t)(seconds * 1e9));
	int error = 0;

	atomic_store(&comm->draining, true);
	pthread_mutex_lock(&comm->lock);
	for (unsigned i = 0; i < comm->n_lanes; i++)
		lane_wake(comm->lanes[i]);
	while (comm->ledgers && comm->failed == TRIB_OK && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	pthread_mutex_unlock(&comm->lock);
}

trib_status comm_close(struct trib_comm *comm)
{
	trib_status status = TRIB_OK;
	struct timespec until;
	unsigned left;
	bool was_well;

	until = clock_span(clock_now() + (uint64_t)(comm->config.timeout_s * 1e9));
	left = wait_in_flight(comm, &until, &was_well);
	if (!left && comm->keeps_ledgers)
		wait_needed(comm);
	atomic_store(&comm->closing, true);
	trial_stop(comm);
	if (comm->failover_runs)
		failover_stop(comm);
	if (comm->turn_client)
		turn_client_halt(comm);
	trunks_stop(comm);
	ring_stop(comm);
	if (comm->turn_client)
		turn_client_stop(comm);
	/* Only the small vectors' aggregator may know it: a BYE alone would read as "has called
	   trib_finalize" to ranks that wait for a large one. */
	if (comm->failed == TRIB_ERR_MISMATCH)
		comm_tell_failure(comm);
	if (comm->n_lanes)
		comm_leave(comm);
	while (comm->requests)
		request_end(comm->requests);
	if (!was_well)
		status = status_fail(comm->failed, "%s", comm->failure);
	else if (left)
		status = status_fail(TRIB_ERR_TIMEOUT,
		                     "trib_finalize: %u request%s not ended after %.1f s", left,
		                     left == 1 ? " has" : "s have", comm->config.timeout_s);
	return status;
}

trib_status trib_finalize(trib_comm *comm)
{
	trib_status status;

	if (!comm)
		return TRIB_OK;
	status = forked_check(comm, "trib_finalize");
	if (status != TRIB_OK)
		return status;
	status = comm_close(comm);
	if (comm->config.controller.length && !comm->config.key)
		comm_tell_controller_bye(comm);
	comm_free(comm);
	return status;
}

int trib_rank(const trib_comm *comm)
{
	return comm->config.rank;
}

int trib_size(const trib_comm *comm)
{
	return comm->config.size;
}

trib_status trib_get_stats(trib_comm *comm, trib_stats *stats)
{
	trib_status status;
	struct direct_io *direct;
	trib_stats all;

	if (!comm || !stats || stats->struct_size < sizeof(size_t))
		return status_fail(TRIB_ERR_ARGUMENT, "trib_get_stats: struct_size is not set");
	status = forked_check(comm, "trib_get_stats");
	if (status != TRIB_OK)
		return status;
	pthread_mutex_lock(&comm->lock);
	all = comm->past;
	comm_count(comm, 0, &all);
	if (comm->ring_mail) {
		all.sent_packets += atomic_load(&comm->ring_mail->sent);
		all.resent_packets += atomic_load(&comm->ring_mail->repeated);
		all.results += atomic_load(&comm->ring_mail->received);
		all.duplicates += atomic_load(&comm->ring_mail->duplicates);
		all.dropped_packets += atomic_load(&comm->ring_mail->dropped);
	}
	direct = comm->direct;
	all.rounds = comm->rounds;
	all.wait_s = (double)atomic_load(&comm->wait_ns) / 1e9;
	pthread_mutex_unlock(&comm->lock);
	if (direct)
		direct_count(direct, &all);
	all.struct_size = stats->struct_size;
	memcpy(stats, &all, stats->struct_size < sizeof(all) ? stats->struct_size : sizeof(all));
	return TRIB_OK;
}
