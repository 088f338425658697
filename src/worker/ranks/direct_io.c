/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/direct_io.h"
#include "worker/ranks/ring_abort.h"

#include "base/clock.h"
#include "base/wait_choice.h"
#include "worker/ring/direct_row.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define CREDIT 32u            /* messages that a rank may send ahead */
#define OPENING_NS 1000000ull /* 1 ms: the longest sleep while sockets are still opened */
#define POLL_NS 1000000ull    /* 1 ms: a thread that has waited longer than this sleeps */
/* 1 ms: a thread that has waited within this time may soon wait again, and the ring's thread leaves
 * the sockets to it. */
#define LAZY_NS 1000000ull
#define LAZIEST_NS 4000000ull /* 4 ms: until the ring's thread looks again, at most */
#define POLLS_OF_ALL 8u       /* every so many polls, all sockets are looked at */
#define NOTICE_NS 10000000ull /* 10 ms: a call that takes longer is late */

struct direct_peer {
	struct direct_io *io;
	struct channel_io *channel;        /* NULL: not connected yet */
	struct message_queue ready, flown; /* wait to leave; have left and may leave again */
	uint32_t flown_first;              /* the channel's number of the first in `flown` */
	uint32_t granted;                  /* messages that the rank may send, ever */
	unsigned n_fds;                    /* of direct_io.fds */
	bool due;                          /* it has got packets, or a message for it is ready */
	uint64_t wake_at;                  /* when its channel has something to do in any case */
};

struct direct_io {
	struct trib_comm *comm;
	uint64_t lazy;          /* ns until the ring's thread looks again whether a thread waits */
	pthread_mutex_t driver; /* held by the thread that receives */
	_Atomic uint64_t driven_at;
	struct wait_choice waiting;    /* under `driver` */
	unsigned polls;                /* under `driver` */
	struct pollfd fds[DIRECT_FDS]; /* under `driver` */
	pthread_mutex_t lock;          /* for all below; `driver` is taken first */
	struct direct direct;
	struct message_pool pool;                    /* of all messages */
	struct udp_rx *rx;                           /* of all channels */
	struct direct_peer peers[WIRE_CHILDREN_MAX]; /* by rank; the own place is empty */
	bool over;                                   /* no call begins any more */
	bool leaves;                                 /* direct_leave was called */
};

static unsigned size_of(const struct direct_io *io)
{
	return io->direct.size;
}

/* ---- messages; the caller holds `lock` ---- */

static void *place(void *user, uint32_t number, uint32_t bytes)
{
	const struct direct_peer *peer = user;
	struct message *message = message_new(&peer->io->pool, bytes);

	(void)number;
	return message ? message->data : NULL;
}

static void unplace(void *user, void *memory)
{
	(void)user;
	message_free(message_of(memory));
}

static void deliver(void *user, uint32_t number, void *memory, uint32_t bytes)
{
	struct direct_peer *peer = user;
	struct direct_io *io = peer->io;
	struct message *message = message_of(memory);

	(void)number;
	message->bytes = bytes;
	ring_abort_take(io->comm, message);
	if (io->over || atomic_load_explicit(&io->comm->stop_ring, memory_order_relaxed)) {
		message_free(message);
		return;
	}
	trib_status status = direct_take(&io->direct, (unsigned)(peer - io->peers), message);

	if (status != TRIB_OK)
		comm_fail(io->comm, status, "%s", trib_last_error());
}

/* From the ring's order: each rank begins with the one behind it, so that no rank gets all at once.
 */
static struct direct_peer *peer_at(struct direct_io *io, unsigned i)
{
	return &io->peers[(io->direct.rank + i) % size_of(io)];
}

static void queue_message(struct direct_io *io, unsigned to, struct message *message)
{
	queue_put(&io->peers[to].ready, message);
	io->peers[to].due = true;
}

/* Writes messages that may leave, and ends calls that are complete. */
static void advance(struct direct_io *io)
{
	trib_status status = TRIB_OK;
	struct direct_call *call = NULL;
	struct message *message;
	unsigned to;

	do {
		if (call)
			request_round_finished(call->owner);
		direct_call_free(call);
		while ((message = direct_next(&io->direct, &to, &status)))
			queue_message(io, to, message);
		call = status == TRIB_OK ? direct_finish(&io->direct, &status) : NULL;
	} while (call && status == TRIB_OK);
	direct_call_free(call);
	if (status != TRIB_OK)
		comm_fail(io->comm, status, "%s", trib_last_error());
}

