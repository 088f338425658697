/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/xdp/kernel_watch.h"

#include "base/log.h"
#include "plane/core/failure.h"
#include "plane/lane/lane_kind.h"
#include "plane/stream/stream_packets.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define ENOUGH 256u      /* results before a judgement */
#define PROOF 64u        /* results that arrived, before the interface counts as good */
#define ENOUGH_SMALL 32u /* results of an engine: each one that is lost costs a timeout */
#define XDP_RETRIES 3u   /* a busy machine may be busy each time that the program is tried */
/*
 * An engine that replies to each packet is judged later. A worker of the sparse engine that is late
 * may repeat a window of packets, though all results arrive. If no result arrives, NEWS still tells
 * the worker that most packets are durable, so it repeats only about one of 16.
 */
#define ENOUGH_REPLIES 1024u /* results before a judgement */
#define REPLIES_PART 20u     /* one result of so many may be asked for */
#define PROOF_SMALL 512u     /* as PROOF, for an engine: more than a child has on its way */
#define CROSSED_US 1000u     /* us: a repeat and a result may have crossed each other */
#define MANY 4096u           /* results that are remembered */
#define SAMPLE 16u           /* if the child asked for none, every 16th result is looked at */

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

/* Notes which results the child asked for. */
static void note_asked(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                       const uint64_t *repeat)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++)
		for (uint64_t word = repeat[i]; word; word &= word - 1) {
			uint64_t position = report->base + 64 * i + (uint64_t)__builtin_ctzll(word);
			uint32_t index = stream_cell_of(lane, position);

			if (!stream_was_repeated(lane, position))
				own->asked[index] = 0;
			own->asked[index] |= child_bit(child);
			if (position >= own->watches[child].asked_end)
				own->watches[child].asked_end = position + 1;
		}
}

