/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes of the dense engine: the loop of a lane's thread. It receives packets, sends packets and
 * sleeps. The loop takes no lock and allocates nothing for a packet.
 */
#include "worker/transport/lane_engine_table.h"
#include "worker/transport/lane_internal.h"
#include "worker/transport/lane_page.h"
#include "worker/transport/lane_paths.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define STOPPED_FOR                                                                  \
	(NSEC_PER_SEC / 2) /* 0.5 s: if a pass takes longer, the process was stopped \
	                    */

static void publish(struct lane *lane)
{
	const struct stream *stream = &lane->stream;

	atomic_store_explicit(&lane->waiting, stream_is_idle(stream) ? 0 : stream->waiting,
	                      memory_order_relaxed);
	atomic_store_explicit(&lane->done, stream->done, memory_order_relaxed);
	atomic_store_explicit(&lane->next_base, stream->next_base, memory_order_relaxed);
	atomic_store_explicit(&lane->sent, stream->stats.sent, memory_order_relaxed);
	atomic_store_explicit(&lane->resent, stream->stats.resent, memory_order_relaxed);
	atomic_store_explicit(&lane->judged, stream->stats.judged, memory_order_relaxed);
	atomic_store_explicit(&lane->lost, stream->stats.lost, memory_order_relaxed);
	atomic_store_explicit(&lane->results, stream->stats.results, memory_order_relaxed);
	atomic_store_explicit(&lane->duplicates, stream->stats.duplicates, memory_order_relaxed);
	atomic_store_explicit(&lane->drops, lane->dropped, memory_order_relaxed);
	atomic_store_explicit(&lane->comm->carried[lane->number], lane->meter.bps,
	                      memory_order_relaxed);
}

/* If all rounds of the lane are nearly over, the turn client may start the next request. */
static void note_ending(struct lane *lane)
{
	struct trib_comm *comm = lane->comm;

	if (lane->taken == atomic_load_explicit(&lane->ending, memory_order_relaxed) ||
	    lane->stream.next_base - lane->stream.done >
	            atomic_load_explicit(&lane->nearly, memory_order_relaxed))
		return;
	atomic_store(&lane->ending, lane->taken);
	pthread_mutex_lock(&comm->lock);
	comm_wake_turns(comm);
	pthread_mutex_unlock(&comm->lock);
}

static void sleep_until_needed(struct lane *lane, uint64_t now, bool blocked)
{
	struct pollfd fds[3] = { { .fd = lane->wake_fd, .events = POLLIN },
		                 { .fd = lane->fd,
		                   .events = (short)(POLLIN | (blocked ? POLLOUT : 0)) },
		                 { .fd = lane->group_fd, .events = POLLIN } };
	uint64_t wake = lane->spoke_at + lane_heartbeat_every(lane);
	uint64_t stream = stream_wake(&lane->stream, now);
	bool for_rate = false;
	struct timespec span;
	uint64_t count;
	int n;

	/* If the socket is full, a packet that is due now has to wait for it. */
	if (stream < wake && (stream > now || !blocked))
		wake = stream;
	if (pacer_free_at(&lane->pacer) > now && !stream_is_idle(&lane->stream) &&
	    pacer_free_at(&lane->pacer) < wake) {
		wake = pacer_free_at(&lane->pacer);
		for_rate = true;
	}
	span = clock_span(wake > now ? wake - now : 0);
	n = ppoll(fds, lane->group_fd >= 0 ? 3 : 2, &span, NULL);
	if (n == 0 && for_rate)
		lane->pacer.naps++;
	if (n > 0 && fds[0].revents)
		if (read(lane->wake_fd, &count, sizeof(count)) < 0)
			log_debug("eventfd: %s", strerror(errno));
}

