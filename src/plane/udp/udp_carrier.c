/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/udp/udp_carrier.h"

#include "base/clock.h"
#include "plane/common/datagrams.h"
#include "plane/stream/parent_lane.h"
#include "plane/loop/packet_dispatch.h"
#include "plane/membership/liveness.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#define TAKEN_MOST 128  /* messages of a parent's multicast group, before children's are taken */
#define QUEUED_MOST 32u /* packets of the check queue, before answers leave: as of a socket */
#define GROUPS_MAX 61u  /* multicast groups waited for in poll; the others are read each tick */

static trib_status open_socket(struct thread *thread, const struct udp_address *listen)
{
	trib_status status = datagrams_open(thread, listen);
	int one = 1;

	if (status != TRIB_OK)
		return status;
	/* The error queue says which peer an error belongs to, see drain_errors(). */
	setsockopt(thread->fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
	setsockopt(thread->fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one));
	return TRIB_OK;
}

static void send_small(struct thread *thread, const void *packet, uint32_t bytes,
                       const struct udp_address *to)
{
	uint64_t *copy;

	if (udp_tx_is_empty(thread->tx))
		thread->scratch_used = 0;
	if (thread->scratch_used == sizeof(thread->scratch) / sizeof(thread->scratch[0]) ||
	    !udp_tx_room(thread->tx) || bytes > sizeof(thread->scratch[0]))
		return; /* dropped: the packet counts as lost */
	copy = thread->scratch[thread->scratch_used++];
	memcpy(copy, packet, bytes);
	wire_seal(copy, bytes);
	udp_tx_add(thread->tx, copy, bytes, bytes, to);
}

static void take_packet(struct thread *thread, const void *data, uint32_t bytes,
                        const struct udp_address *from)
{
	packet_take(thread, data, bytes, wire_parse(data, bytes), from);
}

static void take_message(struct thread *thread, const struct udp_message *message)
{
	if (message->segment == 0 || message->segment % 8) {
		/* Packets after the first would not be aligned. */
		uint64_t n = message->segment ? (message->bytes - 1) / message->segment + 1 : 1;

		thread->counters.packets += n;
		thread->counters.drops[WIRE_FAULT_LENGTH] += n;
		return;
	}
	for (uint32_t at = 0; at < message->bytes; at += message->segment) {
		uint32_t left = message->bytes - at;

		take_packet(thread, message->data + at,
		            left < message->segment ? left : message->segment, &message->from);
	}
}