/* Counts the results that the child has taken since its last report, by whether it had to ask. */
static void count_taken(const struct agg_lane *lane, struct child_watch *watch, unsigned child)
{
	const struct xdp_kernel_lane *own = xdp_lane_of(lane);
	uint64_t position = watch->next, end = lane->does->done(lane, child);
	uint32_t step;

	if (end > position && end - position > lane->comm->cells)
		position = end - lane->comm->cells; /* older cells are reused */
	/* A look at a cell is often a cache miss. */
	step = position >= watch->asked_end ? SAMPLE : 1;
	for (; position < end; position += step) {
		if (!stream_has_result(lane, position, child))
			continue;
		if (own->asked[stream_cell_of(lane, position)] & child_bit(child) &&
		    stream_was_repeated(lane, position))
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

/*
 * The program is of no use to this lane, so it leaves the interfaces of its children. It stays
 * where a child got most results, also if lanes that have seen none leave later: on a busy machine
 * a child asks for some that are only late.
 */
static void leave_interfaces(struct agg_lane *lane, const char *why)
{
	const struct xdp_kernel_lane *own = xdp_lane_of(lane);

	for (uint64_t left = lane->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (own->watches[child].heard <= own->watches[child].asked)
			xdp_handle_leave(own->handle, child, why);
		else
			xdp_handle_heard(own->handle, child);
	}
}

/* `out` has room for IF_NAMESIZE characters. */
static const char *name_interface(uint32_t index, char *out)
{
	return if_indextoname(index, out) ? out : "?";
}

static const char *name_interface_of(const struct agg_lane *lane, unsigned child, char *out)
{
	return name_interface(xdp_handle_lane(xdp_lane_of(lane)->handle)->routes[child].ifindex,
	                      out);
}

/* What the program sends does not reach the child. */
static void say_why(const struct agg_lane *lane, unsigned child, char *why, size_t size)
{
	char interface[IF_NAMESIZE], name[160];

	snprintf(why, size, "what %s sends through %s does not reach %.100s",
	         lane->kernel->ops->title, name_interface_of(lane, child, interface),
	         comm_describe_child(lane->comm, child, name, sizeof(name)));
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

/* Has the child sent most packets again since the watch began? */
static bool repeats_most(const struct agg_lane *lane, unsigned child)
{
	const struct child_watch *watch = &xdp_lane_of(lane)->watches[child];

	return watch->repeats > ENOUGH_SMALL / 2 &&
	       watch->repeats >= (count_sent(lane, child) - watch->next) / 3 * 2;
}

/* Notes which children of an engine's lane seem to miss the program's results: this one, and others
 * that repeat most packets. */
static void note_lost(struct agg_lane *lane, unsigned child)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	own->lost |= child_bit(child);
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++) {
		own->lost |= repeats_most(lane, i) ? child_bit(i) : 0;
		own->watches[i].asked = 0;
	}
}

/* User space sums the engine's lane until it has seen whether its own results arrive. */
static void try_user_space(struct agg_lane *lane, unsigned child)
{
	char why[160];

	snprintf(why, sizeof(why),
	         "results of %s reach a child late or not at all: user space tries whether its "
	         "own do",
	         lane->kernel->ops->title);
	note_lost(lane, child);
	stop(lane);
	comm_pause_kernel(lane->comm, lane->index, why);
	log_info("job %u, communicator %u: lane %u: %s", lane->comm->job, lane->comm->id,
	         lane->index, why);
}

/* User space's results arrive. The program's may arrive by now, too: it is tried again. */
static void try_kernel_again(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	own->retries++;
	own->lost = 0;
	memset(own->watches, 0, sizeof(own->watches));
	for (unsigned i = 0; i < WIRE_CHILDREN_MAX; i++)
		own->watches[i].next = count_sent(lane, i);
	own->in_kernel = true;
	comm_enter_kernel(lane->comm, lane->index);
	xdp_handle_start(own->handle);
}

static void give_up(struct agg_lane *lane, unsigned child, const struct child_watch *watch)
{
	const struct xdp_kernel_lane *own = xdp_lane_of(lane);
	char interface[IF_NAMESIZE], name[160], why[160];

	/* An engine that replies does not say which results user space sends. */
	if (!lane->comm->engine->streams && !lane->comm->engine->replies &&
	    own->retries < XDP_RETRIES) {
		try_user_space(lane, child);
		return;
	}
	stop(lane);
	comm_leave_kernel(lane->comm, lane->index,
	                  " (as when the other end of a veth has no XDP program, a driver has no "
	                  "queues for it, or a card takes VLAN tags off)",
	                  "%s had to ask for %u of %u results: what %s sends through interface %s "
	                  "does not reach it",
	                  comm_describe_child(lane->comm, child, name, sizeof(name)), watch->asked,
	                  watch->asked + watch->heard, lane->kernel->ops->title,
	                  name_interface_of(lane, child, interface));
	if (!lane->comm->engine->streams) {
		note_lost(lane, child);
		return;
	}
	say_why(lane, child, why, sizeof(why));
	leave_interfaces(lane, why);
}

void kernel_watch_interfaces(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	char why[160];

	if (!own->in_kernel ||
	    !xdp_handle_is_cut(own->handle, lane->known & ~lane->left, why, sizeof(why)))
		return;
	stop(lane);
	comm_pause_kernel(lane->comm, lane->index, why);
	log_info("job %u, communicator %u: lane %u is summed in user space: %s", lane->comm->job,
	         lane->comm->id, lane->index, why);
	leave_interfaces(lane, why);
}

/* Is it known of every child whether results reach it? Some may be late. */
static bool knows_all(const struct agg_lane *lane)
{
	const struct xdp_kernel_lane *own = xdp_lane_of(lane);

	for (uint64_t left = lane->known & ~lane->left; left; left &= left - 1) {
		const struct child_watch *watch = &own->watches[__builtin_ctzll(left)];

		if (!watch->heard && !watch->asked)
			return false;
	}
	return true;
}

void kernel_watch_child(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                        const uint64_t *repeat)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	struct child_watch *watch = &own->watches[child];

	/* Results that user space sends say nothing about frames of XDP. */
	if (!own->in_kernel || own->paused || !xdp_handle_lane(own->handle)->routes[child].ifindex)
		return;
	if (!watch->next) /* older results left before the program knew the route */
		watch->next = report->base + report->bits;
	note_asked(lane, child, report, repeat);
	if (lane->does->done(lane, child) <= watch->next)
		return;
	count_taken(lane, watch, child);
	if (watch->heard >= PROOF && watch->asked < watch->heard / 4)
		xdp_handle_heard(own->handle, child);
	if (watch->asked >= ENOUGH && watch->heard < watch->asked / 16 &&
	    (knows_all(lane) || watch->asked >= MANY / 2)) {
		give_up(lane, child, watch);
	} else if (watch->asked + watch->heard > MANY) {
		watch->asked /= 2;
		watch->heard /= 2;
	}
}

