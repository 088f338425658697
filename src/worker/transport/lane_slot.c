/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes of the slot engine: small vectors, driven by the thread that waits for them. The thread
 * that holds comm->slot_driver drives all of them: it takes rounds from the mailboxes, sends and
 * receives. A user's thread drives while it waits, so nothing is handed to another thread. The
 * lanes' own threads drive when no user does, and send heartbeats.
 */
#include "worker/transport/lane_engine_table.h"
#include "worker/transport/lane_paths.h"
#include "worker/transport/lane_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/brief.h"
#include "worker/slot/slot_stream.h"
#include "base/wait_choice.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define POLL_NS 1000000ull         /* 1 ms: a thread that waits longer sleeps */
#define SEND_MOST 64u              /* packets in one pass */
#define HELD_MOST 16u              /* vectors that wait for a result to leave with */
#define STUCK_NS 20000000ull       /* 20 ms without a result: a rank is late, or gone */
#define STUCK_EVERY 200000000ull   /* 0.2 s between two questions which rank it is */
#define HEARTBEAT_MAX 500000000ull /* 0.5 s: the most that heartbeats are apart */
#define GREET_EVERY 10000000ull    /* 10 ms between reports until the first answer */
#define DRIVEN_NS 1000000ull /* 1 ms: when the lane's thread looks whether a user still drives */
#define IDLE_NS 100000000ull /* 0.1 s: the longest sleep of the lane's thread */

struct lane_slots {
	struct slot_stream ops;
	uint64_t proof;       /* see wire_proof() */
	uint64_t asked_at;    /* ns: when a report was last asked for */
	_Atomic bool greeted; /* the aggregator has answered a report */
	_Atomic bool asks;    /* the lane's thread shall send a report now */
	struct wait_choice waiting;
	uint64_t waited_at;   /* ns: when the last wait ended; under slot_driver */
	_Atomic unsigned way; /* enum wait_way that is used most */
	unsigned held;        /* vectors that wait to leave together; under slot_driver */
	_Atomic bool awake;   /* the lane's thread watches the socket; set under slot_driver */
};

static inline struct lane_slots *slots_of(const struct lane *lane)
{
	return lane->own;
}

/* ---- packets ---- */

static struct wire_unsent unsent_of(const struct lane *lane, uint64_t position)
{
	return (struct wire_unsent){ .proof = slots_of(lane)->proof,
		                     .pos = wire_pos(lane->index, position) };
}

/* The next packet that is due, sealed; 0: none. */
static uint32_t next_packet(struct lane *lane, uint64_t now, uint8_t *packet)
{
	struct slot_stream *ops = &slots_of(lane)->ops;
	struct wire_header *header = (void *)packet;
	uint32_t bytes = slot_stream_next(ops, now, packet);
	struct wire_unsent unsent;

	if (!bytes)
		return 0;
	header->comm = lane->trunk->welcome.comm;
	unsent = unsent_of(lane, wire_widen(header->pos, ops->flow.next));
	wire_seal_fragment(header, bytes, &unsent);
	return bytes;
}

/* Neighbours of one length leave as one message; the last may be shorter. */
static void add_messages(struct lane *lane, const uint32_t *bytes, unsigned n)
{
	const uint8_t *at = lane->buffer, *from = at;
	unsigned first = 0;

	for (unsigned i = 0; i < n; i++) {
		at += bytes[i];
		if (i + 1 < n && bytes[i] == bytes[first] && bytes[i + 1] <= bytes[first] &&
		    i + 1 - first < UDP_GSO_SEGMENTS &&
		    (uint32_t)(at - from) + bytes[first] <= UDP_GSO_BYTES)
			continue;
		udp_tx_add(lane->tx, from, (uint32_t)(at - from), bytes[first], NULL);
		from = at;
		first = i + 1;
	}
}