/* If a call in which ranks hear few others is late, all ranks say that they have made it. So each
 * one knows which has not. */
static void send_notices(struct direct_io *io, uint64_t now)
{
	struct direct_call *call = io->direct.first;

	if (!call || !direct_hears_few(call) || call->told)
		return;
	if (!call->since)
		call->since = now;
	if (now < call->since + NOTICE_NS)
		return;
	call->told = true;
	for (unsigned i = 1; i < size_of(io); i++) {
		struct message *message = direct_notice(&io->direct);

		if (message)
			queue_message(io, (unsigned)(peer_at(io, i) - io->peers), message);
	}
}

/* Gives the channel what it takes, and sends. */
static void push(struct direct_peer *peer, uint64_t now)
{
	struct channel *channel = channel_of(peer->channel);
	uint32_t ahead = peer->granted - channel_delivered(channel);
	uint64_t wait;

	while (peer->ready.first && channel_state(channel) <= CHANNEL_OPEN &&
	       channel_room(channel)) {
		const struct message *message = peer->ready.first;
		trib_status status = channel_send(channel, message_data(message), message->bytes);

		if (status != TRIB_OK) {
			comm_fail(peer->io->comm, status, "%s", trib_last_error());
			break;
		}
		queue_put(&peer->flown, queue_get(&peer->ready));
	}
	if (ahead <= CREDIT / 2) { /* credit may have a packet of its own */
		channel_grant(channel, CREDIT - ahead);
		peer->granted += CREDIT - ahead;
	}
	channel_push(peer->channel, now);
	for (; peer->flown.first && peer->flown_first != channel_sent(channel); peer->flown_first++)
		message_free(queue_get(&peer->flown));
	wait = channel_wait(peer->channel, now);
	if (wait > OPENING_NS && channel_state(channel) == CHANNEL_OPENING)
		wait = OPENING_NS;
	peer->wake_at = now + wait;
	peer->due = false;
}

/* Pushes channels that have something to do. */
static void push_due(struct direct_io *io)
{
	uint64_t now = clock_now();

	for (unsigned i = 1; i < size_of(io); i++) {
		struct direct_peer *peer = peer_at(io, i);

		if (peer->channel && (peer->due || now >= peer->wake_at))
			push(peer, now);
	}
}

/* Is no rank heard, of several? Ranks that have left do not count. */
static bool is_alone(const struct direct_io *io, uint64_t now)
{
	unsigned silent = 0;

	for (unsigned r = 0; r < size_of(io); r++) {
		const struct channel_io *peer = io->peers[r].channel;

		if (!peer || channel_state(channel_of(peer)) == CHANNEL_CLOSED)
			continue;
		if (!channel_is_silent(channel_of(peer), now))
			return false;
		silent++;
	}
	return silent > 1;
}

/* Other ranks may hear the sentence, so it names this one, too. */
static void lose_rank(const struct direct_io *io, trib_status status, unsigned rank)
{
	char alone[64] = "", text[512];

	if (is_alone(io, clock_now()))
		snprintf(alone, sizeof(alone), ", nor has any other rank: rank %u may be cut off",
		         io->direct.rank);
	snprintf(text, sizeof(text), "%s%s", trib_last_error(), alone);
	comm_fail_told(io->comm, status, rank, text);
}

/* A rank that has failed or left is an error only if a call waits for it. */
static void check_ranks(struct direct_io *io)
{
	uint64_t missing = direct_missing(&io->direct);

	for (unsigned r = 0; missing; r++, missing >>= 1) {
		const struct direct_peer *peer = &io->peers[r];
		const struct channel *channel;
		char text[128];

		if (!(missing & 1) || !peer->channel)
			continue;
		channel = channel_of(peer->channel);
		if (channel_state(channel) == CHANNEL_CLOSED) {
			snprintf(text, sizeof(text),
			         "rank %u has called trib_finalize while other ranks wait for it",
			         r);
			comm_fail_told(io->comm, TRIB_ERR_PEER, r, text);
		} else if (channel_status(channel) != TRIB_OK) {
			lose_rank(io, channel_status(channel), r);
		}
	}
}

/* ---- driving; the caller holds `driver` ---- */