/* The kernel reports closed ports: processes that have ended. */
static void drain_errors(struct thread *thread)
{
	for (;;) {
		uint8_t control[512], data[64];
		struct udp_address peer = { .length = sizeof(peer.storage) };
		struct iovec vector = { data, sizeof(data) };
		struct msghdr message = { .msg_name = &peer.storage,
			                  .msg_namelen = peer.length,
			                  .msg_iov = &vector,
			                  .msg_iovlen = 1,
			                  .msg_control = control,
			                  .msg_controllen = sizeof(control) };

		if (recvmsg(thread->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
			struct sock_extended_err error;

			if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
			    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
				continue;
			memcpy(&error, CMSG_DATA(c), sizeof(error));
			peer.length = message.msg_namelen;
			if (error.ee_errno == ECONNREFUSED && thread->index == 0)
				liveness_port_closed(thread->aggregator, &peer);
		}
	}
}

/* If something else ended the sleep, the socket is known to be empty. */
static int fetch(struct thread *thread)
{
	bool silent = thread->silent;

	thread->silent = false;
	return silent ? 0 : udp_receive(thread->rx, thread->fd);
}

static void take_queued(void *context, const void *packet, uint32_t bytes,
                        const struct udp_address *from)
{
	take_packet(context, packet, bytes, from);
}

/*
 * Takes what a parent has sent to its multicast group. A STATUS describes what
 * left before it, so packets of the group's socket are taken before those of our
 * own.
 */
static void take_group(struct thread *thread, struct agg_lane *lane)
{
	int taken = 0, n;

	do {
		n = udp_receive(thread->group_rx, lane->group_fd);
		for (int k = 0; k < n; k++)
			take_message(thread, udp_message(thread->group_rx, k));
		if (n > 0 && group_probe_by_group(&lane->group_probe))
			parent_lane_report_soon(lane);
		taken += n;
	} while (udp_rx_was_full(thread->group_rx) && taken < TAKEN_MOST);
}

static void take(struct thread *thread, int n)
{
	struct kernel *kernel = thread->aggregator->kernel;

	for (unsigned id = 1; id < thread->ids; id++)
		if (thread->lanes[id] && thread->lanes[id]->group_fd >= 0)
			take_group(thread, thread->lanes[id]);
	if (n < 0)
		drain_errors(thread);
	for (int i = 0; i < n; i++)
		take_message(thread, udp_message(thread->rx, i));
	if (kernel)
		kernel->ops->queue_read(kernel, thread->index, QUEUED_MOST, take_queued, thread);
}

static void flush(struct thread *thread)
{
	copies_flush(thread);
	for (;;) {
		bool more = false;
		int error = udp_send(thread->tx, thread->fd);

		thread->blocked = error == -EAGAIN;
		if (thread->blocked)
			return;
		if (error) {
			drain_errors(thread);
			continue;
		}
		for (unsigned id = 0; id < thread->ids && !more; id++) {
			struct agg_lane *lane = thread->lanes[id];

			if (lane && lane->head != lane->tail)
				more = !results_send_udp(thread, lane);
			if (lane && lane->up.head != lane->up.tail)
				more |= !sums_send_udp(thread, lane);
		}
		if (udp_tx_is_empty(thread->tx) && !more)
			return;
	}
}

/*
 * Small vectors follow each other within microseconds, and waking a thread takes some. True: the
 * thread has yielded its core instead of sleeping.
 */
static bool polls_on(struct thread *thread)
{
	struct wait_choice *choice = &thread->waiting;
	uint64_t before, now;

	if (choice->way != WAIT_POLL || thread->blocked || thread->now >= thread->polls_until) {
		if (thread->polls_until)
			wait_choice_waited(choice);
		thread->polls_until = 0;
		return false;
	}
	before = clock_now();
	sched_yield();
	now = clock_now();
	wait_choice_yielded(choice, now - before);
	return true;
}

static void sleep_on_sockets(struct thread *thread)
{
	const struct kernel *kernel = thread->aggregator->kernel;
	struct pollfd wait[3 + GROUPS_MAX] = {
		{ .fd = thread->fd, .events = (short)(POLLIN | (thread->blocked ? POLLOUT : 0)) },
		{ .fd = thread->wake_fd, .events = POLLIN },
		{ .fd = kernel ? kernel->ops->queue_fd(kernel, thread->index) : -1,
		  .events = POLLIN }
	};
	unsigned n = 3;

	if (polls_on(thread))
		return;
	for (unsigned id = 1; id < thread->ids && n < 3 + GROUPS_MAX; id++)
		if (thread->lanes[id] && thread->lanes[id]->group_fd >= 0)
			wait[n++] = (struct pollfd){ .fd = thread->lanes[id]->group_fd,
				                     .events = POLLIN };
	if (poll(wait, n, thread_patience(thread)) < 0)
		return;
	thread->silent = !wait[0].revents;
	if (wait[0].revents & POLLERR)
		drain_errors(thread);
	if (wait[1].revents)
		thread_awake(thread);
}

static bool reach(struct thread *thread, struct udp_address *parent)
{
	(void)thread;
	(void)parent;
	return true; /* no connection: an answer will show whether the parent is there */
}

static void forget(struct thread *thread, struct agg_lane *lane)
{
	if (thread->copies.lane == lane)
		thread->copies = (struct copies){ 0 };
	udp_send(thread->tx, thread->fd);
	udp_tx_clear(thread->tx); /* the rest may point into the lane's pool: it counts as lost */
}

static void no_tick(struct thread *thread)
{
	(void)thread;
}

const struct carrier carrier_udp = {
	.plane = "udp",
	.open = open_socket,
	.close = datagrams_close,
	.fetch = fetch,
	.take = take,
	.flush = flush,
	.sleep = sleep_on_sockets,
	.send = send_small,
	.answer = datagrams_answer,
	.send_copies = copies_add,
	.reach = reach,
	.send_sums = sums_send_udp,
	.send_results = results_send_udp,
	.forget = forget,
	.tick = no_tick,
};