/* Sends what is due. What the socket does not take counts as lost. */
static void send_packets(struct lane *lane, uint64_t now)
{
	uint32_t bytes[SEND_MOST];
	uint8_t *at = lane->buffer;
	unsigned n = 0;
	int error = 0;

	do {
		bytes[n] = next_packet(lane, now, at);
		at += bytes[n];
	} while (bytes[n] && ++n < SEND_MOST && slot_stream_may_have(&slots_of(lane)->ops, now));
	if (!n)
		return;
	if (n == 1) {
		if (send(lane->fd, lane->buffer, bytes[0], MSG_DONTWAIT) < 0)
			error = -errno;
	} else {
		add_messages(lane, bytes, n);
		error = udp_send(lane->tx, lane->fd);
		udp_tx_clear(lane->tx);
	}
	if (error && error != -EAGAIN)
		lane_note_error(lane, error);
}

/* Mostly there is nothing. */
static inline void send_due(struct lane *lane, uint64_t now)
{
	if (slot_stream_may_have(&slots_of(lane)->ops, now))
		send_packets(lane, now);
}

/* Sends what was never sent. Before a packet is repeated, the socket has to be empty. */
static void send_new(struct lane *lane, uint64_t now)
{
	struct slot_flow *flow = &slots_of(lane)->ops.flow;

	flow->holds = true;
	send_due(lane, now);
	flow->holds = false;
}

static void take_result(struct lane *lane, const struct wire_header *header, uint32_t bytes,
                        uint64_t now)
{
	struct lane_slots *slot = lane->own;
	struct wire_unsent unsent = unsent_of(lane, slot_stream_position(&slot->ops, header));

	if (header->type != WIRE_RESULT || header->comm != lane->trunk->welcome.comm ||
	    !wire_is_intact(header, bytes, &unsent)) {
		lane->dropped++;
		return;
	}
	lane->heard_at = now;
	if (!slot_stream_take(&slot->ops, header, bytes - WIRE_HEADER, now))
		comm_fail(
			lane->comm, TRIB_ERR_MISMATCH,
			"ranks called different collectives: the sum of small operation %llu does "
			"not fit what rank %d has called",
			(unsigned long long)slot_stream_position(&slot->ops, header),
			lane->comm->config.rank);
}

/* Lets the lane's thread send a report soon. */
static void lane_greet(struct lane *lane)
{
	atomic_store(&slots_of(lane)->asks, true);
	lane_wake(lane);
}

static void take_control(struct lane *lane, const struct wire_control *control, uint32_t bytes,
                         uint64_t now)
{
	struct wire_whole whole;

	if (!lane_owns(lane, control)) {
		lane->dropped++;
		return;
	}
	lane->heard_at = now;
	control = wire_make_whole(control, bytes, &whole);
	atomic_store_explicit(&slots_of(lane)->greeted, true, memory_order_relaxed);
	if (control->type == WIRE_STATUS) {
		const struct wire_status *status = wire_payload(control);

		lane->stream.waiting = status->waiting;
		if (status->stamp)
			atomic_store_explicit(&lane->asks, status->asks, memory_order_relaxed);
	} else if (control->type == WIRE_ABORT) {
		lane_on_abort(lane, wire_payload(control));
	} else if (control->type == WIRE_BYE && control->child == WIRE_ALL) {
		if (control->token)
			atomic_store_explicit(&lane->token, control->token, memory_order_relaxed);
		lane_greet(lane); /* the aggregator asks whether this rank is there */
	}
}

static void take_packet(struct lane *lane, const void *data, size_t bytes, uint64_t now)
{
	const struct wire_header *header = data;

	if (wire_parse(header, bytes) != WIRE_SOUND)
		lane->dropped++;
	else if (wire_is_fragment(header))
		take_result(lane, header, (uint32_t)bytes, now);
	else
		take_control(lane, wire_control(header), (uint32_t)bytes, now);
}

static void take_messages(struct lane *lane, int n, uint64_t now)
{
	for (int i = 0; i < n; i++) {
		const struct udp_message *message = udp_message(lane->rx, i);
		uint32_t step = message->segment;

		if (message->bytes > step && step % 8) { /* the second would not be aligned */
			lane->dropped++;
			continue;
		}
		for (uint32_t at = 0; at < message->bytes; at += step) {
			uint32_t left = message->bytes - at;

			take_packet(lane, message->data + at, left < step ? left : step, now);
		}
	}
}

/*
 * Takes what has come. False: nothing. Mostly it is one message, and nothing is on its way after
 * it; looking for more would cost another system call.
 */
