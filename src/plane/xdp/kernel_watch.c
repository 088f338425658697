/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/xdp/kernel_watch.h"

#include "base/log.h"
#include "plane/core/failure.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define ENOUGH 256u      /* results before a judgement */
#define PROOF 64u        /* results that arrived, before the interface counts as good */
#define ENOUGH_SMALL 32u /* results of an engine: each one that is lost costs a timeout */
#define CROSSED_US 1000u /* us: a repeat and a result may have crossed each other */
#define MANY 4096u       /* results that are remembered */
#define SAMPLE 16u       /* if the child asked for none, every 16th result is looked at */

/* While children arrive, a result needs more frames, until they share a multicast group. */
void kernel_watch_frames(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	bool paused = xdp_handle_is_wide(own->handle);
	struct comm *comm = lane->comm;

	if (!own->in_kernel || own->paused == paused)
		return;
	own->paused = paused;
	memset(own->watches, 0, sizeof(own->watches)); /* user space and XDP are judged apart */
	if (paused)
		comm_pause_kernel(
			comm, lane->index,
			"in generic mode a result can leave in one frame only, and these "
			"children need several, as they do not hear one multicast through "
			"one interface");
	else
		comm_enter_kernel(comm, lane->index);
	log_info("job %u, communicator %u: lane %u is summed in %s", comm->job, comm->id,
	         lane->index,
	         paused ? "user space as long as its results need several frames" : "the kernel");
}

/* Has user space repeated the fragment in this cell? */
static bool was_repeated(const struct agg_lane *lane, uint32_t index, uint64_t position)
{
	const struct wire_header *header = (const void *)dense_packet(&lane->pool, index);

	return header->pos == (uint32_t)position && header->flags & WIRE_RESENT;
}

/* Notes which results the child asked for. */
static void note_asked(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                       const uint64_t *repeat)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++)
		for (uint64_t word = repeat[i]; word; word &= word - 1) {
			uint64_t position = report->base + 64 * i + (uint64_t)__builtin_ctzll(word);
			uint32_t index = dense_index(lane->dense, position);

			if (!was_repeated(lane, index, position))
				own->asked[index] = 0;
			own->asked[index] |= dense_bit(child);
			if (position >= own->watches[child].asked_end)
				own->watches[child].asked_end = position + 1;
		}
}

/* Counts the results that the child has taken since its last report, by whether it had to ask. */
static void count_taken(const struct agg_lane *lane, struct child_watch *watch, unsigned child)
{
	const struct xdp_kernel_lane *own = xdp_lane_of(lane);
	uint64_t position = watch->next, end = lane->dense->ack[child];
	uint32_t step;

	if (end > position && end - position > lane->dense->cells)
		position = end - lane->dense->cells; /* older cells are reused */
	/* A look at a cell is often a cache miss. */
	step = position >= watch->asked_end ? SAMPLE : 1;
	for (; position < end; position += step) {
		uint32_t index = dense_index(lane->dense, position);
		const struct dense_cell *cell = dense_cell(&lane->pool, index);

		if (cell->position != position || !cell->complete ||
		    !(dense_expected(lane->dense, cell->to) & dense_bit(child)))
			continue;
		if (own->asked[index] & dense_bit(child) && was_repeated(lane, index, position))
			watch->asked++;
		else
			watch->heard += step;
	}
	watch->next = end;
}

/* User space sums the lane from now on. */
static void stop(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	xdp_handle_stop(own->handle);
	own->in_kernel = false;
}

/* The program is of no use to this lane, so it leaves the interfaces of its children. */
static void leave_interfaces(struct agg_lane *lane, const char *why)
{
	for (uint64_t left = lane->known; left; left &= left - 1)
		xdp_handle_leave(xdp_lane_of(lane)->handle, (unsigned)__builtin_ctzll(left), why);
}

static void give_up(struct agg_lane *lane, unsigned child, const struct child_watch *watch)
{
	const struct xdp_lane *shared = xdp_handle_lane(xdp_lane_of(lane)->handle);
	char interface[IF_NAMESIZE] = "?", name[160], why[160];

	if_indextoname(shared->routes[child].ifindex, interface);
	comm_describe_child(lane->comm, child, name, sizeof(name));
	stop(lane);
	comm_leave_kernel(lane->comm, lane->index,
	                  " (as when the other end of a veth has no XDP program, a driver has no "
	                  "queues for it, or a card takes VLAN tags off)",
	                  "%s had to ask for %u of %u results: what XDP sends through interface %s "
	                  "does not reach it",
	                  name, watch->asked, watch->asked + watch->heard, interface);
	if (lane->engine.lane) /* a late result counts as lost there: too little is known */
		return;
	snprintf(why, sizeof(why), "what XDP sends through %s does not reach %.100s", interface,
	         name);
	leave_interfaces(lane, why);
}

