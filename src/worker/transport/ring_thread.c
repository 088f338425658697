/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages stay in the buffer that they came in: this rank adds its part there, and the same buffer
 * goes to the next rank. A rank starts messages of its own only while few are on their way, so
 * those of other ranks are not held up. Ranks cannot block each other in a circle: a rank takes
 * messages as long as fewer than TAKE_BELOW wait to leave, and starts some only below START_BELOW,
 * so there is always a rank that still takes some.
 */
#include "worker/transport/ring_thread.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/random_bits.h"
#include "path/channel/channel_io.h"
#include "path/length_probe.h"
#include "path/page/page_folder.h"
#include "worker/ring/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_BELOW 8u  /* messages on their way to the next rank */
#define TAKE_BELOW 128u /* the same */
#define CREDIT 32u      /* messages that the previous rank may send ahead */
#define ASK_NS                                                                             \
	50000000ull /* 50 ms: ranks that wait ask who is late, less often if they are many \
	             */
#define ASK_RANK_NS 5000000ull
#define END_NS (2 * NSEC_PER_SEC) /* closing takes no longer, also if a rank is silent */
#define SILENCE_SHARE 2           /* a rank is dead after 1/2 of the timeout */

struct ring_buffer {
	struct ring_buffer *next;
	uint32_t bytes;
	_Alignas(8) uint8_t data[];
};

struct ring_queue {
	struct ring_buffer *first, **end;
};

struct ring_thread {
	struct trib_comm *comm;
	struct ring_mail *mail;
	struct ring ring;
	struct channel_listener *listener;
	struct channel_io *from, *to;   /* the previous rank, the next rank */
	struct ring_queue spare;        /* free buffers */
	struct ring_queue aside;        /* of rounds that are not posted here yet */
	struct ring_queue ready, flown; /* wait to leave; have left and may have to leave again */
	unsigned n_out;                 /* in `ready` and `flown` */
	uint32_t flown_first;           /* the channel's number of the first in `flown` */
	uint32_t granted;               /* messages that the previous rank may send, ever */
	uint64_t asked_at;              /* when this rank last asked who is late */
	struct page_file *page;         /* NULL: none */
	uint64_t page_at;               /* when it was written */
	bool no_memory;
	bool runs;
	pthread_t thread;
};

static void queue_put(struct ring_queue *queue, struct ring_buffer *buffer)
{
	buffer->next = NULL;
	*queue->end = buffer;
	queue->end = &buffer->next;
}

static struct ring_buffer *queue_get(struct ring_queue *queue)
{
	struct ring_buffer *buffer = queue->first;

	if (buffer)
		queue->first = buffer->next;
	if (!queue->first)
		queue->end = &queue->first;
	return buffer;
}

static void queue_free(struct ring_queue *queue)
{
	struct ring_buffer *buffer;

	while ((buffer = queue_get(queue)))
		free(buffer);
}

static struct ring_buffer *buffer_get(struct ring_thread *thread)
{
	struct ring_buffer *buffer = queue_get(&thread->spare);

	if (!buffer)
		buffer = malloc(sizeof(*buffer) + ring_message_max(&thread->ring));
	thread->no_memory |= !buffer;
	return buffer;
}

static unsigned neighbour(const struct trib_comm *comm, int step)
{
	return (unsigned)(comm->config.rank + comm->config.size + step) %
	       (unsigned)comm->config.size;
}

static void queue_out(struct ring_thread *thread, struct ring_buffer *buffer)
{
	queue_put(&thread->ready, buffer);
	thread->n_out++;
}

/* ---- failures ---- */

/* A rank that fails tells the next one, which tells the next. */
struct ring_abort {
	struct ring_head head;
	int32_t status;
	uint32_t rank; /* the rank concerned, as in struct wire_abort */
	char text[512];
};