static bool receive(struct lane *lane, uint64_t *now)
{
	const struct slot_flow *flow = &slots_of(lane)->ops.flow;
	/* While one result is due, packets come one by one. If the kernel has joined a control
	 * packet to it nevertheless, both count as lost. */
	int n = flow->unsent == flow->done + 1 ? udp_receive_single(lane->rx, lane->fd)
	                                       : udp_receive_one(lane->rx, lane->fd);
	bool came = n > 0;

	if (came) {
		*now = clock_now();
		take_messages(lane, n, *now);
		if (stream_is_idle(&lane->stream))
			return true;
		n = udp_receive(lane->rx, lane->fd);
		take_messages(lane, n, *now);
	}
	if (n < 0)
		lane_note_error(lane, n);
	return came;
}

static void slots_take_posts(struct lane *lane, uint64_t now)
{
	struct round *rounds = lane_take_posted(lane, now), *round;

	while ((round = round_pop(&rounds)))
		slot_stream_post(&slots_of(lane)->ops, round, now);
}

/* ---- driving ---- */

/* The first slot lane, or the first one that has not ended; NULL: none. */
static struct lane *first_of(const struct trib_comm *comm)
{
	for (unsigned i = 0; i < comm->slot_lanes_end; i++)
		if (comm->slot_lanes[i])
			return comm->slot_lanes[i];
	return NULL;
}

/* Takes what was posted to any of the lanes, and sends it. */
static void send_posted(struct trib_comm *comm, uint64_t now)
{
	/* A load costs less. The exchange sees all rounds of the posts that it answers. */
	if (atomic_load_explicit(&comm->slot_mail, memory_order_relaxed))
		atomic_exchange(&comm->slot_mail, false);
	for (unsigned i = 0; i < comm->slot_lanes_end; i++) {
		struct lane *lane = comm->slot_lanes[i];

		if (!lane)
			continue; /* it has ended, and has let its rounds go */
		slots_take_posts(lane, now);
		send_new(lane, now);
	}
}

/*
 * One pass. The caller holds `slot_driver`. True: something came. A user who waits for a vector
 * looks only at lanes with a vector in flight; the lanes' threads receive for the others.
 */
static bool pass(struct trib_comm *comm, bool all, uint64_t *now)
{
	bool any = false;

	send_posted(comm, *now);
	for (unsigned i = 0; i < comm->slot_lanes_end; i++) {
		struct lane *lane = comm->slot_lanes[i];
		bool came;

		if (!lane)
			continue;
		came = (all || !i || !stream_is_idle(&lane->stream)) && receive(lane, now);
		if (!came)
			send_due(lane, *now);
		if (came && lane->kept)
			lane_forget_kept(lane);
		any |= came;
	}
	return any;
}

static void publish(struct lane *lane)
{
	const struct stream *stream = &lane->stream;

	atomic_store_explicit(&lane->done, stream->done, memory_order_relaxed);
	atomic_store_explicit(&lane->next_base, stream->next_base, memory_order_relaxed);
	atomic_store_explicit(&lane->waiting, stream_is_idle(stream) ? 0 : stream->waiting,
	                      memory_order_relaxed);
	atomic_store_explicit(&lane->sent, stream->stats.sent, memory_order_relaxed);
	atomic_store_explicit(&lane->resent, stream->stats.resent, memory_order_relaxed);
	atomic_store_explicit(&lane->results, stream->stats.results, memory_order_relaxed);
	atomic_store_explicit(&lane->drops, lane->dropped, memory_order_relaxed);
}

/* Sleeps until a packet comes, a timer runs out, or the deadline. */
static void sleep_for_packet(const struct trib_comm *comm, uint64_t now, uint64_t deadline)
{
	struct pollfd wait[SLOT_LANES_MAX];
	uint64_t wake = deadline < now + STUCK_NS ? deadline : now + STUCK_NS;
	struct timespec span;
	nfds_t n = 0;

	for (unsigned i = 0; i < comm->slot_lanes_end; i++) {
		const struct lane *lane = comm->slot_lanes[i];

		if (!lane)
			continue;
		wait[n++] = (struct pollfd){ .fd = lane->fd, .events = POLLIN };
		if (slot_flow_wake(&slots_of(lane)->ops.flow) < wake)
			wake = slot_flow_wake(&slots_of(lane)->ops.flow);
	}
	span = clock_span(wake > now ? wake - now : 0);
	ppoll(wait, n, &span, NULL);
}

