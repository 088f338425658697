/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/comm.h"

#include "base/clock.h"
#include "base/peer_text.h"
#include "base/log.h"
#include "wire/key.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* 1 ms: most drivers stop sooner. Then a thread that yields costs less than one that is woken. */
#define DRIVER_BRIEF (NSEC_PER_SEC / 1000)

/* While trees are given up, ranks see each other leave. These statuses prove nothing then. */
static bool is_echo(trib_status status)
{
	return status == TRIB_ERR_AGGREGATOR || status == TRIB_ERR_PEER ||
	       status == TRIB_ERR_MISMATCH;
}

void comm_fail_told(struct trib_comm *comm, trib_status status, uint32_t rank, const char *text)
{
	bool loses_trees = status == TRIB_ERR_AGGREGATOR && comm->keeps_ledgers &&
	                   !atomic_load(&comm->closing);

	pthread_mutex_lock(&comm->lock);
	if (comm->failed == TRIB_OK && !(comm->trees_lost && is_echo(status))) {
		peer_text(comm->failure, sizeof(comm->failure), text, sizeof(comm->failure));
		if (status == TRIB_ERR_PEER && rank < WIRE_CHILDREN_MAX)
			atomic_fetch_or(&comm->lost, 1ull << rank);
		if (loses_trees)
			comm->trees_lost = status;
		else
			comm->failed = status < 0 ? status : TRIB_ERR_SYSTEM;
		comm->unhurt = comm->failed == TRIB_ERR_AGGREGATOR && !comm->in_flight;
		atomic_store_explicit(&comm->stop_ring, comm->failed != TRIB_OK,
		                      memory_order_release);
		atomic_store_explicit(&comm->stop_lanes, true, memory_order_release);
		pthread_cond_broadcast(&comm->changed);
		for (unsigned i = 0; i < comm->n_lanes; i++)
			lane_wake(comm->lanes[i]);
		if (comm->ring_mail)
			ring_mail_wake(comm->ring_mail);
	}
	pthread_mutex_unlock(&comm->lock);
}

void comm_fail(struct trib_comm *comm, trib_status status, const char *format, ...)
{
	char text[sizeof(comm->failure)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	comm_fail_told(comm, status, UINT32_MAX, text);
}

bool comm_wait_driver(struct trib_comm *comm, pthread_mutex_t *driver,
                      const struct trib_request *request, uint64_t deadline)
{
	uint64_t brief = clock_now() + DRIVER_BRIEF;
	struct timespec until = clock_span(deadline);
	bool mine = false;
	int error = 0;

	brief = brief < deadline ? brief : deadline;
	while (atomic_load(&request->rounds_left) && !(mine = !pthread_mutex_trylock(driver)) &&
	       clock_now() < brief)
		sched_yield();
	if (mine)
		return true;
	atomic_fetch_add(&comm->driver_waits, 1);
	pthread_mutex_lock(&comm->lock);
	while (atomic_load(&request->rounds_left) && error != ETIMEDOUT &&
	       !(mine = !pthread_mutex_trylock(driver)))
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	pthread_mutex_unlock(&comm->lock);
	atomic_fetch_sub(&comm->driver_waits, 1);
	return mine;
}

void comm_wake_drivers(struct trib_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

/* The oldest request that has not ended; NULL: none. While ranks vote on the way of a call, the
 * vote stands for that call. The caller holds `lock`. */
static const struct trib_request *oldest_request(const struct trib_comm *comm)
{
	const struct trib_request *vote = &comm->trial.vote;
	const struct trib_request *oldest = vote->posted && !vote->done ? vote : NULL;

	for (const struct trib_request *r = comm->requests; r; r = r->next)
		if (r->posted && !r->done && (!oldest || r->number < oldest->number))
			oldest = r;
	return oldest;
}

struct wire_call comm_call(struct trib_comm *comm, uint32_t asks)
{
	const struct trib_request *oldest;
	struct wire_call call = { 0 };

	pthread_mutex_lock(&comm->lock);
	oldest = oldest_request(comm);
	if (comm->n_calls)
		call = comm->calls[(comm->n_calls - 1) % COMM_CALLS];
	if (oldest) {
		call = oldest->call;
		call.open = 1;
	}
	if (asks && (!oldest || call.number != asks - 1)) {
		const struct wire_call *past = &comm->calls[(asks - 1) % COMM_CALLS];

		if (past->kind && past->number == asks - 1)
			call = *past;
	}
	pthread_mutex_unlock(&comm->lock);
	return call;
}

bool comm_is_over(struct trib_comm *comm)
{
	bool failed;

	pthread_mutex_lock(&comm->lock);
	failed = comm->failed != TRIB_OK;
	pthread_mutex_unlock(&comm->lock);
	return failed || atomic_load(&comm->closing);
}

void comm_list_ranks(uint64_t mask, char *out, size_t size)
{
	size_t used = 0;

	out[0] = 0;
	for (unsigned rank = 0; mask && used + 8 < size; rank++, mask >>= 1)
		if (mask & 1)
			used += (size_t)snprintf(out + used, size - used, used ? ", %u" : "%u",
			                         rank);
}

void comm_wake_turns(const struct trib_comm *comm)
{
	uint64_t one = 1;

	if (comm->turn_client && write(comm->turn_wake_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %s", strerror(errno)); /* full: the thread is awake */
}

uint64_t comm_key(const struct comm_config *config)
{
	return wire_key(config->key, config->epoch);
}

void comm_count(const struct trib_comm *comm, unsigned first, trib_stats *all)
{
	for (unsigned i = first; i < comm->n_lanes; i++) {
		struct lane *lane = comm->lanes[i];

		all->sent_packets += atomic_load(&lane->sent);
		all->resent_packets += atomic_load(&lane->resent);
		all->results += atomic_load(&lane->results);
		all->duplicates += atomic_load(&lane->duplicates);
		all->dropped_packets += atomic_load(&lane->drops);
	}
}

bool comm_note_star_lost(struct lane *lane, trib_status status, uint32_t rank, const char *text)
{
	struct trib_comm *comm = lane->comm;
	struct star_loss *loss = &comm->star_loss;
	bool ours;

	if (!trunk_is_shared(comm, lane->trunk) ||
	    (status != TRIB_ERR_AGGREGATOR && status != TRIB_ERR_PEER))
		return false;
	pthread_mutex_lock(&comm->lock);
	ours = comm->turn_client && !comm->recovering && !comm->trees_lost &&
	       comm->failed == TRIB_OK && !atomic_load(&comm->closing);
	if (ours && loss->status == TRIB_OK) {
		loss->status = status;
		loss->rank = rank;
		snprintf(loss->text, sizeof(loss->text), "%s", text);
		comm_wake_turns(comm);
	}
	pthread_mutex_unlock(&comm->lock);
	return ours;
}