static bool is_abort(const struct ring_buffer *buffer)
{
	const struct ring_head *head = (const void *)buffer->data;

	return buffer->bytes == sizeof(struct ring_abort) && head->version == RING_VERSION &&
	       head->phase == RING_ABORT;
}

static void take_abort(struct ring_thread *thread, const struct ring_buffer *buffer)
{
	struct ring_abort abort;
	char text[sizeof(abort.text) + 1];

	memcpy(&abort, buffer->data, sizeof(abort));
	snprintf(text, sizeof(text), "%.*s", (int)sizeof(abort.text), abort.text);
	comm_fail_told(thread->comm, abort.status < 0 ? (trib_status)abort.status : TRIB_ERR_PEER,
	               abort.rank, text);
}

/* False: the communicator has not failed. */
static bool tell_failure(struct ring_thread *thread)
{
	struct trib_comm *comm = thread->comm;
	struct ring_abort abort = {
		.head = { .version = RING_VERSION, .phase = RING_ABORT, .hops = 1 },
		.rank = UINT32_MAX
	};
	struct ring_buffer *buffer;

	pthread_mutex_lock(&comm->lock);
	abort.status = comm->failed;
	snprintf(abort.text, sizeof(abort.text), "%s", comm->failure);
	pthread_mutex_unlock(&comm->lock);
	if (abort.status == TRIB_OK)
		return false;
	while ((buffer = queue_get(&thread->ready))) { /* nobody needs it any more */
		queue_put(&thread->spare, buffer);
		thread->n_out--;
	}
	if (!(buffer = buffer_get(thread)))
		return true;
	buffer->bytes = sizeof(abort);
	memcpy(buffer->data, &abort, sizeof(abort));
	queue_out(thread, buffer);
	return true;
}

/* ---- messages ---- */

static void offer(struct ring_thread *thread, struct ring_buffer *buffer)
{
	trib_status status = TRIB_OK;

	if (is_abort(buffer))
		take_abort(thread, buffer);
	if (atomic_load_explicit(&thread->comm->stop_lanes, memory_order_relaxed)) {
		queue_put(&thread->spare, buffer); /* a call that failed must not pass */
		return;
	}
	switch (ring_take(&thread->ring, buffer->data, buffer->bytes, &status)) {
	case RING_PASS_ON:
		queue_out(thread, buffer);
		return;
	case RING_LATER:
		queue_put(&thread->aside, buffer);
		return;
	case RING_WRONG:
		comm_fail(thread->comm, status, "%s", trib_last_error());
		break;
	case RING_USED:
		break;
	}
	queue_put(&thread->spare, buffer);
}

static void *place(void *user, uint32_t message, uint32_t bytes)
{
	struct ring_thread *thread = user;
	struct ring_buffer *buffer;

	(void)message;
	if (bytes > ring_message_max(&thread->ring) || !(buffer = buffer_get(thread)))
		return NULL;
	buffer->bytes = bytes;
	return buffer->data;
}

static void deliver(void *user, uint32_t message, void *memory, uint32_t bytes)
{
	struct ring_buffer *buffer =
		(void *)((uint8_t *)memory - offsetof(struct ring_buffer, data));

	(void)message;
	buffer->bytes = bytes;
	offer(user, buffer);
}

static void take_posts(struct ring_thread *thread)
{
	struct round *round = ring_mail_take(thread->mail);
	struct ring_queue again = { 0 };
	struct ring_buffer *buffer;

	if (!round)
		return;
	while (round) {
		struct round *next = round->next;

		if (!ring_post(&thread->ring, round)) {
			round_free(round);
			thread->no_memory = true;
		}
		round = next;
	}
	again.first = thread->aside.first;
	thread->aside = (struct ring_queue){ .end = &thread->aside.first };
	while ((buffer = again.first)) {
		again.first = buffer->next;
		offer(thread, buffer);
	}
}