/* The sockets to these ranks: bits. */
static unsigned collect_fds(struct direct_io *io, uint64_t ranks)
{
	unsigned n = 0;

	for (unsigned r = 0; r < size_of(io); r++) {
		struct direct_peer *peer = &io->peers[r];

		peer->n_fds = peer->channel && ranks >> r & 1
		                      ? channel_fds(peer->channel, io->fds + n)
		                      : 0;
		n += peer->n_fds;
	}
	return n;
}

/* When the channels have to be looked at, if nothing comes. */
static uint64_t next_wait(struct direct_io *io, uint64_t now)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 1; i < size_of(io); i++) {
		const struct direct_peer *peer = peer_at(io, i);
		uint64_t at = peer->channel ? peer->wake_at : now + OPENING_NS;

		least = at < least ? at : least;
	}
	return least > now ? least - now : 0;
}

/* Polling costs less the fewer sockets there are. So a thread that polls often looks at those of
 * the ranks it waits for, and at times at all: acknowledgements may come on others. */
static uint64_t ranks_to_poll(struct direct_io *io)
{
	uint64_t missing = direct_missing(&io->direct);

	return missing && ++io->polls % POLLS_OF_ALL ? missing : UINT64_MAX;
}

/* Waits for packets until `deadline`. False: none has come. */
static bool wait_for_packets(struct direct_io *io, uint64_t now, uint64_t deadline)
{
	struct timespec span;
	uint64_t wait;
	unsigned n;

	pthread_mutex_lock(&io->lock);
	n = collect_fds(io, deadline > now ? UINT64_MAX : ranks_to_poll(io));
	wait = deadline > now ? next_wait(io, now) : 0;
	pthread_mutex_unlock(&io->lock);
	span = clock_span(wait < deadline - now ? wait : deadline - now);
	return ppoll(io->fds, n, &span, NULL) > 0;
}

/* Takes the packets that have come, if any have, and sends what is due. */
static void step(struct direct_io *io, bool any)
{
	unsigned at = 0;

	pthread_mutex_lock(&io->lock);
	for (unsigned r = 0; any && r < size_of(io); r++) {
		struct direct_peer *peer = &io->peers[r];

		if (peer->n_fds && channel_take(peer->channel, io->fds + at, peer->n_fds))
			peer->due = true;
		at += peer->n_fds;
	}
	advance(io);
	send_notices(io, clock_now());
	push_due(io);
	check_ranks(io);
	atomic_store_explicit(&io->comm->direct_waiting, direct_late(&io->direct),
	                      memory_order_relaxed);
	pthread_mutex_unlock(&io->lock);
}

/* Has the request ended, or can it no longer end here? */
static bool is_over(const struct trib_comm *comm, const struct trib_request *request)
{
	return !atomic_load_explicit(&request->rounds_left, memory_order_acquire) ||
	       atomic_load_explicit(&comm->stop_ring, memory_order_acquire);
}

/* Gives the time after it. */
static uint64_t yield(struct wait_choice *choice, uint64_t before)
{
	uint64_t now;

	sched_yield();
	now = clock_now();
	wait_choice_yielded(choice, now - before);
	return now;
}

void direct_drive(struct trib_comm *comm, const struct trib_request *request, uint64_t deadline)
{
	struct direct_io *io = comm->direct;
	uint64_t now, came_at;

	if (pthread_mutex_trylock(&io->driver) &&
	    !comm_wait_driver(comm, &io->driver, request, deadline))
		return;
	now = came_at = clock_now();
	wait_choice_begin(&io->waiting, now - atomic_load(&io->driven_at));
	while (!is_over(comm, request) && now < deadline) {
		bool polls = io->waiting.way == WAIT_POLL && now < came_at + POLL_NS;
		bool any = wait_for_packets(io, now, polls ? now : deadline);

		if (any || !polls) {
			uint64_t before = now;

			step(io, any);
			now = clock_now();
			if (polls) /* it has not slept since */
				wait_choice_worked(&io->waiting, now - before);
		} else {
			now = yield(&io->waiting, now);
		}
		came_at = any ? now : came_at;
	}
	wait_choice_waited(&io->waiting);
	atomic_store(&io->driven_at, now);
	comm_leave_driver(io->comm, &io->driver);
}

void direct_poll(struct trib_comm *comm)
{
	struct direct_io *io = comm->direct;
	uint64_t now = clock_now();

	if (pthread_mutex_trylock(&io->driver))
		return;
	step(io, wait_for_packets(io, now, now));
	comm_leave_driver(io->comm, &io->driver);
}