/* Has the request ended, or can it no longer end here? */
static bool is_over(const struct trib_comm *comm, const struct trib_request *request)
{
	return !atomic_load_explicit(&request->rounds_left, memory_order_acquire) ||
	       atomic_load_explicit(&comm->stop_lanes, memory_order_acquire);
}

/* Nothing has come for long: the answer to a report says which rank is missing. */
static void ask_who_is_missing(struct lane *lane, uint64_t now)
{
	struct lane_slots *slots = lane->own;
	bool moved = lane_paths_check(lane, now); /* the aggregator has to learn our address */
	bool probes = lane->closed.since && lane->closed.probed_at == now;

	if (!moved && !probes &&
	    (stream_is_idle(&lane->stream) || now < lane->stream.progress_at + STUCK_NS ||
	     now < slots->asked_at + STUCK_EVERY))
		return;
	slots->asked_at = now;
	lane_greet(lane);
}

static void check_silence(struct trib_comm *comm, uint64_t now)
{
	for (unsigned i = 0; i < comm->slot_lanes_end; i++) {
		if (!comm->slot_lanes[i])
			continue;
		lane_check_silence(comm->slot_lanes[i], now);
		ask_who_is_missing(comm->slot_lanes[i], now);
	}
}

/* Nothing has come yet. `since`: when something last came, or the wait began. */
static void wait_a_bit(struct lane *first, uint64_t since, uint64_t deadline, uint64_t *now)
{
	struct wait_choice *choice = &slots_of(first)->waiting;
	uint64_t before = *now;
	bool polls = choice->way == WAIT_POLL;

	if (polls)
		sched_yield();
	*now = clock_now();
	if (polls)
		wait_choice_yielded(choice, *now - before);
	if (polls && *now < since + POLL_NS)
		return;
	if (*now > since + POLL_NS)
		check_silence(first->comm, *now);
	sleep_for_packet(first->comm, *now, deadline);
	*now = clock_now();
}

/* Gives the time of the last look at the clock. */
static uint64_t drive(struct lane *first, const struct trib_request *request, uint64_t now,
                      uint64_t deadline)
{
	struct lane_slots *slots = first->own;
	uint64_t came_at = now;

	wait_choice_begin(&slots->waiting, now - slots->waited_at);
	while (!is_over(first->comm, request) && now < deadline) {
		if (pass(first->comm, false, &now))
			came_at = now;
		else
			wait_a_bit(first, came_at, deadline, &now);
	}
	wait_choice_waited(&slots->waiting);
	slots->waited_at = now;
	atomic_store_explicit(&slots->way, slots->waiting.way, memory_order_relaxed);
	return now;
}

/* True: the lane's thread has to go on with what is on its way. */
static bool is_left(struct lane *lane)
{
	bool left;

	publish(lane);
	left = !stream_is_idle(&lane->stream) && !slots_of(lane)->awake;
	if (left)
		slots_of(lane)->awake = true;
	return left;
}

/*
 * Nobody drives from now on. Rounds that were posted while this thread drove, after its last look,
 * are sent now: the threads that posted them could not send.
 */
static void stop_driving(struct trib_comm *comm)
{
	do {
		if (atomic_load(&comm->slot_mail))
			send_posted(comm, clock_now());
		for (unsigned i = 0; i < comm->slot_lanes_end; i++)
			if (comm->slot_lanes[i] && is_left(comm->slot_lanes[i]))
				lane_wake(comm->slot_lanes[i]);
		comm_leave_driver(comm, &comm->slot_driver);
	} while (atomic_load(&comm->slot_mail) && !pthread_mutex_trylock(&comm->slot_driver));
}

/*
 * Many vectors that are posted one after the other leave together: while results are on their way,
 * and the lane's thread watches for them, a new vector waits for the next result, or for HELD_MOST
 * of its like.
 */