/* Does the child miss so many results of its engine that the program is of no use? */
static bool misses_results(const struct child_watch *watch, bool replies)
{
	return replies ? watch->heard / REPLIES_PART < watch->asked
	               : watch->heard < watch->repeats / 8;
}

/* Counts a result once, if its bit is not set yet. */
static bool count_once(uint64_t *set, unsigned child, uint32_t *count)
{
	if (*set & child_bit(child))
		return false;
	*set |= child_bit(child);
	++*count;
	return true;
}

/* Counts a repeat, and whether it crossed the result. False: it says nothing new. */
static bool count_repeat(struct agg_lane *lane, unsigned child, uint32_t cell, uint32_t sent_at,
                         bool crossed)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	struct cell_watch *seen = &own->cells[cell];

	/* If an engine replies to each packet, a cell has many results. */
	if (seen->sent_at != sent_at || lane->comm->engine->replies)
		*seen = (struct cell_watch){ .sent_at = sent_at };
	count_once(&seen->repeats, child, &own->watches[child].repeats);
	return !crossed && count_once(&seen->asked, child, &own->watches[child].asked);
}

void kernel_watch_repeat(struct agg_lane *lane, unsigned child, uint32_t cell, uint64_t now)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	struct child_watch *watch = &own->watches[child];
	uint32_t sent_at = engine_cell(&lane->engine, cell)->sent_at;
	uint32_t age = (uint32_t)(now / 1000) - sent_at;
	bool replies = lane->comm->engine->replies;
	uint64_t sent;

	if (!own->in_kernel) {
		watch->asked++; /* for kernel_watch_sent() */
		return;
	}
	if (own->paused || !sent_at || age > INT32_MAX)
		return;
	if (!count_repeat(lane, child, cell, sent_at, age < CROSSED_US))
		return;
	sent = count_sent(lane, child);
	if (replies ? sent - watch->next < ENOUGH_REPLIES : watch->asked < ENOUGH_SMALL)
		return;
	watch->heard = sent - watch->next > watch->repeats
	                       ? (uint32_t)(sent - watch->next) - watch->repeats
	                       : 0;
	if (misses_results(watch, replies)) {
		give_up(lane, child, watch);
		return;
	}
	if (watch->heard >= PROOF_SMALL && watch->repeats < watch->heard / 4)
		xdp_handle_heard(own->handle, child);
	watch->next = sent;
	watch->asked = watch->repeats = 0;
}

void kernel_watch_sent(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	char why[160];

	if (!own->lost || ++own->sent < 2 * ENOUGH_SMALL)
		return;
	for (uint64_t left = own->lost; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		bool heard = own->watches[child].asked < own->sent / 4;

		own->watches[child].asked = 0;
		if (!heard) /* The machine may be busy: the next results decide. */
			continue;
		if (own->retries < XDP_RETRIES) {
			try_kernel_again(lane);
			break;
		}
		say_why(lane, child, why, sizeof(why));
		xdp_handle_leave(own->handle, child, why);
		own->lost &= ~child_bit(child);
	}
	own->sent = 0;
}

void kernel_watch_parent(struct agg_lane *lane, uint32_t astray)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	const struct xdp_parent *parent = &xdp_handle_lane(own->handle)->parent;
	uint64_t heard = __atomic_load_n(&parent->heard, __ATOMIC_RELAXED);
	struct parent_watch *watch = &own->up;
	char interface[IF_NAMESIZE], address[64];

	watch->astray += astray;
	watch->arrived += (uint32_t)(heard - watch->heard) + lane->kernel_heard;
	lane->kernel_heard = 0;
	watch->heard = heard;
	if (watch->astray >= ENOUGH && watch->arrived < watch->astray / 16) {
		xdp_handle_parent_stop(own->handle);
		watch->over = true;
		log_warn(
			"job %u, communicator %u: the sums of lane %u go up from user space: %u of "
			"%u that XDP sent through interface %s did not reach the aggregator at %s",
			lane->comm->job, lane->comm->id, lane->index, watch->astray,
			watch->astray + watch->arrived,
			name_interface(parent->route.ifindex, interface),
			udp_text(&lane->parent, address, sizeof(address)));
	} else if (watch->astray + watch->arrived > MANY) {
		watch->astray /= 2;
		watch->arrived /= 2;
	}
}