void direct_start(struct trib_comm *comm, struct direct_call *calls)
{
	struct direct_io *io = comm->direct;
	trib_status status = TRIB_OK;

	pthread_mutex_lock(&io->lock);
	while (calls && !io->over && status == TRIB_OK) {
		struct direct_call *next = calls->next;

		status = direct_post(&io->direct, calls);
		calls = next;
	}
	if (status != TRIB_OK)
		comm_fail(comm, status, "%s", trib_last_error());
	direct_row_free(calls);
	if (!io->over) {
		advance(io);
		push_due(io);
	}
	pthread_mutex_unlock(&io->lock);
}

void direct_note_ring(struct trib_comm *comm, const struct wire_call *call)
{
	struct direct_io *io = comm->direct;

	pthread_mutex_lock(&io->lock);
	if (direct_pass(&io->direct, call) != TRIB_OK)
		comm_fail(comm, TRIB_ERR_MISMATCH, "%s", trib_last_error());
	pthread_mutex_unlock(&io->lock);
}

void direct_count(struct direct_io *io, trib_stats *all)
{
	pthread_mutex_lock(&io->lock);
	for (unsigned r = 0; r < size_of(io); r++) {
		struct channel_counters counters;

		if (!io->peers[r].channel)
			continue;
		counters = channel_counters(channel_of(io->peers[r].channel));
		all->sent_packets += counters.packets;
		all->resent_packets += counters.repeated;
		all->results += counters.received;
		all->duplicates += counters.duplicates;
		all->dropped_packets += counters.dropped;
	}
	pthread_mutex_unlock(&io->lock);
}

/* ---- the ring's thread ---- */

struct direct_io *direct_new(struct trib_comm *comm)
{
	struct direct_io *io = calloc(1, sizeof(*io));

	if (!io || !(io->rx = udp_rx_new(CHANNEL_RX, false))) {
		free(io);
		return NULL;
	}
	io->comm = comm;
	io->lazy = LAZY_NS;
	pthread_mutex_init(&io->driver, NULL);
	pthread_mutex_init(&io->lock, NULL);
	direct_init(&io->direct, (unsigned)comm->config.rank, (unsigned)comm->config.size,
	            comm->payload);
	io->direct.pool = &io->pool;
	for (unsigned r = 0; r < size_of(io); r++) {
		io->peers[r].io = io;
		queue_init(&io->peers[r].ready);
		queue_init(&io->peers[r].flown);
	}
	return io;
}

void direct_free(struct direct_io *io)
{
	if (!io)
		return;
	for (unsigned r = 0; r < size_of(io); r++) {
		channel_io_free(io->peers[r].channel);
		queue_free(&io->peers[r].ready);
		queue_free(&io->peers[r].flown);
	}
	udp_rx_free(io->rx);
	direct_clear(&io->direct);
	pool_free(&io->pool);
	pthread_mutex_destroy(&io->driver);
	pthread_mutex_destroy(&io->lock);
	free(io);
}

bool direct_seat_name(const struct ring_seat *seat, unsigned rank, struct udp_address *address,
                      char name[CHANNEL_NAME])
{
	char text[64];

	if (seat->family != 4 && seat->family != 6) {
		status_fail(TRIB_ERR_PEER, "rank %u cannot listen for other ranks", rank);
		return false;
	}
	udp_from_raw(seat->address, seat->family == 4 ? 4 : 16, seat->port, address);
	snprintf(name, CHANNEL_NAME, "rank %u (%s)", rank, udp_text(address, text, sizeof(text)));
	return true;
}

/* The lower rank calls the higher one. */
static trib_status connect_rank(struct direct_io *io, struct channel_listener *listener,
                                struct channel_io_config config, unsigned rank)
{
	const struct ring_seat *seat = &io->comm->ring_mail->seats[rank];
	struct direct_peer *peer = &io->peers[rank];
	struct udp_address address;
	char name[CHANNEL_NAME];

	if (!direct_seat_name(seat, rank, &address, name))
		return TRIB_ERR_PEER;
	config.peer = rank;
	config.name = name;
	config.credit = peer->granted = CREDIT;
	config.events = (struct channel_events){
		.user = peer, .place = place, .deliver = deliver, .unplace = unplace
	};
	if (rank < io->direct.rank)
		return channel_accept(listener, &config, clock_now(), &peer->channel);
	return channel_connect(&config, &address, clock_now(), &peer->channel);
}

