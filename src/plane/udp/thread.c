/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/udp/internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#define STOPPED_FOR (NSEC_PER_SEC / 2) /* a longer gap means that we were not running */

void thread_send(struct thread *thread, const void *packet, uint32_t bytes,
                 const struct udp_address *to)
{
	uint64_t *copy;

	if (udp_tx_is_empty(thread->tx))
		thread->scratch_used = 0;
	if (thread->scratch_used == sizeof(thread->scratch) / sizeof(thread->scratch[0]) ||
	    !udp_tx_room(thread->tx) || bytes > sizeof(thread->scratch[0]))
		return; /* it counts as lost */
	copy = thread->scratch[thread->scratch_used++];
	memcpy(copy, packet, bytes);
	wire_seal(copy, bytes);
	udp_tx_add(thread->tx, copy, bytes, bytes, to);
}

void thread_post(struct thread *thread, unsigned id, struct lane *lane)
{
	pthread_mutex_lock(&thread->lock);
	if (thread->inbox[id]) { /* given up before it was taken up */
		atomic_fetch_sub(&thread->inbox[id]->comm->users, 1);
		lane_free(thread->inbox[id]);
	}
	thread->inbox[id] = lane;
	thread->outbox[id] = lane == NULL;
	atomic_store_explicit(&thread->mail, true, memory_order_release);
	pthread_mutex_unlock(&thread->lock);
}

static void drop_lane(struct thread *thread, unsigned id)
{
	struct lane *lane = thread->lanes[id];

	if (!lane)
		return;
	thread->lanes[id] = NULL;
	udp_tx_clear(thread->tx); /* it may point into the pool; what is lost is asked for again */
	atomic_fetch_sub(&lane->comm->users, 1);
	lane_free(lane);
}

static void read_mail(struct thread *thread)
{
	if (!atomic_load_explicit(&thread->mail, memory_order_acquire))
		return;
	pthread_mutex_lock(&thread->lock);
	thread->ids = 0;
	for (unsigned id = 0; id < COMMS_MAX; id++) {
		if (thread->outbox[id] || thread->inbox[id])
			drop_lane(thread, id);
		if (thread->inbox[id])
			thread->lanes[id] = thread->inbox[id];
		if (thread->lanes[id])
			thread->ids = id + 1;
		thread->inbox[id] = NULL;
		thread->outbox[id] = false;
	}
	atomic_store_explicit(&thread->mail, false, memory_order_release);
	pthread_mutex_unlock(&thread->lock);
}

/* The lane that a packet may speak to, or NULL and a count of why not. */
static struct lane *admit(struct thread *thread, const struct wire_header *header)
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

static void answer_query(struct thread *thread, const struct wire_header *header,
                         const struct udp_address *from)
{
	struct {
		struct wire_header header;
		char text[1392]; /* with all headers below 1500 */
	} packet = { .header = { .magic = WIRE_MAGIC,
		                 .type = WIRE_ANSWER,
		                 .cookie = header->cookie,
		                 .job = header->job,
		                 .pos = header->pos } };
	int length = describe_comm(thread->aggregator, (unsigned)wire_position(header), packet.text,
	                           sizeof(packet.text));
	uint32_t bytes = WIRE_HEADER + (((uint32_t)length + 8) & ~7u);

	wire_seal(&packet, bytes);
	if (sendto(thread->fd, &packet, bytes, 0, (const void *)&from->storage, from->length) < 0)
		log_debug("cannot answer a query: %s", strerror(errno));
}

/* JOIN and QUERY show the job's cookie, as nobody has been given another one yet. */
static void take_visitor(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                         const struct udp_address *from)
{
	if (thread->index != 0)
		thread->counters.drops[DROP_LANE]++;
	else if (header->cookie != thread->aggregator->options.cookie)
		thread->counters.drops[DROP_COOKIE]++;
	else if (header->type == WIRE_JOIN)
		registry_join(thread->aggregator, header, bytes, from);
	else
		answer_query(thread, header, from);
}

