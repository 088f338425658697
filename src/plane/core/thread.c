/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/internal.h"

#include "base/clock.h"

#include <sys/resource.h>
#include <unistd.h>

#define STRAYS_A_TICK 64u
#define STOPPED_FOR (NSEC_PER_SEC / 2) /* a longer gap means that we were not running */

void thread_send(struct thread *thread, const void *packet, uint32_t bytes,
                 const struct udp_address *to)
{
	thread->aggregator->carrier->send(thread, packet, bytes, to);
}

void thread_answer(struct thread *thread, void *packet, uint32_t bytes,
                   const struct udp_address *to)
{
	thread->aggregator->carrier->answer(thread, packet, bytes, to);
}

bool lane_send_results(struct thread *thread, struct lane *lane)
{
	return thread->aggregator->carrier->send_results(thread, lane);
}

/* Its communicator, and with it the id, may be used again only when all of the lane is gone. */
static void let_go(struct thread *thread, struct lane *lane)
{
	struct comm *comm = lane->comm;

	rates_close(thread->aggregator, lane);
	crowd_drop(thread->aggregator, lane);
	lane_free(lane);
	atomic_fetch_sub(&comm->users, 1);
}

void thread_post(struct thread *thread, unsigned id, struct lane *lane)
{
	pthread_mutex_lock(&thread->lock);
	if (thread->inbox[id]) { /* given up before it was taken up */
		let_go(thread, thread->inbox[id]);
	}
	thread->inbox[id] = lane;
	thread->outbox[id] = lane == NULL;
	atomic_store_explicit(&thread->mail, true, memory_order_release);
	pthread_mutex_unlock(&thread->lock);
}

void thread_wake(const struct thread *thread)
{
	uint64_t one = 1;

	if (write(thread->wake_fd, &one, sizeof(one)) < 0)
		return; /* full: it is awake */
}

void thread_awake(const struct thread *thread)
{
	uint64_t count;

	if (read(thread->wake_fd, &count, sizeof(count)) < 0)
		return; /* it was something else */
}

int thread_patience(const struct thread *thread)
{
	uint64_t now = clock_now(), ns = TICK_NS;

	if (thread->rates_at < now + ns)
		ns = thread->rates_at > now ? thread->rates_at - now : 0;
	return (int)((ns + 999999) / 1000000);
}

static void drop_lane(struct thread *thread, unsigned id)
{
	struct lane *lane = thread->lanes[id];

	if (!lane)
		return;
	thread->lanes[id] = NULL;
	if (lane->comm->has_parent)
		uplink_end(thread, lane);
	thread->aggregator->carrier->forget(thread, lane);
	let_go(thread, lane);
}

void thread_read_mail(struct thread *thread)
{
	if (!atomic_load_explicit(&thread->mail, memory_order_acquire))
		return;
	pthread_mutex_lock(&thread->lock);
	thread->ids = 0;
	for (unsigned id = 0; id < COMMS_MAX; id++) {
		if (thread->outbox[id] || thread->inbox[id])
			drop_lane(thread, id);
		if (thread->inbox[id]) {
			thread->lanes[id] = thread->inbox[id];
			if (thread->lanes[id]->comm->has_parent)
				uplink_begin(thread, thread->lanes[id]);
		}
		if (thread->lanes[id])
			thread->ids = id + 1;
		thread->inbox[id] = NULL;
		thread->outbox[id] = false;
	}
	atomic_store_explicit(&thread->mail, false, memory_order_release);
	pthread_mutex_unlock(&thread->lock);
}

/* The lane that a packet may speak to, or NULL and a count of why not. */
static struct lane *find_lane(struct thread *thread, const struct wire_control *header)
{
	struct lane *lane = header->comm < COMMS_MAX ? thread->lanes[header->comm] : NULL;
	uint64_t *drops = thread->counters.drops;