static void start_messages(struct ring_thread *thread)
{
	while (thread->n_out < START_BELOW) {
		struct ring_buffer *buffer = buffer_get(thread);

		if (!buffer)
			return;
		buffer->bytes = ring_start(&thread->ring, buffer->data);
		if (!buffer->bytes) {
			queue_put(&thread->spare, buffer);
			return;
		}
		queue_out(thread, buffer);
	}
}

/* Asks who is late, if rounds have not ended for a while. */
static uint64_t ask(struct ring_thread *thread, uint64_t now)
{
	uint64_t every = ASK_NS + ASK_RANK_NS * thread->ring.size;
	struct ring_buffer *buffer;

	atomic_store_explicit(&thread->mail->waiting, thread->ring.late, memory_order_relaxed);
	if (ring_is_idle(&thread->ring)) {
		thread->asked_at = 0;
		return UINT64_MAX;
	}
	if (!thread->asked_at)
		thread->asked_at = now;
	if (now - thread->asked_at >= every && (buffer = buffer_get(thread))) {
		thread->asked_at = now;
		buffer->bytes = ring_ask(&thread->ring, buffer->data);
		queue_out(thread, buffer);
	}
	return thread->asked_at + every - now;
}

static void send_messages(struct ring_thread *thread)
{
	struct channel *channel = channel_of(thread->to);
	struct ring_buffer *buffer;

	if (channel_state(channel) > CHANNEL_OPEN)
		return;
	while (thread->flown.first && thread->flown_first != channel_sent(channel)) {
		queue_put(&thread->spare, queue_get(&thread->flown));
		thread->flown_first++;
		thread->n_out--;
	}
	while (thread->ready.first && channel_room(channel)) {
		buffer = thread->ready.first;
		if (channel_send(channel, buffer->data, buffer->bytes) != TRIB_OK)
			return; /* the next step says why */
		queue_put(&thread->flown, queue_get(&thread->ready));
	}
}

/* Credit has a packet of its own, so it is given for several messages at once. */
static void grant(struct ring_thread *thread)
{
	struct channel *channel = channel_of(thread->from);
	uint32_t ahead = thread->granted - channel_delivered(channel);

	if (thread->n_out < TAKE_BELOW && ahead <= CREDIT / 2) {
		channel_grant(channel, CREDIT - ahead);
		thread->granted += CREDIT - ahead;
	}
}

/* ---- the thread ---- */

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

static bool has_left(const struct channel_io *io)
{
	return channel_state(channel_of(io)) == CHANNEL_CLOSED;
}

static void step(struct ring_thread *thread, struct channel_io *io, unsigned rank)
{
	trib_status status = channel_step(io, clock_now());

	if (status != TRIB_OK)
		comm_fail_told(thread->comm, status, rank, trib_last_error());
}

