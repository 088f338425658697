/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void comm_fail(struct trib_comm *comm, trib_status status, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&comm->lock);
	if (comm->failed == TRIB_OK) {
		va_start(args, format);
		vsnprintf(comm->failure, sizeof(comm->failure), format, args);
		va_end(args);
		comm->failed = status < 0 ? status : TRIB_ERR_SYSTEM;
		atomic_store_explicit(&comm->stop_lanes, true, memory_order_release);
		pthread_cond_broadcast(&comm->changed);
	}
	pthread_mutex_unlock(&comm->lock);
	for (unsigned i = 0; i < comm->n_lanes; i++)
		lane_wake(comm->lanes[i]);
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

static void comm_free(struct trib_comm *comm)
{
	trunks_close(comm);
	pthread_cond_destroy(&comm->changed);
	pthread_mutex_destroy(&comm->lock);
	free(comm->config.trees);
	free(comm);
}

static trib_status open_trunks(struct trib_comm *comm)
{
	uint64_t deadline = clock_now() + (uint64_t)(comm->config.timeout_s * 1e9);
	trib_status status = trunks_plan(comm);

	return status == TRIB_OK ? trunks_open(comm, deadline) : status;
}

trib_status comm_open(const struct comm_config *config, struct trib_comm **out)
{
	struct trib_comm *comm = calloc(1, sizeof(*comm));
	pthread_condattr_t attributes;
	trib_status status;

	*out = NULL;
	if (!comm) {
		free(config->trees);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a communicator");
	}
	comm->config = *config;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&comm->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (config->size > 1) {
		status = open_trunks(comm);
		if (status != TRIB_OK) {
			comm_free(comm);
			return status;
		}
	}
	*out = comm;
	return TRIB_OK;
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
	if (status != TRIB_OK)
		return status;
	snprintf(prefix, sizeof(prefix), "tributary: rank %d", config.rank);
	log_set_prefix(prefix);
	return comm_open(&config, comm);
}

/* False: the deadline passed first. */
static bool wait_in_flight(struct trib_comm *comm)
{
	struct timespec until = clock_span(clock_now() + (uint64_t)(comm->config.timeout_s * 1e9));
	int error = 0;
	bool ended;

	pthread_mutex_lock(&comm->lock);
	while (!(ended = !comm->in_flight || comm->failed != TRIB_OK) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	pthread_mutex_unlock(&comm->lock);
	return ended;
}

trib_status trib_finalize(trib_comm *comm)
{
	trib_status status = TRIB_OK;
	unsigned left;

	if (!comm)
		return TRIB_OK;
	left = wait_in_flight(comm) ? 0 : comm->in_flight;
	atomic_store(&comm->closing, true);
	trunks_stop(comm);
	if (comm->n_lanes)
		comm_leave(comm);
	while (comm->requests)
		request_end(comm->requests);
	if (comm->failed != TRIB_OK)
		status = status_fail(comm->failed, "%s", comm->failure);
	else if (left)
		status = status_fail(TRIB_ERR_TIMEOUT,
		                     "trib_finalize: %u requests have not ended after %.1f s", left,
		                     comm->config.timeout_s);
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
	trib_stats all = { .struct_size = sizeof(all) };

	if (!comm || !stats || stats->struct_size < sizeof(size_t))
		return status_fail(TRIB_ERR_ARGUMENT, "trib_get_stats: struct_size is not set");
	for (unsigned i = 0; i < comm->n_lanes; i++) {
		struct lane *lane = comm->lanes[i];

		all.sent_packets += atomic_load(&lane->sent);
		all.resent_packets += atomic_load(&lane->resent);
		all.results += atomic_load(&lane->results);
		all.duplicates += atomic_load(&lane->duplicates);
		all.dropped_packets += atomic_load(&lane->drops);
	}
	pthread_mutex_lock(&comm->lock);
	all.rounds = comm->rounds;
	all.wait_s = comm->wait_s;
	pthread_mutex_unlock(&comm->lock);
	all.struct_size = stats->struct_size;
	memcpy(stats, &all, stats->struct_size < sizeof(all) ? stats->struct_size : sizeof(all));
	return TRIB_OK;
}