trib_status direct_connect(struct direct_io *io, struct channel_listener *listener,
                           const struct channel_io_config *config)
{
	struct channel_io_config own = *config;
	trib_status status = TRIB_OK;

	own.key = ~config->key; /* the ring has other channels */
	own.longest = DIRECT_MOST + (uint32_t)sizeof(struct direct_head);
	own.patient = true;
	own.rx = io->rx;
	pthread_mutex_lock(&io->lock);
	for (unsigned r = 0; r < size_of(io) && status == TRIB_OK; r++)
		if (r != io->direct.rank)
			status = connect_rank(io, listener, own, r);
	pthread_mutex_unlock(&io->lock);
	return status;
}

void direct_lose_rank(struct direct_io *io, trib_status status, unsigned rank)
{
	pthread_mutex_lock(&io->lock);
	lose_rank(io, status, rank);
	pthread_mutex_unlock(&io->lock);
}

void direct_listen(struct direct_io *io, struct channel_listener *listener, uint64_t now)
{
	pthread_mutex_lock(&io->lock);
	channel_listener_step(listener, now);
	for (unsigned r = 0; r < size_of(io); r++)
		io->peers[r].due = true; /* it may have been called */
	pthread_mutex_unlock(&io->lock);
}

uint64_t direct_turn(struct direct_io *io, uint64_t now, struct pollfd *fds, unsigned *n)
{
	uint64_t free_at = atomic_load(&io->driven_at) + LAZY_NS, wait;

	*n = 0;
	if (now < free_at || pthread_mutex_trylock(&io->driver)) {
		io->lazy = io->lazy < LAZIEST_NS ? 2 * io->lazy : LAZIEST_NS;
		return io->lazy;
	}
	io->lazy = LAZY_NS;
	step(io, wait_for_packets(io, now, now));
	pthread_mutex_lock(&io->lock);
	*n = collect_fds(io, UINT64_MAX);
	memcpy(fds, io->fds, *n * sizeof(*fds));
	wait = next_wait(io, clock_now());
	pthread_mutex_unlock(&io->lock);
	comm_leave_driver(io->comm, &io->driver);
	return wait;
}

bool direct_is_open(struct direct_io *io)
{
	bool open = true;

	pthread_mutex_lock(&io->lock);
	for (unsigned i = 1; i < size_of(io); i++) {
		const struct channel_io *channel = peer_at(io, i)->channel;

		open = open && channel && channel_state(channel_of(channel)) != CHANNEL_OPENING;
	}
	pthread_mutex_unlock(&io->lock);
	return open;
}

void direct_go_quiet(struct direct_io *io)
{
	pthread_mutex_lock(&io->lock);
	io->over = true;
	direct_clear(&io->direct);
	pthread_mutex_unlock(&io->lock);
}

/* What has not left yet is of no use any more. */
static void tell_failure(struct direct_io *io)
{
	struct ring_abort abort;

	if (!ring_abort_write(io->comm, &abort))
		return;
	for (unsigned i = 1; i < size_of(io); i++) {
		struct direct_peer *peer = peer_at(io, i);
		struct message *message = message_new(&io->pool, sizeof(abort));

		queue_free(&peer->ready);
		if (!message)
			continue;
		memcpy(message->data, &abort, sizeof(abort));
		queue_put(&peer->ready, message);
	}
}

static bool leave_rank(struct direct_peer *peer, uint64_t now)
{
	struct channel *channel = channel_of(peer->channel);

	push(peer, now);
	if (!peer->ready.first && !(channel_state(channel) == CHANNEL_OPENING && peer->flown.first))
		channel_close(channel, now);
	channel_step(peer->channel, now);
	return channel_state(channel) >= CHANNEL_CLOSED;
}

bool direct_leave(struct direct_io *io, uint64_t now)
{
	bool ended = true;

	pthread_mutex_lock(&io->lock);
	if (!io->leaves)
		tell_failure(io);
	io->leaves = true;
	for (unsigned i = 1; i < size_of(io); i++)
		if (peer_at(io, i)->channel)
			ended &= leave_rank(peer_at(io, i), now);
	pthread_mutex_unlock(&io->lock);
	return ended;
}