	if (!lane || lane->comm->job != header->job)
		drops[DROP_UNKNOWN]++;
	else if (lane->comm->cookie != header->cookie)
		drops[DROP_COOKIE]++;
	else if (lane->comm->epoch != header->epoch)
		drops[DROP_EPOCH]++;
	else if (lane->index != wire_lane(header))
		drops[DROP_LANE]++;
	else
		return lane;
	return NULL;
}

static void answer_query(struct thread *thread, const struct wire_control *header,
                         const struct udp_address *from)
{
	struct {
		struct wire_control header;
		char text[1392]; /* with all headers below 1500 */
	} packet = { .header = { .magic = WIRE_MAGIC,
		                 .type = WIRE_ANSWER,
		                 .cookie = header->cookie,
		                 .job = header->job,
		                 .pos = header->pos } };
	int length = describe_comm(thread->aggregator, (unsigned)wire_position(header), packet.text,
	                           sizeof(packet.text));
	uint32_t bytes = WIRE_CONTROL + (((uint32_t)length + 8) & ~7u);

	thread_answer(thread, &packet, bytes, from);
}

/* JOIN and QUERY show the job's cookie, as nobody has been given another one yet. */
static bool take_visitor(struct thread *thread, const struct wire_control *header, uint32_t bytes,
                         const struct udp_address *from)
{
	if (thread->index != 0) {
		thread->counters.drops[DROP_LANE]++;
		return false;
	}
	if (!cookie_is_good(thread->aggregator, header->job, header->cookie)) {
		thread->counters.drops[DROP_COOKIE]++;
		return false;
	}
	if (header->type == WIRE_JOIN)
		registry_join(thread->aggregator, header, bytes, from);
	else if (header->type == WIRE_TURN)
		crowd_fence(thread, header, from);
	else
		answer_query(thread, header, from);
	return true;
}

/* What parents send: to a lane's way up, or to thread 0 while it asks. */
static bool take_from_parent(struct thread *thread, const struct wire_control *header,
                             uint32_t bytes)
{
	struct lane *lane;

	if (header->type == WIRE_WELCOME && thread->index == 0)
		return parent_take_welcome(thread->aggregator, header, bytes);
	if (header->type == WIRE_ABORT && thread->index == 0 &&
	    parent_take_abort(thread->aggregator, header))
		return true;
	lane = header->type == WIRE_WELCOME ? NULL : uplink_find(thread, header);
	if (lane)
		uplink_take_packet(thread, lane, header);
	return lane != NULL;
}

/* A parent that has let us in looks whether we are here before we have heard of it, or made lanes.
 */
static bool parent_looks(const struct thread *thread, const struct wire_control *header,
                         const struct udp_address *from)
{
	return header->child == WIRE_ALL &&
	       (thread->index != 0 || parent_is_known(thread->aggregator, header, from));
}

/*
 * Is it a member's? Who has joined knows what is in the checksum and in no
 * packet. On a connection it is who has shown the cookie there, in a report.
 */
static bool is_members(const struct thread *thread, const struct lane *lane,
                       const struct wire_header *header, uint32_t bytes,
                       const struct udp_address *from)
{
	const struct wire_unsent unsent = lane_unsent(lane, dense_position(lane->dense, header));

	if (thread->aggregator->carrier->reliable)
		return from->link && lane->known & dense_bit(header->child) &&
		       lane->addresses[header->child].link == from->link;
	return wire_is_intact(header, bytes, &unsent);
}

static bool take_data(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                      const struct udp_address *from)
{
	struct lane *lane = header->comm < COMMS_MAX ? thread->lanes[header->comm] : NULL;

	if (!lane) {
		thread->counters.drops[DROP_UNKNOWN]++;
		return false;
	}
	if (!is_members(thread, lane, header, bytes, from)) {
		thread->counters.drops[thread->aggregator->carrier->reliable ? DROP_STRANGER
		                                                             : WIRE_FAULT_CHECK]++;
		return false;
	}
	lane_take_data(thread, lane, header, bytes - WIRE_HEADER);
	return true;
}