void kernel_watch_interfaces(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	char why[160];

	if (!own->in_kernel ||
	    !xdp_handle_is_cut(own->handle, lane->known & ~lane->dense->left, why, sizeof(why)))
		return;
	stop(lane);
	comm_pause_kernel(lane->comm, lane->index, why);
	log_info("job %u, communicator %u: lane %u is summed in user space: %s", lane->comm->job,
	         lane->comm->id, lane->index, why);
	leave_interfaces(lane, why);
}

void kernel_watch_child(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                        const uint64_t *repeat)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	struct child_watch *watch = &own->watches[child];

	if (lane->engine.lane) /* see kernel_watch_repeat() */
		return;
	/* Results that user space sends say nothing about frames of XDP. */
	if (!own->in_kernel || own->paused || !xdp_handle_lane(own->handle)->routes[child].ifindex)
		return;
	if (!watch->next) /* older results left before the program knew the route */
		watch->next = report->base + report->bits;
	note_asked(lane, child, report, repeat);
	if (lane->dense->ack[child] <= watch->next)
		return;
	count_taken(lane, watch, child);
	if (watch->heard >= PROOF && watch->asked < watch->heard / 16)
		xdp_handle_heard(own->handle, child);
	if (watch->asked >= ENOUGH && watch->heard < watch->asked / 16) {
		give_up(lane, child, watch);
	} else if (watch->asked + watch->heard > MANY) {
		watch->asked /= 2;
		watch->heard /= 2;
	}
}

/* Results of an engine that the program has sent to the child. */
static uint64_t count_sent(const struct agg_lane *lane, unsigned child)
{
	const uint64_t *last = xdp_handle_lane(xdp_lane_of(lane)->handle)->last;
	uint64_t sent = 0;

	if (lane->comm->engine->replies)
		return __atomic_load_n(&last[child], __ATOMIC_RELAXED);
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		sent += __atomic_load_n(&last[i], __ATOMIC_RELAXED);
	return sent;
}

void kernel_watch_repeat(struct agg_lane *lane, unsigned child, uint32_t cell, uint64_t now)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	struct child_watch *watch = &own->watches[child];
	uint32_t sent_at = engine_cell(&lane->engine, cell)->sent_at;
	uint32_t age = (uint32_t)(now / 1000) - sent_at;
	uint64_t sent;

	/* A packet that left before the result came says nothing. */
	if (!own->in_kernel || own->paused || !sent_at || age < CROSSED_US || age > INT32_MAX)
		return;
	sent = count_sent(lane, child);
	if (!watch->next)
		watch->next = sent;
	watch->asked++;
	if (watch->asked < ENOUGH_SMALL)
		return;
	watch->heard = sent - watch->next > watch->asked
	                       ? (uint32_t)(sent - watch->next) - watch->asked
	                       : 0;
	if (watch->heard < watch->asked / 4)
		give_up(lane, child, watch);
	else
		watch->next = watch->asked = 0;
}

void kernel_watch_parent(struct agg_lane *lane, uint32_t astray)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	const struct xdp_parent *parent = &xdp_handle_lane(own->handle)->parent;
	uint64_t heard = __atomic_load_n(&parent->heard, __ATOMIC_RELAXED);
	struct parent_watch *watch = &own->up;
	char interface[IF_NAMESIZE] = "?", address[64];

	watch->astray += astray;
	watch->arrived += (uint32_t)(heard - watch->heard) + lane->kernel_heard;
	lane->kernel_heard = 0;
	watch->heard = heard;
	if (watch->astray >= ENOUGH && watch->arrived < watch->astray / 16) {
		if_indextoname(parent->route.ifindex, interface);
		xdp_handle_parent_stop(own->handle);
		watch->over = true;
		log_warn(
			"job %u, communicator %u: the sums of lane %u go up from user space: %u of "
			"%u that XDP sent through interface %s did not reach the aggregator at %s",
			lane->comm->job, lane->comm->id, lane->index, watch->astray,
			watch->astray + watch->arrived, interface,
			udp_text(&lane->parent, address, sizeof(address)));
	} else if (watch->astray + watch->arrived > MANY) {
		watch->astray /= 2;
		watch->arrived /= 2;
	}
}