/* Nothing is in flight, and no rank can need a past round. */
static bool note_idle(struct lane *lane)
{
	bool idle = stream_is_idle(&lane->stream) && !lane->kept && !lane->finishing &&
	            !atomic_load_explicit(&lane->posted, memory_order_acquire);

	atomic_store_explicit(&lane->idle, idle, memory_order_release);
	return idle;
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;
	struct trib_comm *comm = lane->comm;
	uint64_t last = clock_now();
	unsigned idle = 0;

	lane->heard_at = last;
	while (!atomic_load_explicit(&comm->closing, memory_order_relaxed)) {
		uint64_t now = clock_now();
		bool blocked, sent, got;

		if (now - last > STOPPED_FOR)
			lane->heard_at +=
				now - last; /* our own stop is no silence of the aggregator */
		last = now;
		lane_take_posts(lane, now);
		got = lane_receive(lane, now);
		pacer_forget(&lane->pacer, now);
		blocked = lane_send(lane, now, &sent);
		publish(lane);
		note_ending(lane);
		if (lane->finishing)
			lane_finish_held(lane, now);
		lane_forget_kept(lane);
		lane_check_silence(lane, now);
		if (lane_paths_check(lane, now))
			lane->spoke_at = 0; /* a report tells the aggregator our address */
		lane_page_show(lane, now);
		if (atomic_load_explicit(&comm->stop_lanes, memory_order_acquire))
			break;
		if (note_idle(lane) && atomic_load_explicit(&lane->leaves, memory_order_relaxed))
			break;
		idle = got || (sent && !blocked) ? 0 : idle + 1;
		if (idle && !comm->config.socket.busy_poll)
			sleep_until_needed(lane, now, blocked);
	}
	lane_go_quiet(lane);
	pthread_mutex_lock(&comm->lock);
	atomic_store(&lane->ended, true);
	if (atomic_load(&lane->leaves))
		comm_wake_turns(comm);
	pthread_mutex_unlock(&comm->lock);
	return NULL;
}

/*
 * The rate limit of a set of lanes. The user's limit is that of the link. If ranks sum for each
 * other, each rank also receives the others' parts and sends their results. So the link is full at
 * a lower rate.
 */
static double set_rate(const struct trib_comm *comm, const struct lane_set *set)
{
	double rate = (double)comm->config.rate_bps, ranks = comm->config.size;

	return comm->shared.striping.n && set == &comm->own ? rate * ranks / (2 * ranks - 2) : rate;
}

static trib_status dense_start(struct lane *lane)
{
	struct trib_comm *comm = lane->comm;
	const struct lane_set *set =
		trunk_is_shared(comm, lane->trunk) ? &comm->shared : &comm->own;
	double share = striping_share(&set->striping, lane->number - set->first);

	lane->carrier->start(lane);
	lane->spoke_at = 0; /* the first packet is a report: the aggregator learns our address */
	atomic_store(&comm->carried[lane->number], 0);
	stream_init(&lane->stream, lane->index, (unsigned)comm->config.rank,
	            (unsigned)comm->config.size, lane->trunk->welcome.cells, comm->payload);
	lane->stream.reliable = comm->config.tcp;
	stream_new_path(&lane->stream, comm->paths.n > 1);
	lane->stream.on_finished = lane_on_finished;
	lane->stream.on_over = lane_on_over;
	lane->stream.context = lane;
	pacer_start(&lane->pacer, (uint64_t)(set_rate(comm, set) * share),
	            (uint64_t)lane->trunk->welcome.rate * LANE_RATE_UNIT, clock_now());
	lane->stream.want = pacer_want(&lane->pacer, share, LANE_RATE_UNIT);
	lane_paths_start(lane, clock_now());
	pacing_start(lane);
	if (pthread_create(&lane->thread, NULL, lane_main, lane))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for lane %u",
		                   lane->number);
	lane->started = true;
	cores_pin(lane->thread, comm->config.pin, lane->number);
	return TRIB_OK;
}

static uint64_t dense_pool_bytes(const struct comm_config *config, uint32_t bytes)
{
	(void)bytes;
	return config->pool_bytes;
}

const struct lane_engine lane_engine_dense = {
	.name = "dense",
	.number = ENGINE_DENSE,
	.any_cells = true,
	.lanes_max = WIRE_LANES_MAX,
	.pool_bytes = dense_pool_bytes,
	.start = dense_start,
	.posted = lane_wake,
	.stopped = pacing_end,
};
