/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the ring's thread, and its life. */
#include "worker/ranks/ring_thread.h"
#include "worker/ranks/ring_internal.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/random_bits.h"
#include "path/length_probe.h"
#include "path/page/page_folder.h"
#include "path/rdma/rdma.h"
#include "path/tcp_link/tcp_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END_NS \
	(2 * NSEC_PER_SEC) /* after a failure closing takes no longer, also if a rank is silent */
#define SILENCE_SHARE 2    /* a rank is dead after 1/2 of the timeout */

static unsigned neighbour(const struct trib_comm *comm, int step)
{
	return (unsigned)(comm->config.rank + comm->config.size + step) %
	       (unsigned)comm->config.size;
}

static void count(const struct ring_thread *thread)
{
	struct ring_mail *mail = thread->mail;
	const struct channel *to = channel_of(thread->to), *from = channel_of(thread->from);

	if (to) {
		struct channel_counters counters = channel_counters(to);

		atomic_store_explicit(&mail->sent, counters.packets, memory_order_relaxed);
		atomic_store_explicit(&mail->repeated, counters.repeated, memory_order_relaxed);
	}
	if (from) {
		struct channel_counters counters = channel_counters(from);

		atomic_store_explicit(&mail->received, counters.received, memory_order_relaxed);
		atomic_store_explicit(&mail->duplicates, counters.duplicates, memory_order_relaxed);
		atomic_store_explicit(&mail->dropped, counters.dropped, memory_order_relaxed);
	}
}

/* Tells other processes about the paths. */
static void show_paths(struct ring_thread *thread, uint64_t now)
{
	const struct comm_config *config = &thread->comm->config;
	struct path_page page = {
		.job = config->job,
		.rank = (uint32_t)config->rank,
		.size = (uint32_t)config->size,
		.key = comm_key(config),
		.n_peers = 2,
		.peers = { { .role = PAGE_NEXT_RANK }, { .role = PAGE_PREVIOUS_RANK } },
	};

	thread->page_at = now;
	channel_show(thread->to, &page.peers[0]);
	channel_show(thread->from, &page.peers[1]);
	page_write(thread->page, &page, now);
}

static bool has_ended(const struct channel_io *io)
{
	return channel_state(channel_of(io)) >= CHANNEL_CLOSED;
}

/* Do messages wait for the next rank to answer for the first time? */
static bool is_opening(const struct ring_thread *thread)
{
	return channel_state(channel_of(thread->to)) == CHANNEL_OPENING && thread->flown.first;
}