static bool may_hold(struct lane *lane)
{
	struct lane_slots *slots = lane->own;

	if (!slots->awake || slots->ops.flow.done == slots->ops.flow.unsent ||
	    ++slots->held >= HELD_MOST) {
		slots->held = 0;
		return false;
	}
	return true;
}

static void slot_push(struct trib_comm *comm)
{
	if (pthread_mutex_trylock(&comm->slot_driver))
		return; /* the driver looks before it ends */
	if (comm->slot_lanes[0] && may_hold(comm->slot_lanes[0]))
		comm_leave_driver(comm, &comm->slot_driver);
	else
		stop_driving(comm);
}

static void slot_poll(struct trib_comm *comm)
{
	uint64_t now = clock_now();

	if (pthread_mutex_trylock(&comm->slot_driver))
		return;
	if (first_of(comm))
		pass(comm, false, &now);
	stop_driving(comm);
}

static uint64_t slot_drive(struct trib_comm *comm, const struct trib_request *request, uint64_t now,
                           uint64_t deadline)
{
	struct lane *first;

	if (pthread_mutex_trylock(&comm->slot_driver)) {
		if (!comm_wait_driver(comm, &comm->slot_driver, request, deadline))
			return clock_now();
		now = clock_now();
	}
	first = first_of(comm);
	if (first)
		now = drive(first, request, now, deadline);
	stop_driving(comm);
	return now;
}

/* ---- the lane's thread ---- */

static uint64_t heartbeat_every(const struct lane *lane)
{
	uint64_t every = (uint64_t)lane->trunk->welcome.dead_after_ms * 1000000 / 10;

	/* Until the first answer the kernel of the aggregator may not know the way to us. */
	if (!atomic_load_explicit(&slots_of(lane)->greeted, memory_order_relaxed))
		return GREET_EVERY;
	return every < HEARTBEAT_MAX ? every : HEARTBEAT_MAX;
}

/* A report that proves life, and shows the aggregator our address. */
static void send_heartbeat(struct lane *lane, uint64_t now)
{
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet = { .header = { .type = WIRE_REPORT,
		                 .flags = WIRE_AT_REST,
		                 .cookie = welcome->cookie,
		                 .job = lane->comm->config.job,
		                 .comm = welcome->comm,
		                 .epoch = welcome->epoch,
		                 .child = (uint8_t)lane->comm->config.rank,
		                 .token = lane_token(lane),
		                 .pos = wire_pos(lane->index, 0) },
		     .report = { .stamp = (uint32_t)(now / 1000) | 1, .serial = now } };
	int error;

	if (!atomic_exchange(&slots_of(lane)->asks, false) &&
	    now < lane->spoke_at + heartbeat_every(lane))
		return;
	lane->spoke_at = now;
	packet.report.call =
		comm_call(lane->comm, atomic_load_explicit(&lane->asks, memory_order_relaxed));
	packet.report.want = atomic_load_explicit(&slots_of(lane)->way, memory_order_relaxed) + 1;
	/* Who waits for a result finds out by itself that the aggregator has ended. */
	error = lane->carrier->send_one(lane, &packet, wire_cut(&packet));
	if (error)
		log_debug("a heartbeat of small vectors: %s", strerror(-error));
}

/* Until somebody needs the thread: a wake-up, a packet while no user drives, a timer, a heartbeat.
 */
static void thread_sleep(struct lane *lane, uint64_t now, bool watch, uint64_t wake)
{
	struct pollfd fds[2] = { { .fd = lane->wake_fd, .events = POLLIN },
		                 { .fd = lane->fd, .events = POLLIN } };
	uint64_t heartbeat = lane->spoke_at + heartbeat_every(lane), count;
	struct timespec span;

	if (heartbeat < wake)
		wake = heartbeat;
	span = clock_span(wake > now ? wake - now : 0);
	if (ppoll(fds, watch ? 2 : 1, &span, NULL) > 0 && fds[0].revents &&
	    read(lane->wake_fd, &count, sizeof(count)) < 0)
		log_debug("eventfd: %s", strerror(errno));
}