static void take_packet(struct thread *thread, const void *data, uint32_t bytes,
                        const struct udp_address *from)
{
	const struct wire_header *header = data;
	enum wire_fault fault = wire_parse(data, bytes);
	struct lane *lane;

	thread->counters.packets++;
	thread->counters.bytes += bytes;
	if (fault != WIRE_SOUND) {
		thread->counters.drops[fault]++;
		return;
	}
	switch (header->type) {
	case WIRE_DATA:
		lane = admit(thread, header);
		if (lane)
			lane_take_data(thread, lane, header, bytes - WIRE_HEADER);
		break;
	case WIRE_REPORT:
		lane = admit(thread, header);
		if (lane)
			lane_take_report(thread, lane, header, from);
		break;
	case WIRE_JOIN:
	case WIRE_QUERY:
		take_visitor(thread, header, bytes, from);
		break;
	case WIRE_ABORT:
		lane = admit(thread, header);
		if (lane)
			lane_take_abort(lane, header);
		break;
	case WIRE_BYE:
		lane = admit(thread, header);
		if (lane && thread->index == 0)
			registry_bye(thread->aggregator, lane, header, from);
		break;
	default:
		thread->counters.drops[DROP_UNEXPECTED]++;
	}
}

static void take_message(struct thread *thread, const struct udp_message *message)
{
	if (message->segment == 0 || message->segment % 8) {
		/* Packets behind the first would not be aligned. */
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

/* The kernel tells of ports that are closed: processes that have ended. */
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
				registry_refused(thread->aggregator, &peer);
		}
	}
}

/* Moves what is queued; true: something still waits for room in the socket. */
static bool send_all(struct thread *thread)
{
	for (;;) {
		bool more = false;
		int error = udp_send(thread->tx, thread->fd);

		if (error == -EAGAIN)
			return true;
		if (error) {
			drain_errors(thread);
			continue;
		}
		for (unsigned id = 0; id < thread->ids && !more; id++) {
			struct lane *lane = thread->lanes[id];

			if (lane && lane->head != lane->tail)
				more = !lane_send_results(thread, lane);
		}
		if (udp_tx_is_empty(thread->tx) && !more)
			return false;
	}
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

void *thread_main(void *argument)
{
	struct thread *thread = argument;
	struct aggregator *aggregator = thread->aggregator;
	uint64_t last = clock_now(), tick = last;
	bool blocked = false;

	while (!atomic_load_explicit(&aggregator->stop, memory_order_relaxed)) {
		int n = udp_receive(thread->rx, thread->fd);
		uint64_t gap;

		thread->now = clock_now();
		gap = thread->now - last > STOPPED_FOR ? thread->now - last : 0;
		last = thread->now;
		read_mail(thread);
		if (n < 0)
			drain_errors(thread);
		for (int i = 0; i < n; i++)
			take_message(thread, udp_message(thread->rx, i));
		read_mail(thread); /* a join may have made a lane that comes next */
		blocked = send_all(thread);
		if (gap || thread->now >= tick) {
			tick = thread->now + TICK_NS;
			publish(thread);
			if (thread->index == 0)
				registry_tick(aggregator, gap);
			else
				see_leavers(thread);
			blocked = send_all(thread);
		}
		if (n <= 0 && !aggregator->options.socket.busy_poll) {
			struct pollfd wait = { .fd = thread->fd,
				               .events =
				                       (short)(POLLIN | (blocked ? POLLOUT : 0)) };

			if (poll(&wait, 1, (int)(TICK_NS / 1000000)) > 0 && wait.revents & POLLERR)
				drain_errors(thread);
		}
	}
	for (unsigned id = 0; id < COMMS_MAX; id++)
		drop_lane(thread, id);
	publish(thread);
	return NULL;
}
