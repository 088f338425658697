/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of communicators is thread 0's alone. Who wants it leaves a
 * request, which thread 0 fills at its next tick; so no packet ever waits for
 * a reader of counters.
 */
#include "plane/core/stats.h"

#include "base/clock.h"
#include "plane/core/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE NSEC_PER_SEC

static void add(struct counters *sum, const struct counters *one)
{
	const uint64_t *from = (const uint64_t *)one;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

/* What the program counted on all cores; a part of the totals. */
static void add_kernel(struct totals *totals, struct xdp_plane *plane)
{
	struct xdp_counts counts;
	struct counters *sum = &totals->sum;

	xdp_count(plane, &counts);
	counts.verdicts[DENSE_ADDED] += counts.added;
	for (unsigned i = 0; i < DENSE_VERDICTS_END; i++) {
		totals->kernel_packets += counts.verdicts[i];
		sum->verdicts[i] += counts.verdicts[i];
	}
	totals->kernel_s = xdp_run_time(plane);
	totals->kernel_payload = counts.payload;
	totals->kernel_results = counts.results;
	totals->kernel_busy = counts.busy;
	totals->kernel_raised = counts.raised;
	totals->kernel_lowered = counts.lowered;
	totals->kernel_left = counts.left;
	totals->kernel_queued = counts.queued;
	totals->kernel_full = counts.full;
	totals->kernel_packets += counts.lowered + counts.echoes;
	sum->packets += totals->kernel_packets;
	sum->bytes +=
		(counts.added + counts.verdicts[DENSE_COMPLETE] + counts.verdicts[DENSE_SUMMED]) *
			WIRE_HEADER +
		counts.payload;
	sum->raised += counts.raised;
	sum->lowered += counts.lowered;
	sum->payload += counts.payload;
	sum->results += counts.results;
	sum->sends += counts.sends;
}

void totals_read(struct aggregator *aggregator, struct totals *totals)
{
	*totals = (struct totals){ 0 };
	for (unsigned i = 0; i < aggregator->n_threads; i++) {
		struct thread *thread = &aggregator->threads[i];

		pthread_mutex_lock(&thread->lock);
		add(&totals->sum, &thread->published);
		totals->cpu_s += thread->cpu_s;
		pthread_mutex_unlock(&thread->lock);
	}
	if (aggregator->xdp)
		add_kernel(totals, aggregator->xdp);
}

/* ---- thread 0 ---- */

static const char *comm_state(const struct comm *comm)
{
	return atomic_load(&comm->failed) ? "failed" : comm->running ? "running" : "forming";
}

uint64_t lane_came_last(const struct lane *lane, unsigned child)
{
	return lane->last[child] + (lane->xdp ? xdp_slot_lane(lane->xdp)->last[child] : 0);
}

static void fill_child(struct stats_child *child, const struct comm *comm, const struct lane *lane,
                       unsigned index, uint64_t now)
{
	*child = (struct stats_child){ .rank = index, .waits = -1 };
	snprintf(child->host, sizeof(child->host), "%s", comm->children[index].join.host);
	if (comm->children[index].join.height)
		child->covers = join_covers(&comm->children[index].join);
	if (!lane)
		return;
	child->done = lane->dense->ack[index];
	child->last = lane_came_last(lane, index);
	child->judged = lane->judged[index];
	child->missed = lane->missed[index];
	child->repeated = lane->repeated[index];
	if (lane->waited[index])
		child->waits = (lane->waited[index] - 1) / 1000.0;
	child->carries_bps = lane->carried[index] * 1024.0;
	child->silent_s =
		now > lane->heard_at[index] ? (double)(now - lane->heard_at[index]) / 1e9 : 0;
}

static void fill_comm(struct aggregator *aggregator, struct stats *stats, const struct comm *comm)
{
	const struct lane *lane = aggregator->threads[0].lanes[comm->id];
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
		                    .done = lane ? lane->dense->low : 0,
		                    .first = stats->n_children };
	/* A tree's lanes have equal parts of each vector, and the kernel moves the same `low`. */
	out->finished_bytes = out->done * comm->lanes * comm->payload;
	for (uint64_t left = comm->present; left; left &= left - 1)
		fill_child(&stats->children[stats->n_children++], comm, lane,
		           (unsigned)__builtin_ctzll(left), aggregator->threads[0].now);
	out->n = stats->n_children - out->first;
}

static bool fill(struct aggregator *aggregator, struct stats *stats)
{
	unsigned comms = 0, children = 0;

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator->comms[id];

		if (comm && !comm->retired) {
			comms++;
			children += (unsigned)__builtin_popcountll(comm->present);
		}
	}
	stats->comms = calloc(comms ? comms : 1, sizeof(*stats->comms));
	stats->children = calloc(children ? children : 1, sizeof(*stats->children));
	if (!stats->comms || !stats->children)
		return false;
	for (unsigned id = 1; id < COMMS_MAX; id++)
		if (aggregator->comms[id] && !aggregator->comms[id]->retired)
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

/* ---- others ---- */

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

/* One at a time; false: thread 0 did not come by, or had no memory. */
static bool request(struct aggregator *aggregator, struct stats *stats)
{
	const struct timespec until = clock_span(clock_now() + PATIENCE);
	bool good = true;

	pthread_mutex_lock(&aggregator->stats_lock);
	while (good && aggregator->stats) /* another one's */
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
	stats->plane = aggregator->xdp ? "xdp" : aggregator->carrier->plane;
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
	stats->at_once = atomic_load(&aggregator->crowd.now);
	stats->most_at_once = atomic_load(&aggregator->crowd.most);
	stats->over_capacity = atomic_load(&aggregator->crowd.over);
	stats->turns = atomic_load(&aggregator->crowd.times);
	stats->n_verdicts = take_counts(stats->verdicts, totals.sum.verdicts, DENSE_VERDICTS_END,
	                                describe_verdict);
	stats->n_drops = take_counts(stats->drops, totals.sum.drops, DROPS_END, describe_drop);
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
