/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/loop/thread_loop.h"

#include "base/clock.h"
#include "base/log.h"
#include "plane/stream/child_rates.h"
#include "plane/lane/lane_kind.h"
#include "plane/lane/lane_handover.h"
#include "plane/membership/drain.h"
#include "plane/membership/liveness.h"
#include "plane/stats/stats.h"

#include <stdio.h>
#include <sys/resource.h>

#define UNKNOWN_A_TICK 64u       /* packets of unknown communicators that are answered per tick */
#define CHECK_EVERY NSEC_PER_SEC /* between two looks at the kernel part */
#define STOPPED_FOR (NSEC_PER_SEC / 2) /* 500 ms: after a longer gap, this process stood still */

/* Thread 0 marks children that have left. The other threads copy the marks to their lanes. */
static void see_leavers(struct thread *thread)
{
	for (unsigned id = 1; id < thread->ids; id++) {
		struct agg_lane *lane = thread->lanes[id];

		if (lane && lane->left != lane->comm->gone) {
			lane->left = lane->comm->gone;
			lane->does->leave(lane);
		}
	}
}

static void publish(struct thread *thread)
{
	struct rusage usage;

	pthread_mutex_lock(&thread->lock);
	thread->published = thread->counters;
	if (getrusage(RUSAGE_THREAD, &usage) == 0)
		thread->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	pthread_mutex_unlock(&thread->lock);
}

/*
 * The kernel part does nothing more: communicators that begin from now on have none. Those that run
 * keep its cells.
 */
static void leave_kernel(struct aggregator *aggregator)
{
	if (atomic_load(&aggregator->kernel_left))
		return;
	snprintf(aggregator->left, sizeof(aggregator->left),
	         "%s: %s was asked for, but its program could stay on no interface",
	         aggregator->plane_name, aggregator->kernel->ops->title);
	atomic_store(&aggregator->kernel_left, true);
	log_warn("plane %s", aggregator->left);
}

/* The additional work of thread 0: it serves requests and looks at every communicator. */
static void tick_first(struct aggregator *aggregator, uint64_t gap)
{
	struct kernel *kernel = aggregator->kernel;
	uint64_t now = aggregator->threads[0].now;

	stats_serve(aggregator);
	drain_serve(aggregator);
	if (kernel && now >= aggregator->check_at) {
		aggregator->check_at = now + CHECK_EVERY;
		if (!kernel->ops->check(kernel))
			leave_kernel(aggregator);
	}
	liveness_tick(aggregator, gap);
}

static void tick(struct thread *thread, uint64_t gap)
{
	publish(thread);
	thread->unknown_left = UNKNOWN_A_TICK;
	if (thread->index == 0)
		tick_first(thread->aggregator, gap);
	else
		see_leavers(thread);
	for (unsigned id = 1; id < thread->ids; id++) {
		if (thread->lanes[id])
			thread->lanes[id]->does->tick(thread, thread->lanes[id]);
	}
	child_rates_tick(thread);
	thread->aggregator->carrier->tick(thread);
}

void *thread_loop(void *argument)
{
	struct thread *thread = argument;
	struct aggregator *aggregator = thread->aggregator;
	const struct carrier *carrier = aggregator->carrier;
	uint64_t last = clock_now(), tick_at = last;

	thread->unknown_left = UNKNOWN_A_TICK;
	while (!atomic_load_explicit(&aggregator->stop, memory_order_relaxed)) {
		int n = carrier->fetch(thread);
		uint64_t gap;

		thread->now = clock_now();
		gap = thread->now - last > STOPPED_FOR ? thread->now - last : 0;
		last = thread->now;
		lane_handover_read(thread);
		carrier->take(thread, n);
		lane_handover_read(
			thread); /* a JOIN may have made a lane whose packets come next */
		child_rates_look(thread);
		carrier->flush(thread);
		if (gap || thread->now >= tick_at) {
			tick_at = thread->now + TICK_NS;
			tick(thread, gap);
			carrier->flush(thread);
		}
		if (n <= 0 && !aggregator->options.socket.busy_poll)
			carrier->sleep(thread);
	}
	lane_handover_drop_all(thread);
	publish(thread);
	return NULL;
}
