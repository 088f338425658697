/* SPDX-License-Identifier: Apache-2.0 */
/* The failover thread, and finding trees that work. failover.h has the overview. */
#include "worker/failover/failover.h"
#include "worker/sharing/sharing.h"
#include "worker/trees/plan_client.h"
#include "worker/trees/trees.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define TRY_SHARE 6.0 /* one plan may take 1/6 of the timeout: its trees may be lost, too */
#define TRY_MIN 1.0   /* seconds, at least */

/* Ranks of this communicator whose seats are not in the newest plan. */
static uint64_t ranks_gone(const struct trib_comm *comm)
{
	uint64_t gone = 0, rank = 0;

	for (uint64_t seats = comm->seats; seats; seats &= seats - 1, rank++)
		if (!(comm->planned_seats & seats & -seats))
			gone |= 1ull << rank;
	return gone;
}

/*
 * Once the user has the communicator, its ranks cannot change, and no process can take the place of
 * another. Before that, a plan may change both: all ranks learn of it by the same plan. The caller
 * holds `lock`: a user's call that times out changes `failure`.
 */
static trib_status check_place(struct trib_comm *comm)
{
	bool came = comm->planned_since > comm->config.epoch;
	char gone[200];

	if (!comm->opened) {
		comm->seats = comm->planned_seats;
		comm->config.rank = comm->planned_rank;
		comm->config.size = comm->planned_size;
		if (came)
			comm->config.epoch = comm->planned_since;
		return TRIB_OK;
	}
	if (came && comm->planned_size == comm->config.size)
		return status_fail(TRIB_ERR_PEER,
		                   "%s; in the controller's new plan another process has taken the "
		                   "place of a rank, so this communicator ends",
		                   comm->failure);
	if (comm->planned_rank == comm->config.rank && comm->planned_size == comm->config.size)
		return TRIB_OK;
	comm_list_ranks(ranks_gone(comm), gone, sizeof(gone));
	return status_fail(TRIB_ERR_PEER,
	                   "%s; the controller's new plan has %d ranks instead of %d%s%s, so this "
	                   "communicator ends",
	                   comm->failure, comm->planned_size, comm->config.size,
	                   *gone ? ", without rank " : "", gone);
}

/* Gives the current trees up. The next ones are not lost yet. */
static void give_trees_up(struct trib_comm *comm)
{
	trunks_close(comm);
	pthread_mutex_lock(&comm->lock);
	comm->trees_lost = TRIB_OK;
	atomic_store(&comm->stop_lanes, comm->failed != TRIB_OK);
	pthread_mutex_unlock(&comm->lock);
}

static trib_status open_trees(struct trib_comm *comm, uint64_t deadline)
{
	double share = comm->config.timeout_s / TRY_SHARE;
	uint64_t until = clock_now() + (uint64_t)((share < TRY_MIN ? TRY_MIN : share) * 1e9);
	trib_status status = trunks_plan(comm);

	if (status == TRIB_OK)
		status = trunks_open(comm, until < deadline ? until : deadline);
	/* A rank that did not join may know of a newer plan: ask the controller again. */
	return status == TRIB_ERR_TIMEOUT || status == TRIB_ERR_PEER ? TRIB_ERR_AGGREGATOR : status;
}

static trib_status try_plan(struct trib_comm *comm, bool first, uint64_t deadline)
{
	trib_status status = comm_ask_plan(comm, deadline);
	uint32_t before = comm->config.epoch;

	if (status == TRIB_ERR_AGGREGATOR && !first)
		return TRIB_ERR_TIMEOUT; /* without a controller there are no other trees */
	if (first)
		before = comm->config.epoch = comm->config.generation;
	if (status == TRIB_OK) {
		pthread_mutex_lock(&comm->lock);
		status = check_place(comm);
		pthread_mutex_unlock(&comm->lock);
	}
	if (status != TRIB_OK || comm->config.size == 1)
		return status;
	give_trees_up(comm);
	if (comm->config.ring_seats)
		return TRIB_OK;
	status = open_trees(comm, deadline);
	/* Other ranks may have used these trees before, unless a process has just come in. */
	if (status == TRIB_OK && !first && comm->config.epoch == before)
		status = recover_requests(comm, deadline);
	return status;
}

trib_status failover_find_trees(struct trib_comm *comm, bool first, uint64_t deadline)
{
	trib_status status;

	for (;; first = false) {
		trunks_stop(comm);
		status = try_plan(comm, first, deadline);
		if (status != TRIB_ERR_AGGREGATOR || clock_now() >= deadline || comm_is_over(comm))
			return status;
		log_info("the trees of plan %u do not work: %s", comm->config.generation,
		         trib_last_error());
	}
}

static void fail_for_good(struct trib_comm *comm, trib_status status)
{
	char before[sizeof(comm->failure)];

	pthread_mutex_lock(&comm->lock);
	if (comm->failed == TRIB_OK) {
		snprintf(before, sizeof(before), "%s", trib_last_error());
		snprintf(comm->failure, sizeof(comm->failure), "%s", before);
		comm->failed = status;
		comm->unhurt = !comm->in_flight;
	}
	atomic_store(&comm->stop_lanes, true);
	atomic_store(&comm->stop_ring, true);
	if (comm->ring_mail)
		ring_mail_wake(comm->ring_mail);
	pthread_mutex_unlock(&comm->lock);
	trunks_stop(comm);
	pthread_mutex_lock(&comm->posting); /* calls look at it to see whether they may start */
	pthread_mutex_lock(&comm->lock);
	comm->recovering = false;
	comm->quiet_lanes = comm->n_lanes;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
}

static void recover(struct trib_comm *comm)
{
	char why[sizeof(comm->failure)];
	uint64_t start = clock_now();
	trib_status status;

	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock);
	comm->recovering = true;
	memcpy(why, comm->failure, sizeof(why));
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	pthread_mutex_lock(&comm->trunks_lock);
	star_switch_drop(comm);
	log_warn("%s; asking the controller for other trees", why);
	status = failover_find_trees(comm, false, start + (uint64_t)(comm->config.timeout_s * 1e9));
	if (status != TRIB_OK)
		fail_for_good(comm, status);
	else
		log_notice("goes on in the trees of plan %u, after %.3f s", comm->config.generation,
		           (double)(clock_now() - start) / 1e9);
	pthread_mutex_unlock(&comm->trunks_lock);
}

static void *failover_main(void *argument)
{
	struct trib_comm *comm = argument;

	if (comm_is_ring(comm)) {
		ring_tell_alive(comm);
		return NULL;
	}
	pthread_mutex_lock(&comm->lock);
	while (!atomic_load(&comm->closing) && comm->failed == TRIB_OK) {
		bool hurt = comm->trees_lost, suspects = comm->suspects;

		comm->suspects = false;
		if (!hurt && !suspects) {
			pthread_cond_wait(&comm->changed, &comm->lock);
			continue;
		}
		pthread_mutex_unlock(&comm->lock);
		if (hurt)
			recover(comm);
		else
			suspicion_settle(comm);
		pthread_mutex_lock(&comm->lock);
	}
	pthread_mutex_unlock(&comm->lock);
	return NULL;
}

trib_status failover_start(struct trib_comm *comm)
{
	if (pthread_create(&comm->failover_thread, NULL, failover_main, comm))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start the failover thread");
	comm->failover_runs = true;
	return TRIB_OK;
}

void failover_stop(struct trib_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	pthread_join(comm->failover_thread, NULL);
}