/* All that has a cookie. */
static bool take_control(struct thread *thread, const struct wire_control *header, uint32_t bytes,
                         const struct udp_address *from)
{
	struct lane *lane;

	switch (header->type) {
	case WIRE_JOIN:
	case WIRE_QUERY:
		return take_visitor(thread, header, bytes, from);
	case WIRE_TURN:
		if (((const struct wire_turn *)wire_payload(header))->word == WIRE_TURN_FENCE)
			return take_visitor(thread, header, bytes, from);
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	case WIRE_REPORT:
		lane = find_lane(thread, header);
		if (lane)
			lane_take_report(thread, lane, header, from);
		else
			stray_answer(thread, header, from);
		return lane != NULL;
	case WIRE_STATUS:
	case WIRE_WELCOME:
		if (take_from_parent(thread, header, bytes))
			return true;
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	case WIRE_ABORT:
		if (take_from_parent(thread, header, bytes))
			return true;
		lane = find_lane(thread, header);
		if (lane)
			lane_take_abort(lane, header, from);
		return lane != NULL;
	case WIRE_BYE:
		if (take_from_parent(thread, header, bytes))
			return true;
		lane = find_lane(thread, header);
		if (lane && thread->index == 0)
			registry_bye(thread->aggregator, lane, header, from);
		else if (!lane && header->child != WIRE_ALL)
			stray_echo(thread, header, from);
		else if (!lane && !parent_looks(thread, header, from))
			stray_answer(thread, header, from);
		return lane != NULL;
	default:
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	}
}

bool thread_take(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                 enum wire_fault fault, const struct udp_address *from)
{
	struct wire_whole whole;

	thread->counters.packets++;
	thread->counters.bytes += bytes;
	if (fault != WIRE_SOUND) {
		thread->counters.drops[fault]++;
		return false;
	}
	if (header->type == WIRE_DATA)
		return take_data(thread, header, bytes, from);
	if (header->type == WIRE_RESULT)
		return uplink_take_result(thread, header, bytes, from);
	return take_control(thread, wire_make_whole(wire_control(header), bytes, &whole), bytes,
	                    from);
}

/* Thread 0 marks who has left; the others' lanes take it over. */
static void see_leavers(struct thread *thread)
{
	for (unsigned id = 1; id < thread->ids; id++) {
		struct lane *lane = thread->lanes[id];

		if (lane && lane->dense->left != lane->comm->gone) {
			lane->dense->left = lane->comm->gone;
			dense_update_low(lane->dense);
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

static void tick(struct thread *thread, uint64_t gap)
{
	publish(thread);
	thread->strays_left = STRAYS_A_TICK;
	if (thread->index == 0)
		registry_tick(thread->aggregator, gap);
	else
		see_leavers(thread);
	for (unsigned id = 1; id < thread->ids; id++) {
		if (thread->lanes[id] && thread->lanes[id]->dense->has_parent)
			uplink_tick(thread, thread->lanes[id]);
	}
	rates_tick(thread);
	thread->aggregator->carrier->tick(thread);
}

void *thread_main(void *argument)
{
	struct thread *thread = argument;
	struct aggregator *aggregator = thread->aggregator;
	const struct carrier *carrier = aggregator->carrier;
	uint64_t last = clock_now(), tick_at = last;

	thread->strays_left = STRAYS_A_TICK;
	while (!atomic_load_explicit(&aggregator->stop, memory_order_relaxed)) {
		int n = carrier->fetch(thread);
		uint64_t gap;

		thread->now = clock_now();
		gap = thread->now - last > STOPPED_FOR ? thread->now - last : 0;
		last = thread->now;
		thread_read_mail(thread);
		carrier->take(thread, n);
		thread_read_mail(thread); /* a join may have made a lane that comes next */
		rates_look(thread);
		carrier->flush(thread);
		if (gap || thread->now >= tick_at) {
			tick_at = thread->now + TICK_NS;
			tick(thread, gap);
			carrier->flush(thread);
		}
		if (n <= 0 && !aggregator->options.socket.busy_poll)
			carrier->rest(thread);
	}
	for (unsigned id = 0; id < COMMS_MAX; id++)
		drop_lane(thread, id);
	publish(thread);
	return NULL;
}
