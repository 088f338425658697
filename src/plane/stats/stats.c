/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of communicators belongs to thread 0. Another thread leaves a
 * request, which thread 0 fills at its next tick. So no packet waits for a
 * reader of counters.
 */
#include "plane/stats/stats.h"

#include "base/clock.h"
#include "plane/core/join_check.h"
#include "plane/lane/lane_kind.h"
#include "plane/stats/totals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE NSEC_PER_SEC

/* ---- thread 0 ---- */

static const char *comm_state(const struct comm *comm)
{
	return atomic_load(&comm->failed) ? "failed" : comm->running ? "running" : "forming";
}

static void fill_child(struct stats_child *child, const struct comm *comm,
                       const struct agg_lane *lane, unsigned index, uint64_t now)
{
	*child = (struct stats_child){ .rank = index, .waits = -1 };
	snprintf(child->host, sizeof(child->host), "%s", comm->children[index].join.host);
	if (comm->children[index].join.height)
		child->covers = join_covers(&comm->children[index].join);
	if (!lane)
		return;
	child->done = lane->does->done(lane, index);
	child->last = agg_lane_came_last(lane, index);
	child->judged = lane->judged[index];
	child->missed = lane->missed[index];
	child->repeated = lane->repeated[index];
	if (lane->waited[index])
		child->waits = (lane->waited[index] - 1) / 1000.0;
	child->carries_bps = lane->carried[index] * 1024.0;
	child->away = lane->away[index] / 16.0;
	child->silent_s =
		now > lane->heard_at[index] ? (double)(now - lane->heard_at[index]) / 1e9 : 0;
}

static void fill_comm(struct aggregator *aggregator, struct stats *stats, const struct comm *comm)
{
	const struct agg_lane *lane = aggregator->threads[0].lanes[comm->id];
	struct stats_comm *out = &stats->comms[stats->n_comms++];
	char why[sizeof(comm->kernel_why)];

	if (lane && lane->comm != comm)
		lane = NULL;
	*out = (struct stats_comm){ .job = comm->job,
		                    .comm = comm->id,
		                    .key = comm->key,
		                    .generation = comm->generation,
		                    .state = comm_state(comm),
		                    .size = comm->size,
		                    .lanes = comm->lanes,
		                    .kernel_lanes = comm_in_kernel(comm, why, sizeof(why)),
		                    .pool_bytes = (uint64_t)comm->lanes * comm->cells *
		                                  (WIRE_HEADER + comm->payload),
		                    .done = lane ? lane->does->low(lane) : 0,
		                    .first = stats->n_children };
	/* Lanes have equal parts of each vector, and the kernel part moves the same `low`. */
	out->finished_bytes = out->done * comm->lanes * comm->payload;
	for (uint64_t left = comm->present; left; left &= left - 1)
		fill_child(&stats->children[stats->n_children++], comm, lane,
		           (unsigned)__builtin_ctzll(left), aggregator->threads[0].now);
	out->n = stats->n_children - out->first;
}

/* A job's small vectors have a communicator of their own; its stream stands for the job. */
static bool is_told(const struct comm *comm)
{
	return comm && !comm->retired && comm->engine->streams;
}

static bool fill(struct aggregator *aggregator, struct stats *stats)
{
	unsigned comms = 0, children = 0;

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator->comms[id];

		if (is_told(comm)) {
			comms++;
			children += (unsigned)__builtin_popcountll(comm->present);
		}
	}
	stats->comms = calloc(comms ? comms : 1, sizeof(*stats->comms));
	stats->children = calloc(children ? children : 1, sizeof(*stats->children));
	if (!stats->comms || !stats->children)
		return false;
	for (unsigned id = 1; id < COMMS_MAX; id++)
		if (is_told(aggregator->comms[id]))
			fill_comm(aggregator, stats, aggregator->comms[id]);
	return true;
}