/* The thread's turn to drive. *wake: when it has to look again, if nothing comes. */
static bool thread_drive(struct lane *lane, uint64_t now, uint64_t *wake)
{
	bool busy;

	*wake = now + IDLE_NS;
	if (pthread_mutex_trylock(&lane->comm->slot_driver)) {
		/* A user drives. If it may leave the rest to this thread without a word, look soon:
		 * each look takes time from a call. */
		if (atomic_load(&slots_of(lane)->awake))
			*wake = now + DRIVEN_NS;
		return false;
	}
	if (lane->kept && atomic_load_explicit(&lane->comm->draining, memory_order_relaxed))
		slot_flow_ask(&slots_of(lane)->ops.flow, now);
	while (pass(lane->comm, true, &now))
		;
	lane_check_silence(lane, now);
	ask_who_is_missing(lane, now);
	busy = !stream_is_idle(&lane->stream);
	slots_of(lane)->awake = busy;
	if (slot_flow_wake(&slots_of(lane)->ops.flow) < *wake)
		*wake = slot_flow_wake(&slots_of(lane)->ops.flow);
	publish(lane);
	lane_forget_kept(lane);
	comm_leave_driver(lane->comm, &lane->comm->slot_driver);
	if (atomic_load(&lane->comm->slot_mail))
		*wake = now; /* posted after the last pass, by a thread that could not send */
	return busy;
}

static void *slot_main(void *argument)
{
	struct lane *lane = argument;
	struct trib_comm *comm = lane->comm;

	while (!atomic_load_explicit(&comm->closing, memory_order_relaxed) &&
	       !atomic_load_explicit(&comm->stop_lanes, memory_order_acquire)) {
		uint64_t now = clock_now(), wake;
		bool watch;

		send_heartbeat(lane, now);
		watch = thread_drive(lane, now, &wake);
		thread_sleep(lane, now, watch, wake);
	}
	pthread_mutex_lock(&comm->slot_driver);
	comm->slot_lanes[lane->index] = NULL;
	comm_leave_driver(comm, &comm->slot_driver);
	lane_go_quiet(lane);
	return NULL;
}

static trib_status slot_start(struct lane *lane)
{
	struct trib_comm *comm = lane->comm;
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	struct lane_slots *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for slots");
	if (!welcome->cells || welcome->cells & (welcome->cells - 1)) {
		free(slot);
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "the aggregator grants %u slots: not a power of two",
		                   welcome->cells);
	}
	lane->own = slot;
	stream_init(&lane->stream, lane->index, (unsigned)comm->config.rank,
	            (unsigned)comm->config.size, welcome->cells, comm->payload);
	lane->stream.on_finished = lane_on_finished;
	lane->stream.on_over = lane_on_over;
	lane->stream.context = lane;
	if (!slot_stream_init(&slot->ops, &lane->stream, welcome->cells, comm->payload))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u slots", welcome->cells);
	slot->proof = wire_proof(welcome->cookie, comm->config.job, welcome->epoch);
	lane->heard_at = clock_now();
	lane->spoke_at = 0; /* the first packet is a report: the aggregator learns our address */
	pthread_mutex_lock(&comm->slot_driver);
	comm->slot_lanes[lane->index] = lane;
	if (comm->slot_lanes_end <= lane->index)
		comm->slot_lanes_end = lane->index + 1;
	comm_leave_driver(comm, &comm->slot_driver);
	if (pthread_create(&lane->thread, NULL, slot_main, lane))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for small vectors");
	lane->started = true;
	return TRIB_OK;
}

static void slot_posted(struct lane *lane)
{
	atomic_store(&lane->comm->slot_mail, true); /* the thread that posts also drives */
}

static void slot_close(struct lane *lane)
{
	if (!lane->own)
		return;
	slot_stream_free(&slots_of(lane)->ops);
	free(lane->own);
	lane->own = NULL;
}

static uint64_t slot_pool_bytes(const struct comm_config *config, uint32_t bytes)
{
	return (uint64_t)config->slots * bytes;
}

const struct lane_engine lane_engine_slot = {
	.name = "slot",
	.number = ENGINE_SLOT,
	.small = true,
	.lanes_max = SLOT_LANES_MAX,
	.pool_bytes = slot_pool_bytes,
	.start = slot_start,
	.posted = slot_posted,
	.close = slot_close,
	.push = slot_push,
	.poll = slot_poll,
	.drive = slot_drive,
};
