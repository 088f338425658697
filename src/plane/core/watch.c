/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lanes the kernel sums, and whether what it sends arrives. A frame
 * that XDP sends may be dropped without a word: a veth drops it if the other
 * end has no program, a card may lack the queues. The child then asks for
 * every result, one by one. That is exact, and slow: the lane is better off
 * in user space. A parent that misses every sum gets them from user space.
 */
#include "plane/core/internal.h"

#include "base/log.h"

#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ENOUGH 256u /* results to judge by */
#define MANY 4096u  /* and how many are remembered */
#define SAMPLE 16u  /* where none was asked for, one of so many stands for all */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void comm_enter_kernel(struct comm *comm, unsigned lane)
{
	pthread_mutex_lock(&lock);
	comm->kernel_lanes |= 1u << lane;
	pthread_mutex_unlock(&lock);
}

void comm_leave_kernel(struct comm *comm, unsigned lane, const char *hint, const char *format, ...)
{
	char why[sizeof(comm->kernel_why)];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	log_warn("job %u, communicator %u: lane %u is summed in user space: %s%s", comm->job,
	         comm->id, lane, why, hint);
	pthread_mutex_lock(&lock);
	comm->kernel_lanes &= ~(1u << lane);
	memcpy(comm->kernel_why, why, sizeof(why));
	pthread_mutex_unlock(&lock);
}

unsigned comm_in_kernel(const struct comm *comm, char *why, size_t size)
{
	unsigned lanes;

	pthread_mutex_lock(&lock);
	lanes = (unsigned)__builtin_popcount(comm->kernel_lanes);
	/* Those that had a reason may be back. */
	snprintf(why, size, "%s", lanes == comm->lanes ? "" : comm->kernel_why);
	pthread_mutex_unlock(&lock);
	return lanes;
}

/* As children come, frames are more until they are heard to share a group. */
void lane_watch_frames(struct lane *lane)
{
	bool rests = xdp_slot_is_wide(lane->xdp);
	struct comm *comm = lane->comm;

	if (!lane->in_kernel || lane->rests == rests)
		return;
	lane->rests = rests;
	memset(lane->watches, 0, sizeof(lane->watches)); /* each is judged by its own results */
	pthread_mutex_lock(&lock);
	if (rests) {
		comm->kernel_lanes &= ~(1u << lane->index);
		snprintf(comm->kernel_why, sizeof(comm->kernel_why),
		         "in generic mode a result can leave in one frame only, and these children "
		         "need several, as they do not hear one multicast through one interface");
	} else {
		comm->kernel_lanes |= 1u << lane->index;
	}
	pthread_mutex_unlock(&lock);
	log_info("job %u, communicator %u: lane %u is summed in %s", comm->job, comm->id,
	         lane->index,
	         rests ? "user space as long as its results need several frames" : "the kernel");
}

/* Has user space repeated the fragment in this cell? */
static bool was_repeated(const struct lane *lane, uint32_t index, uint64_t position)
{
	const struct wire_header *header = (const void *)dense_packet(&lane->pool, index);

	return header->pos == (uint32_t)position && header->flags & WIRE_RESENT;
}

/* Notes who asked. */
static void note_asked(struct lane *lane, unsigned child, const struct wire_report *report,
                       const uint64_t *repeat)
{
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++)
		for (uint64_t word = repeat[i]; word; word &= word - 1) {
			uint64_t position = report->base + 64 * i + (uint64_t)__builtin_ctzll(word);
			uint32_t index = dense_index(lane->dense, position);

			if (!was_repeated(lane, index, position))
				lane->asked[index] = 0;
			lane->asked[index] |= dense_bit(child);
			if (position >= lane->watches[child].asked_end)
				lane->watches[child].asked_end = position + 1;
		}
}

/* Of the results that the child has taken since it last reported: which had it to ask for? */
static void count_taken(const struct lane *lane, struct watch *watch, unsigned child)
{
	uint64_t position = watch->next, end = lane->dense->ack[child];
	uint32_t step;

	if (end > position && end - position > lane->dense->cells)
		position = end - lane->dense->cells; /* the cells of those before are others' */
	/* Each look at a cell may have to fetch it from far. */
	step = position >= watch->asked_end ? SAMPLE : 1;
	for (; position < end; position += step) {
		uint32_t index = dense_index(lane->dense, position);
		const struct dense_cell *cell = dense_cell(&lane->pool, index);

		if (cell->position != position || !cell->complete ||
		    !(dense_expected(lane->dense, cell->to) & dense_bit(child)))
			continue;
		if (lane->asked[index] & dense_bit(child) && was_repeated(lane, index, position))
			watch->asked++;
		else
			watch->heard += step;
	}
	watch->next = end;
}

static void give_up(struct lane *lane, unsigned child, const struct watch *watch)
{
	char interface[IF_NAMESIZE] = "?", rank[160];

	if_indextoname(xdp_slot_lane(lane->xdp)->routes[child].ifindex, interface);
	xdp_slot_stop(lane->xdp);
	lane->in_kernel = false;
	comm_leave_kernel(lane->comm, lane->index,
	                  " (as when the other end of a veth has no XDP program, a driver has no "
	                  "queues for it, or a card takes VLAN tags off)",
	                  "%s had to ask for %u of %u results: what XDP sends through interface %s "
	                  "does not reach it",
	                  comm_describe_child(lane->comm, child, rank, sizeof(rank)), watch->asked,
	                  watch->asked + watch->heard, interface);
}

void lane_watch(struct lane *lane, unsigned child, const struct wire_report *report,
                const uint64_t *repeat)
{
	struct watch *watch = &lane->watches[child];

	/* What user space sends meanwhile says nothing about what XDP does. */
	if (lane->rests || !xdp_slot_lane(lane->xdp)->routes[child].ifindex)
		return;
	if (!watch->next) /* what is complete by now left before the kernel knew the way */
		watch->next = report->base + report->bits;
	note_asked(lane, child, report, repeat);
	if (lane->dense->ack[child] <= watch->next)
		return;
	count_taken(lane, watch, child);
	if (watch->asked >= ENOUGH && watch->heard < watch->asked / 16) {
		give_up(lane, child, watch);
	} else if (watch->asked + watch->heard > MANY) {
		watch->asked /= 2;
		watch->heard /= 2;
	}
}

void lane_watch_up(struct lane *lane, uint32_t astray)
{
	const struct xdp_parent *parent = &xdp_slot_lane(lane->xdp)->parent;
	uint64_t heard = __atomic_load_n(&parent->heard, __ATOMIC_RELAXED);
	struct watch_up *watch = &lane->watch_up;
	char interface[IF_NAMESIZE] = "?", address[64];

	watch->astray += astray;
	watch->arrived += (uint32_t)(heard - watch->heard);
	watch->heard = heard;
	if (watch->astray >= ENOUGH && watch->arrived < watch->astray / 16) {
		if_indextoname(parent->route.ifindex, interface);
		xdp_slot_parent_stop(lane->xdp);
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