void stats_serve(struct aggregator *aggregator)
{
	if (!atomic_load_explicit(&aggregator->stats_wanted, memory_order_acquire))
		return;
	pthread_mutex_lock(&aggregator->stats_lock);
	if (aggregator->stats) {
		aggregator->stats_good = fill(aggregator, aggregator->stats);
		aggregator->stats = NULL;
	}
	atomic_store(&aggregator->stats_wanted, false);
	pthread_cond_broadcast(&aggregator->stats_done);
	pthread_mutex_unlock(&aggregator->stats_lock);
}

/* ---- any thread ---- */

void stats_open(struct aggregator *aggregator)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&aggregator->stats_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&aggregator->stats_done, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void stats_close(struct aggregator *aggregator)
{
	pthread_cond_destroy(&aggregator->stats_done);
	pthread_mutex_destroy(&aggregator->stats_lock);
}

/* One request at a time. False: thread 0 did not serve it in time, or had no memory. */
static bool request(struct aggregator *aggregator, struct stats *stats)
{
	const struct timespec until = clock_span(clock_now() + PATIENCE);
	bool good = true;

	pthread_mutex_lock(&aggregator->stats_lock);
	while (good && aggregator->stats) /* another thread's request */
		good = pthread_cond_timedwait(&aggregator->stats_done, &aggregator->stats_lock,
		                              &until) != ETIMEDOUT;
	if (good) {
		aggregator->stats = stats;
		atomic_store_explicit(&aggregator->stats_wanted, true, memory_order_release);
	}
	while (good && aggregator->stats == stats)
		good = pthread_cond_timedwait(&aggregator->stats_done, &aggregator->stats_lock,
		                              &until) != ETIMEDOUT;
	if (aggregator->stats == stats)
		aggregator->stats = NULL;
	good = good && aggregator->stats_good;
	pthread_mutex_unlock(&aggregator->stats_lock);
	return good;
}

static unsigned take_counts(struct stats_count *out, const uint64_t *counts, unsigned n,
                            const char *(*name)(unsigned index))
{
	unsigned used = 0;

	for (unsigned i = 0; i < n && used < STATS_COUNTS_MAX; i++)
		if (name(i))
			out[used++] = (struct stats_count){ name(i), counts[i] };
	return used;
}

trib_status aggregator_stats(struct aggregator *aggregator, struct stats **out)
{
	struct stats *stats = calloc(1, sizeof(*stats));
	struct totals totals;

	if (!stats || !request(aggregator, stats)) {
		stats_free(stats);
		return status_fail(TRIB_ERR_TIMEOUT,
		                   "the aggregator did not give its counters within %.1f s",
		                   (double)PATIENCE / 1e9);
	}
	totals_read(aggregator, &totals);
	stats->plane = plane_name(aggregator);
	stats->threads = aggregator->n_threads;
	stats->uptime_s = (double)(clock_now() - aggregator->started_at) / 1e9;
	stats->cpu_s = totals.cpu_s;
	stats->kernel_s = totals.kernel_s;
	stats->kernel_packets = totals.kernel_packets;
	stats->kernel_payload = totals.kernel_payload;
	stats->packets = totals.sum.packets;
	stats->bytes = totals.sum.bytes;
	stats->payload = totals.sum.payload;
	stats->results = totals.sum.results;
	stats->repeats = totals.sum.repeats;
	stats->sends = totals.sum.sends;
	stats->reports = totals.sum.reports;
	stats->capacity = aggregator->options.capacity;
	stats->at_once = atomic_load(&aggregator->occupancy.now);
	stats->most_at_once = atomic_load(&aggregator->occupancy.most);
	stats->over_capacity = atomic_load(&aggregator->occupancy.over);
	stats->turns = atomic_load(&aggregator->occupancy.times);
	stats->n_verdicts =
		take_counts(stats->verdicts, totals.sum.verdicts, ENGINE_COUNTED, verdict_name);
	stats->n_drops = take_counts(stats->drops, totals.sum.drops, DROPS_END, drop_name);
	*out = stats;
	return TRIB_OK;
}

void stats_free(struct stats *stats)
{
	if (!stats)
		return;
	free(stats->comms);
	free(stats->children);
	free(stats);
}