/* Is there a message that ranks wait for? They do not wait for questions. */
static bool has_message(const struct ring_queue *queue)
{
	const struct ring_buffer *buffer = queue->first;

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

static void sleep_until_needed(struct ring_thread *thread, uint64_t now, uint64_t most)
{
	struct pollfd fds[2 * CHANNEL_FDS + 2];
	unsigned n = 2;
	uint64_t count;
	struct timespec span;
	uint64_t wait = channel_wait(thread->from, now), other = channel_wait(thread->to, now);

	fds[0] = (struct pollfd){ .fd = thread->mail->wake_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = channel_listener_fd(thread->listener), .events = POLLIN };
	n += channel_fds(thread->from, fds + n);
	n += channel_fds(thread->to, fds + n);
	if (other < wait)
		wait = other;
	if (most < wait)
		wait = most;
	span = clock_span(wait);
	if (ppoll(fds, n, &span, NULL) > 0 && fds[0].revents)
		if (read(thread->mail->wake_fd, &count, sizeof(count)) < 0)
			log_debug("eventfd: %s", strerror(errno));
}

static void turn(struct ring_thread *thread)
{
	const struct trib_comm *comm = thread->comm;
	uint64_t now = clock_now();
	unsigned before;

	channel_listener_step(thread->listener, now);
	step(thread, thread->from, neighbour(comm, -1));
	/* If enough messages have left, more may start, and nothing else might wake this thread. */
	do {
		start_messages(thread);
		send_messages(thread);
		step(thread, thread->to, neighbour(comm, 1));
		before = thread->n_out;
		send_messages(thread);
	} while (before >= START_BELOW && thread->n_out < START_BELOW);
	check_left(thread);
	grant(thread);
	count(thread);
	if (thread->page && now - thread->page_at >= PAGE_EVERY_NS)
		show_paths(thread, now);
	sleep_until_needed(thread, clock_now(), ask(thread, now));
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

static trib_status connect_ranks(struct ring_thread *thread)
{
	const struct comm_config *config = &thread->comm->config;
	unsigned next = neighbour(thread->comm, 1), last = neighbour(thread->comm, -1);
	char names[2][32];
	const struct ring_seat *seat = &thread->mail->seats[next];
	struct udp_address address;
	trib_status status;
	struct channel_io_config io = {
		.key = channel_key(config),
		.self = (uint32_t)config->rank,
		.longest = ring_message_max(&thread->ring),
		.timeout = (uint64_t)(config->timeout_s * 1e9) / SILENCE_SHARE,
		.chunk = RING_MESSAGE_MAX,
		.events = { .user = thread, .place = place, .deliver = deliver },
	};

	if (seat->family != 4 && seat->family != 6)
		return status_fail(TRIB_ERR_PEER, "rank %u cannot listen for the ring", next);
	udp_from_raw(seat->address, seat->family == 4 ? 4 : 16, seat->port, &address);
	snprintf(names[0], sizeof(names[0]), "rank %u", last);
	snprintf(names[1], sizeof(names[1]), "rank %u", next);
	io.peer = last;
	io.name = names[0];
	io.credit = thread->granted = CREDIT;
	status = channel_accept(thread->listener, &io, clock_now(), &thread->from);
	io.peer = next;
	io.name = names[1];
	io.credit = 0;
	if (status == TRIB_OK)
		status = channel_connect(&io, &address, clock_now(), &thread->to);
	return status;
}

static void go_quiet(struct ring_thread *thread)
{
	struct trib_comm *comm = thread->comm;

	ring_clear(&thread->ring);
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
 * What has left arrives; then the channels are closed. After a failure the previous rank closes its
 * channel first: the news reaches it last, around the ring, and until then it must not think that
 * this rank has left.
 */
static void say_goodbye(struct ring_thread *thread)
{
	uint64_t now = clock_now(), end = now + END_NS;
	bool failed = tell_failure(thread);

	for (; now < end && !(has_ended(thread->from) && has_ended(thread->to));
	     now = clock_now()) {
		send_messages(thread);
		if (failed)
			grant(thread); /* what comes is dropped, so that the news can pass */
		else
			channel_close(channel_of(thread->from), now);
		if (!thread->ready.first && !is_opening(thread))
			channel_close(channel_of(thread->to), now);
		channel_step(thread->from, now);
		channel_step(thread->to, now);
		sleep_until_needed(thread, now, NSEC_PER_SEC / 50);
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
	       !atomic_load_explicit(&comm->stop_lanes, memory_order_acquire)) {
		take_posts(thread);
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
	thread->spare.end = &thread->spare.first;
	thread->aside.end = &thread->aside.first;
	thread->ready.end = &thread->ready.first;
	thread->flown.end = &thread->flown.first;
	comm->ring = thread;
	pthread_mutex_lock(&comm->lock); /* a failure wakes it */
	comm->ring_mail = mail;
	pthread_mutex_unlock(&comm->lock);
	return TRIB_OK;
}

trib_status ring_run(struct trib_comm *comm)
{
	struct ring_thread *thread = comm->ring;

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