/* Tells trials of ways that all ranks can reach this one, and this one them. */
static void note_open(struct ring_thread *thread)
{
	struct trib_comm *comm = thread->comm;

	if (channel_state(channel_of(thread->to)) == CHANNEL_OPENING ||
	    channel_state(channel_of(thread->from)) == CHANNEL_OPENING ||
	    !direct_is_open(comm->direct))
		return;
	thread->open = true;
	pthread_mutex_lock(&comm->lock);
	thread->mail->open = true;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

static bool has_left(const struct channel_io *io)
{
	return channel_state(channel_of(io)) == CHANNEL_CLOSED;
}

static void push(struct ring_thread *thread, struct channel_io *io, unsigned rank)
{
	trib_status status = channel_push(io, clock_now());

	if (status != TRIB_OK)
		direct_lose_rank(thread->comm->direct, status, rank);
}

/* Is there a message that ranks wait for? They do not wait for questions. */
static bool has_message(const struct message_queue *queue)
{
	const struct message *buffer = queue->first;

	while (buffer &&
	       ((const struct ring_head *)(const void *)buffer->data)->phase == RING_STATE)
		buffer = buffer->next;
	return buffer;
}

/* A rank that has left is an error only if it is needed: the previous one as long as messages have
 * to come, the next one if messages have to leave. */
static void check_left(struct ring_thread *thread)
{
	struct trib_comm *comm = thread->comm;
	unsigned rank = neighbour(comm, -1);
	char text[128];

	if (has_left(thread->to) && has_message(&thread->ready))
		rank = neighbour(comm, 1);
	else if (!has_left(thread->from) || ring_is_idle(&thread->ring))
		return;
	snprintf(text, sizeof(text),
	         "rank %u has called trib_finalize while other ranks wait for it", rank);
	comm_fail_told(comm, TRIB_ERR_PEER, rank, text);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The first sockets to poll: the mailbox, the listener, the channels of the ring. */
#define FDS_LISTENER 1u
#define FDS_FROM 2u

/* `direct`: the number of sockets of direct calls, which are at the end of `fds`. */
static void sleep_until_needed(struct ring_thread *thread, uint64_t now, uint64_t most,
                               unsigned direct)
{
	struct pollfd *fds = thread->fds;
	unsigned n = FDS_FROM;
	uint64_t count, wait = sooner(most, channel_wait(thread->from, now));
	struct timespec span = clock_span(sooner(wait, channel_wait(thread->to, now)));

	fds[0] = (struct pollfd){ .fd = thread->mail->wake_fd, .events = POLLIN };
	fds[FDS_LISTENER] =
		(struct pollfd){ .fd = channel_listener_fd(thread->listener), .events = POLLIN };
	n += thread->n_from = channel_fds(thread->from, fds + n);
	n += thread->n_to = channel_fds(thread->to, fds + n);
	memmove(fds + n, fds + 3 * CHANNEL_FDS, direct * sizeof(*fds));
	if (ppoll(fds, n + direct, &span, NULL) <= 0)
		thread->n_from = thread->n_to = fds[FDS_LISTENER].revents = 0;
	else if (fds[0].revents && read(thread->mail->wake_fd, &count, sizeof(count)) < 0)
		log_debug("eventfd: %s", strerror(errno));
}

static void turn(struct ring_thread *thread)
{
	const struct trib_comm *comm = thread->comm;
	uint64_t now = clock_now(), wait;
	unsigned direct;

	if (thread->fds[FDS_LISTENER].revents)
		direct_listen(comm->direct, thread->listener, now);
	channel_take(thread->from, thread->fds + FDS_FROM, thread->n_from);
	channel_take(thread->to, thread->fds + FDS_FROM + thread->n_from, thread->n_to);
	ring_send_messages(thread); /* what has arrived makes room */
	ring_start_messages(thread);
	ring_send_messages(thread);
	push(thread, thread->from, neighbour(comm, -1));
	push(thread, thread->to, neighbour(comm, 1));
	check_left(thread);
	if (!thread->open)
		note_open(thread);
	ring_grant(thread);
	count(thread);
	if (thread->page && now - thread->page_at >= PAGE_EVERY_NS)
		show_paths(thread, now);
	wait = direct_turn(comm->direct, now, thread->fds + 3 * CHANNEL_FDS, &direct);
	sleep_until_needed(thread, clock_now(), sooner(wait, ring_ask_late(thread, now)), direct);
}

/* Waits for the seats of all ranks. False: the communicator is over. */
static bool wait_for_seats(const struct ring_thread *thread)
{
	struct trib_comm *comm = thread->comm;
	bool known;

	pthread_mutex_lock(&comm->lock);
	while (!(known = thread->mail->exchange.done) && comm->failed == TRIB_OK &&
	       !atomic_load(&comm->closing))
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
	return known;
}

static uint64_t channel_key(const struct comm_config *config)
{
	return bits_mix(config->cookie ^ comm_key(config) * RANDOM_STEP ^ config->job);
}

/* Messages travel by RDMA if both ranks have a device. Else long ones travel by TCP if `tcp`. */
static const struct channel_carrier *carrier_to(const struct ring_thread *thread, unsigned rank,
                                                const struct channel_carrier *tcp)
{
	const struct ring_seat *own = &thread->mail->seats[thread->comm->config.rank];

	if (!own->rdma)
		return tcp;
	if (thread->mail->seats[rank].rdma) {
		log_info("messages with rank %u travel by RDMA", rank);
		return rdma_carrier(NULL);
	}
	log_notice("messages with rank %u do not travel by RDMA: it has no RDMA device", rank);
	return tcp;
}

/* NULL: all messages travel as packets (TRIB_TRANSPORT=udp). */
static trib_status find_tcp(const struct channel_carrier **tcp)
{
	uint64_t transport;
	trib_status status = setting_count(SETTING_TRANSPORT, &transport);

	*tcp = transport == TRANSPORT_UDP ? NULL : &tcp_link_carrier;
	return status;
}

static trib_status connect_ranks(struct ring_thread *thread)
{
	const struct comm_config *config = &thread->comm->config;
	unsigned next = neighbour(thread->comm, 1), last = neighbour(thread->comm, -1);
	char names[2][CHANNEL_NAME];
	const struct channel_carrier *tcp;
	struct udp_address address;
	trib_status status = find_tcp(&tcp);
	struct channel_io_config io = {
		.key = channel_key(config),
		.self = (uint32_t)config->rank,
		.longest = ring_message_max(&thread->ring),
		.timeout = (uint64_t)(config->timeout_s * 1e9) / SILENCE_SHARE,
		.chunk = RING_MESSAGE_MAX,
		.events = { .user = thread,
		            .place = ring_place,
		            .deliver = ring_deliver,
		            .unplace = ring_unplace },
	};

	if (status != TRIB_OK)
		return status;
	if (!direct_seat_name(&thread->mail->seats[last], last, &address, names[0]) ||
	    !direct_seat_name(&thread->mail->seats[next], next, &address, names[1]))
		return TRIB_ERR_PEER;
	io.peer = last;
	io.name = names[0];
	io.credit = thread->granted = RING_CREDIT;
	io.carrier = carrier_to(thread, last, tcp);
	status = channel_accept(thread->listener, &io, clock_now(), &thread->from);
	io.peer = next;
	io.name = names[1];
	io.credit = 0;
	io.carrier = carrier_to(thread, next, tcp);
	if (status == TRIB_OK)
		status = channel_connect(&io, &address, clock_now(), &thread->to);
	io.carrier = tcp; /* messages of any length: RDMA cannot place them ahead */
	if (status == TRIB_OK)
		status = direct_connect(thread->comm->direct, thread->listener, &io);
	return status;
}

static void go_quiet(struct ring_thread *thread)
{
	struct trib_comm *comm = thread->comm;

	ring_clear(&thread->ring);
	direct_go_quiet(comm->direct);
	for (struct round *round = ring_mail_take(thread->mail), *next; round; round = next) {
		next = round->next;
		round_free(round);
	}
	pthread_mutex_lock(&comm->lock);
	thread->mail->quiet = true;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

/*
 * What has left arrives; then the channels are closed. A rank that lives has time for that: a
 * channel that ends sooner would fail it. After a failure the previous rank closes its channel
 * first: the news reaches it last, around the ring, and until then it must not think that this rank
 * has left.
 */
static void say_goodbye(struct ring_thread *thread)
{
	bool failed = ring_tell_failure(thread), direct = false;
	uint64_t patience = (uint64_t)(thread->comm->config.timeout_s * 1e9);
	uint64_t now = clock_now(), end = now + (failed ? END_NS : patience);

	for (; now < end && !(direct && has_ended(thread->from) && has_ended(thread->to));
	     now = clock_now()) {
		/* A rank that calls only now may have news, or wait for some. */
		direct_listen(thread->comm->direct, thread->listener, now);
		direct = direct_leave(thread->comm->direct, now);
		ring_send_messages(thread);
		if (failed)
			ring_grant(thread); /* what comes is dropped, so that the news can pass */
		else
			channel_close(channel_of(thread->from), now);
		if (!thread->ready.first && !is_opening(thread))
			channel_close(channel_of(thread->to), now);
		channel_step(thread->from, now);
		channel_step(thread->to, now);
		sleep_until_needed(thread, now, direct ? END_NS / 100 : END_NS / 1000, 0);
	}
}

static void *ring_main(void *argument)
{
	struct ring_thread *thread = argument;
	struct trib_comm *comm = thread->comm;

	if (wait_for_seats(thread) && connect_ranks(thread) != TRIB_OK)
		comm_fail(comm, TRIB_ERR_PEER, "%s", trib_last_error());
	if (thread->to)
		thread->page = page_open();
	while (thread->to && !atomic_load_explicit(&comm->closing, memory_order_relaxed) &&
	       !atomic_load_explicit(&comm->stop_ring, memory_order_acquire)) {
		ring_take_posts(thread);
		turn(thread);
		if (thread->no_memory)
			comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for messages of the ring");
	}
	go_quiet(thread);
	page_close(thread->page);
	if (thread->to)
		say_goodbye(thread);
	return NULL;
}

/* ---- life ---- */

static void on_finished(void *context, struct round *round)
{
	(void)context;
	if (round->owner)
		request_round_finished(round->owner);
	round_free(round);
}

trib_status ring_listen(const struct comm_config *config, const struct udp_address *towards,
                        struct channel_listener **listener, struct ring_seat *seat)
{
	static const uint8_t any[16];
	unsigned mtu = config->mtu ? config->mtu : udp_route_mtu(towards);
	struct udp_address local, all;
	trib_status status = udp_local(towards, &local);
	const void *raw;
	size_t bytes;

	*seat = (struct ring_seat){ 0 };
	*listener = NULL;
	if (status != TRIB_OK)
		return status;
	raw = udp_raw(&local, &bytes);
	seat->rdma = bytes == 4 && rdma_carrier(&local); /* its paths have IPv4 addresses */
	udp_from_raw(any, bytes, 0, &all); /* paths may lead to other addresses of this host */
	status = channel_listen(&all, listener);
	if (status != TRIB_OK)
		return status;
	memcpy(seat->address, raw, bytes);
	seat->family = bytes == 4 ? 4 : 6;
	seat->port = channel_listener_port(*listener);
	seat->payload = length_probe_full(mtu ? mtu : 1500, udp_overhead(towards) + WIRE_HEADER,
	                                  WIRE_PAYLOAD_MAX);
	return TRIB_OK;
}

trib_status ring_open(struct trib_comm *comm, struct channel_listener *listener)
{
	struct ring_thread *thread = calloc(1, sizeof(*thread));
	struct ring_mail *mail = ring_mail_new();

	if (!thread || !mail) {
		free(thread);
		ring_mail_free(mail);
		channel_listener_free(listener);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a ring");
	}
	thread->comm = comm;
	thread->mail = mail;
	thread->listener = listener;
	mail->exchange.comm = comm;
	queue_init(&thread->spare);
	queue_init(&thread->aside);
	queue_init(&thread->ready);
	queue_init(&thread->flown);
	comm->ring = thread;
	pthread_mutex_lock(&comm->lock); /* a failure wakes it */
	comm->ring_mail = mail;
	pthread_mutex_unlock(&comm->lock);
	return TRIB_OK;
}

trib_status ring_run(struct trib_comm *comm)
{
	struct ring_thread *thread = comm->ring;

	struct direct_io *direct = direct_new(comm);

	if (!direct)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a ring");
	pthread_mutex_lock(&comm->lock); /* trib_get_stats reads it */
	comm->direct = direct;
	pthread_mutex_unlock(&comm->lock);
	ring_init(&thread->ring, (unsigned)comm->config.rank, (unsigned)comm->config.size,
	          comm->payload);
	thread->ring.on_finished = on_finished;
	if (pthread_create(&thread->thread, NULL, ring_main, thread))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for the ring");
	thread->runs = true;
	cores_pin(thread->thread, comm->config.pin, comm->n_lanes);
	return TRIB_OK;
}

void ring_stop(struct trib_comm *comm)
{
	struct ring_thread *thread = comm->ring;

	if (!thread || !thread->runs)
		return;
	pthread_mutex_lock(&comm->lock);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	ring_mail_wake(thread->mail);
	pthread_join(thread->thread, NULL);
	thread->runs = false;
}

void ring_close(struct trib_comm *comm)
{
	struct ring_thread *thread = comm->ring;

	if (!thread)
		return;
	pthread_mutex_lock(&comm->lock);
	comm->ring_mail = NULL;
	pthread_mutex_unlock(&comm->lock);
	comm->ring = NULL;
	direct_free(comm->direct);
	comm->direct = NULL;
	channel_io_free(thread->from);
	channel_io_free(thread->to);
	channel_listener_free(thread->listener);
	queue_free(&thread->spare);
	queue_free(&thread->aside);
	queue_free(&thread->ready);
	queue_free(&thread->flown);
	ring_mail_free(thread->mail);
	free(thread);
}
