/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's thread: packets in, packets out, sleep. No lock and no allocation per packet. */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HEARTBEAT_MAX (NSEC_PER_SEC / 2)
#define REFUSED_MAX 5u
#define REFUSED_EVERY (NSEC_PER_SEC / 50) /* a port that is closed is tried again soon */
#define DRAIN_EVERY (NSEC_PER_SEC / 500)
#define HOLD_BYTES (1u << 20) /* so much is copied as fast as one could wait */
#define HOLD_BYTES_A_NS 4u    /* at most, as memory is copied */
#define HOLD_MIN (NSEC_PER_SEC / 1000)
#define HOLD_EVERY (NSEC_PER_SEC / 4000) /* then it is asked how far everyone is */
#define NO_MEMORY "no memory for NaN and infinities, or for early results"
#define STOPPED_FOR (NSEC_PER_SEC / 2)
#define RATE_UNIT 1024u /* bits a second, on the wire */

struct lane *lane_make(struct trib_comm *comm, struct trunk *trunk)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->comm = comm;
	lane->trunk = trunk;
	lane->index = trunk->n_lanes;
	lane->fd = lane->group_fd = lane->wake_fd = lane->knock_fd = -1;
	lane->way = comm->config.tcp ? &lane_way_tcp : &lane_way_udp;
	lane->posted_end = &lane->posted;
	lane->kept_end = &lane->kept;
	pthread_mutex_init(&lane->lock, NULL);
	return lane;
}

trib_status lane_open(struct lane *lane)
{
	lane->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (lane->wake_fd < 0)
		return status_fail_errno("cannot open an eventfd");
	lane->buffer = aligned_alloc(64, LANE_BUFFER_PACKETS * (WIRE_PACKET_MAX + 56));
	if (!lane->buffer)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
	lane->peer = lane->trunk->aggregator;
	udp_set_port(&lane->peer, (uint16_t)(udp_port(&lane->peer) + lane->index));
	return lane->way->open(lane);
}

void lane_wake(struct lane *lane)
{
	uint64_t one = 1;

	if (write(lane->wake_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %s", strerror(errno)); /* full: it is awake */
}

void lane_post(struct lane *lane, struct round *round)
{
	pthread_mutex_lock(&lane->lock);
	round->next = NULL;
	*lane->posted_end = round;
	lane->posted_end = &round->next;
	atomic_fetch_add_explicit(&lane->entered, 1, memory_order_relaxed);
	atomic_store_explicit(&lane->mail, true, memory_order_release);
	pthread_mutex_unlock(&lane->lock);
	lane_wake(lane);
}

static void take_posts(struct lane *lane, uint64_t now)
{
	struct round *round;

	if (!atomic_load_explicit(&lane->mail, memory_order_acquire))
		return;
	pthread_mutex_lock(&lane->lock);
	round = lane->posted;
	lane->posted = NULL;
	lane->posted_end = &lane->posted;
	lane->taken = atomic_load_explicit(&lane->entered, memory_order_relaxed);
	atomic_store_explicit(&lane->mail, false, memory_order_release);
	pthread_mutex_unlock(&lane->lock);
	if (round && stream_is_idle(&lane->stream))
		lane->heard_at = now; /* silence counts from when an answer is due */
	while (round) {
		struct round *next = round->next;

		if (!stream_post(&lane->stream, round, now))
			comm_fail(lane->comm, TRIB_ERR_NO_MEMORY, NO_MEMORY);
		round = next;
	}
}

/* The user gets his buffers back. */
static void let_finish(struct lane *lane, struct round *round)
{
	if (round->place.ledger && !ledger_keep(lane, round))
		comm_fail(lane->comm, TRIB_ERR_NO_MEMORY, NO_MEMORY);
	if (round->owner)
		request_round_finished(round->owner);
}

static void on_finished(void *context, struct round *round)
{
	struct lane *lane = context;
	size_t unsure = round->place.ledger ? ledger_unsure(lane, round) : 0;

	if (unsure <= HOLD_BYTES) {
		let_finish(lane, round);
		return;
	}
	/* No longer than it would take to make a copy. */
	round->held_until = clock_now() + HOLD_MIN + unsure / HOLD_BYTES_A_NS;
	round->held_next = lane->finishing;
	lane->finishing = round;
}

static void on_over(void *context, struct round *round)
{
	(void)context;
	if (round->held_until)
		round->over = true;
	else
		round_free(round);
}

/* Those of which hardly anything can be asked for any more, or that have waited enough. */
static void look_at_held(struct lane *lane, uint64_t now)
{
	struct round **link = &lane->finishing, *round;

	while ((round = *link)) {
		if (now < round->held_until && ledger_unsure(lane, round) > HOLD_BYTES) {
			link = &round->held_next;
			continue;
		}
		*link = round->held_next;
		round->held_until = 0;
		let_finish(lane, round);
		if (round->over)
			round_free(round);
	}
}

/* What is not sent of a fragment. */
static struct wire_unsent unsent_of(const struct lane *lane, const struct wire_header *header)
{
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	uint64_t position = stream_position(&lane->stream, header);

	return (struct wire_unsent){ .proof = wire_proof(welcome->cookie, lane->comm->config.job,
		                                         welcome->epoch),
		                     .pos = wire_pos(lane->index, position) };
}

/* What comes by our connection is the aggregator's. */
static bool is_our_result(const struct lane *lane, const struct wire_header *header, uint32_t bytes)
{
	const struct wire_unsent unsent = unsent_of(lane, header);

	return header->type == WIRE_RESULT && header->comm == lane->trunk->welcome.comm &&
	       (header->child == lane->comm->config.rank || header->child == WIRE_ALL) &&
	       (lane->stream.reliable || wire_is_intact(header, bytes, &unsent));
}

static bool is_ours(const struct lane *lane, const struct wire_control *header)
{
	const struct trib_comm *comm = lane->comm;
	const struct wire_welcome *welcome = &lane->trunk->welcome;

	return header->cookie == welcome->cookie && header->job == comm->config.job &&
	       header->comm == welcome->comm && header->epoch == welcome->epoch &&
	       wire_lane(header) == lane->index &&
	       (header->child == comm->config.rank || header->child == WIRE_ALL);
}

static void take_status(struct lane *lane, const struct wire_control *header, uint64_t now)
{
	const struct wire_status *status = wire_payload(header);
	uint64_t rate = lane->pacer.rate;

	if (header->child == WIRE_ALL) { /* to everyone */
		stream_on_news(&lane->stream, header, now);
		return;
	}
	pacer_given(&lane->pacer, (uint64_t)status->rate * RATE_UNIT, status->serial, now);
	if (lane->pacer.rate && (!rate || lane->pacer.rate < rate))
		stream_judge_anew(&lane->stream, now);
	stream_on_status(&lane->stream, header, now);
	meter_confirmed(&lane->meter, now, lane->stream.flight.confirmed,
	                WIRE_HEADER + lane->comm->payload);
}

/* What it is connected to is lost: of a star that is shared, that may be no matter. */
static void lane_fail(struct lane *lane, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void lane_fail(struct lane *lane, trib_status status, const char *format, ...)
{
	char text[sizeof(lane->comm->failure)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!shift_note_lost(lane, status, UINT32_MAX, text))
		comm_fail(lane->comm, status, "%s", text);
}

static void take_abort(struct lane *lane, const struct wire_control *header)
{
	const struct wire_abort *abort = wire_payload(header);

	if (shift_note_lost(lane, (trib_status)abort->status, abort->rank, abort->text))
		return;
	comm_fail_told(lane->comm, (trib_status)abort->status, abort->rank, abort->text);
}

static void take_packet(struct lane *lane, const struct wire_header *header, uint32_t bytes,
                        bool by_group, void *context)
{
	const struct wire_control *control = wire_control(header);
	uint64_t now = *(const uint64_t *)context;
	struct wire_whole whole;

	if (control ? !is_ours(lane, control) : !is_our_result(lane, header, bytes)) {
		lane->dropped++;
		return;
	}
	lane->heard_at = now;
	lane->refused = 0;
	if (by_group ? hearing_by_group(&lane->hearing)
	             : !control && header->flags & WIRE_RESENT && hearing_alone(&lane->hearing))
		lane->spoke_at = 0; /* say so at once */
	/* A BYE is none: the aggregator looks whether we are still here. */
	if (!control) {
		if (!stream_on_result(&lane->stream, header, bytes - WIRE_HEADER, now))
			comm_fail(lane->comm, TRIB_ERR_NO_MEMORY, NO_MEMORY);
	} else if (control->type == WIRE_STATUS) {
		take_status(lane, wire_make_whole(control, bytes, &whole), now);
	} else if (control->type == WIRE_ABORT) {
		take_abort(lane, control);
	}
}

static void note_error(struct lane *lane, int error)
{
	char address[64];

	trunk_name(lane->trunk, address, sizeof(address));
	if (lane->comm->config.tcp)
		lane_fail(lane, TRIB_ERR_AGGREGATOR,
		          "the aggregator at %s has ended: its connection is closed", address);
	else if (error == -EMSGSIZE)
		comm_fail(lane->comm, TRIB_ERR_SYSTEM,
		          "the path's MTU has shrunk below %u bytes since the job began",
		          lane->comm->payload + WIRE_HEADER);
	else if (error == -ECONNREFUSED && ++lane->refused >= REFUSED_MAX)
		lane_fail(lane, TRIB_ERR_AGGREGATOR,
		          "the aggregator at %s has ended: its port is closed", address);
}

static bool receive(struct lane *lane, uint64_t now)
{
	int n = lane->way->receive(lane, take_packet, &now);

	if (n < 0)
		note_error(lane, n);
	return n > 0;
}

/* What the rank's link carries is known where it is of all lanes. */
static uint32_t carried_by_all(const struct trib_comm *comm)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < comm->n_lanes; i++) {
		uint64_t bps = atomic_load_explicit(&comm->carried[i], memory_order_relaxed);

		if (!bps)
			return 0;
		sum += bps;
	}
	return sum / RATE_UNIT > UINT32_MAX ? UINT32_MAX : (uint32_t)(sum / RATE_UNIT);
}

/* The fields that the stream does not know; gives the bytes to send. */
static uint32_t seal_report(struct lane *lane, void *packet)
{
	struct wire_control *header = packet;
	struct wire_report *report = (void *)(header + 1);
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	uint32_t bytes;

	header->cookie = welcome->cookie;
	header->job = lane->comm->config.job;
	header->comm = welcome->comm;
	header->epoch = welcome->epoch;
	if (lane->hearing.is_heard)
		header->flags |= WIRE_HEARS_MULTICAST;
	report->carried = carried_by_all(lane->comm);
	report->waited = atomic_load_explicit(&lane->comm->waited, memory_order_relaxed);
	bytes = wire_cut(packet);
	lane->way->seal(packet, bytes, NULL);
	return bytes;
}

static void seal_data(struct lane *lane, void *packet, uint32_t bytes)
{
	struct wire_header *header = packet;
	const struct wire_unsent unsent = unsent_of(lane, header);

	header->comm = lane->trunk->welcome.comm;
	lane->way->seal(packet, bytes, &unsent);
}

static uint64_t heartbeat_every(const struct lane *lane)
{
	uint64_t every = (uint64_t)lane->trunk->welcome.dead_after_ms * 1000000 / 10;

	if (lane->refused)
		return REFUSED_EVERY;
	if (lane->finishing)
		return HOLD_EVERY;
	if (lane->kept && atomic_load_explicit(&lane->comm->draining, memory_order_relaxed))
		return DRAIN_EVERY;
	if (hearing_waits(&lane->hearing, lane->spoke_at))
		return HEARING_EVERY;
	return every < HEARTBEAT_MAX ? every : HEARTBEAT_MAX;
}

uint32_t lane_next_report(struct lane *lane, uint64_t now, uint8_t *packet)
{
	uint32_t bytes = stream_next_report(&lane->stream, now, packet);

	if (!bytes && now >= lane->spoke_at + heartbeat_every(lane))
		bytes = stream_heartbeat(&lane->stream, now, packet);
	if (!bytes)
		return 0;
	lane->spoke_at = now;
	return seal_report(lane, packet);
}

uint32_t lane_next_data(struct lane *lane, uint64_t now, uint8_t *packet)
{
	bool free = pacer_free_at(&lane->pacer) <= now &&
	            !hearing_holds(&lane->hearing, now, lane->stream.sent);
	uint32_t bytes = free ? stream_next(&lane->stream, now, packet) : 0;

	if (!bytes && !lane->stream.reliable && flight_is_full(&lane->stream.flight))
		meter_pressed(&lane->meter);
	else if (!bytes)
		meter_hindered(&lane->meter);
	if (!bytes)
		return 0;
	seal_data(lane, packet, bytes);
	pacer_sent(&lane->pacer, now, bytes);
	return bytes;
}

/* Sends what there is; true: the socket is full. *sent: whether anything left. */
static bool send_some(struct lane *lane, uint64_t now, bool *sent)
{
	int error;

	*sent = false;
	error = lane->way->send_some(lane, now, sent);
	if (error && error != -EAGAIN)
		note_error(lane, error);
	if (error == -EAGAIN)
		meter_pressed(&lane->meter);
	return error == -EAGAIN;
}

static void publish(struct lane *lane)
{
	const struct stream *stream = &lane->stream;

	atomic_store_explicit(&lane->waiting, stream_is_idle(stream) ? 0 : stream->waiting,
	                      memory_order_relaxed);
	atomic_store_explicit(&lane->done, stream->done, memory_order_relaxed);
	atomic_store_explicit(&lane->next_base, stream->next_base, memory_order_relaxed);
	atomic_store_explicit(&lane->sent, stream->stats.sent, memory_order_relaxed);
	atomic_store_explicit(&lane->resent, stream->stats.resent, memory_order_relaxed);
	atomic_store_explicit(&lane->judged, stream->stats.judged, memory_order_relaxed);
	atomic_store_explicit(&lane->lost, stream->stats.lost, memory_order_relaxed);
	atomic_store_explicit(&lane->results, stream->stats.results, memory_order_relaxed);
	atomic_store_explicit(&lane->duplicates, stream->stats.duplicates, memory_order_relaxed);
	atomic_store_explicit(&lane->drops, lane->dropped, memory_order_relaxed);
	atomic_store_explicit(&lane->comm->carried[lane->number], lane->meter.bps,
	                      memory_order_relaxed);
}

/* Where requests are begun one after the other, it is time for the next. */
static void note_ending(struct lane *lane)
{
	struct trib_comm *comm = lane->comm;

	if (lane->taken == atomic_load_explicit(&lane->ending, memory_order_relaxed) ||
	    lane->stream.next_base - lane->stream.done >
	            atomic_load_explicit(&lane->nearly, memory_order_relaxed))
		return;
	atomic_store(&lane->ending, lane->taken);
	pthread_mutex_lock(&comm->lock);
	if (comm->turner)
		turner_wake(comm);
	pthread_mutex_unlock(&comm->lock);
}

static void check_silence(struct lane *lane, uint64_t now)
{
	uint64_t limit = (uint64_t)lane->trunk->welcome.dead_after_ms * 1000000;
	char address[64];

	doubt_raise(lane, now);
	if (!stream_is_idle(&lane->stream) && now > lane->heard_at + limit)
		lane_fail(lane, TRIB_ERR_AGGREGATOR,
		          "the aggregator at %s has not been heard of for %.1f s",
		          trunk_name(lane->trunk, address, sizeof(address)),
		          (double)(now - lane->heard_at) / 1e9);
}

static void sleep_until_needed(struct lane *lane, uint64_t now, bool blocked)
{
	struct pollfd fds[3] = { { .fd = lane->wake_fd, .events = POLLIN },
		                 { .fd = lane->fd,
		                   .events = (short)(POLLIN | (blocked ? POLLOUT : 0)) },
		                 { .fd = lane->group_fd, .events = POLLIN } };
	uint64_t wake = lane->spoke_at + heartbeat_every(lane);
	uint64_t stream = stream_wake(&lane->stream, now);
	bool for_rate = false;
	struct timespec span;
	uint64_t count;
	int n;

	/* What cannot leave now has to wait for the socket. */
	if (stream < wake && (stream > now || !blocked))
		wake = stream;
	if (pacer_free_at(&lane->pacer) > now && !stream_is_idle(&lane->stream) &&
	    pacer_free_at(&lane->pacer) < wake) {
		wake = pacer_free_at(&lane->pacer);
		for_rate = true;
	}
	span = clock_span(wake > now ? wake - now : 0);
	n = ppoll(fds, lane->group_fd >= 0 ? 3 : 2, &span, NULL);
	if (n == 0 && for_rate)
		lane->pacer.naps++;
	if (n > 0 && fds[0].revents)
		if (read(lane->wake_fd, &count, sizeof(count)) < 0)
			log_debug("eventfd: %s", strerror(errno));
}

/* Failed: users' buffers are let go, and whoever waits for that is told. */
static void go_quiet(struct lane *lane)
{
	take_posts(lane, clock_now());
	look_at_held(lane, UINT64_MAX);
	pthread_mutex_lock(&lane->comm->lock);
	for (struct round *round = lane->stream.first; round; round = round->next)
		ledger_note(round);
	pthread_mutex_unlock(&lane->comm->lock);
	stream_clear(&lane->stream);
	ledger_let_go(lane);
	pthread_mutex_lock(&lane->comm->lock);
	lane->comm->quiet_lanes++;
	pthread_cond_broadcast(&lane->comm->changed);
	pthread_mutex_unlock(&lane->comm->lock);
}

/*
 * What nobody can need any more. A star is left when all that was begun there is
 * over at all ranks (star.h), so its aggregator need not say so, and may be gone.
 */
static void forget_kept(struct lane *lane)
{
	bool leaves = atomic_load_explicit(&lane->leaves, memory_order_relaxed);
	uint64_t low = leaves ? UINT64_MAX : lane->stream.low;

	if (lane->kept && lane->kept->end <= low)
		ledger_forget(lane, low);
}

/* Nothing is under way, and nobody can need anything of what was. */
static bool note_rest(struct lane *lane)
{
	bool rests = stream_is_idle(&lane->stream) && !lane->kept && !lane->finishing &&
	             !atomic_load_explicit(&lane->mail, memory_order_acquire);

	atomic_store_explicit(&lane->rests, rests, memory_order_release);
	return rests;
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;
	struct trib_comm *comm = lane->comm;
	uint64_t last = clock_now();
	unsigned idle = 0;

	lane->heard_at = last;
	while (!atomic_load_explicit(&comm->closing, memory_order_relaxed)) {
		uint64_t now = clock_now();
		bool blocked, sent, got;

		if (now - last > STOPPED_FOR)
			lane->heard_at += now - last; /* it may be us who were stopped */
		last = now;
		take_posts(lane, now);
		got = receive(lane, now);
		pacer_forget(&lane->pacer, now);
		blocked = send_some(lane, now, &sent);
		publish(lane);
		note_ending(lane);
		if (lane->finishing)
			look_at_held(lane, now);
		forget_kept(lane);
		check_silence(lane, now);
		if (atomic_load_explicit(&comm->stop_lanes, memory_order_acquire))
			break;
		if (note_rest(lane) && atomic_load_explicit(&lane->leaves, memory_order_relaxed))
			break;
		idle = got || (sent && !blocked) ? 0 : idle + 1;
		if (idle && !comm->config.socket.busy_poll)
			sleep_until_needed(lane, now, blocked);
	}
	go_quiet(lane);
	pthread_mutex_lock(&comm->lock);
	atomic_store(&lane->ended, true);
	if (comm->turner && atomic_load(&lane->leaves))
		turner_wake(comm);
	pthread_mutex_unlock(&comm->lock);
	return NULL;
}

/*
 * The user's limit is the link's. Where ranks sum for each other, it is full when
 * they send less: to each come the parts of the others, and their results.
 */
static double way_rate(const struct trib_comm *comm, const struct way *way)
{
	double rate = (double)comm->config.rate_bps, ranks = comm->config.size;

	return comm->shared.shares.n && way == &comm->own ? rate * ranks / (2 * ranks - 2) : rate;
}

trib_status lane_start(struct lane *lane)
{
	struct trib_comm *comm = lane->comm;
	const struct way *way = trunk_is_shared(comm, lane->trunk) ? &comm->shared : &comm->own;
	double share = shares_of(&way->shares, lane->number - way->first);

	lane->way->start(lane);
	lane->spoke_at = 0; /* the first packet is a report: it shows who we are */
	atomic_store(&comm->carried[lane->number], 0);
	stream_init(&lane->stream, lane->index, (unsigned)comm->config.rank,
	            (unsigned)comm->config.size, lane->trunk->welcome.cells, comm->payload);
	lane->stream.reliable = comm->config.tcp;
	lane->stream.on_finished = on_finished;
	lane->stream.on_over = on_over;
	lane->stream.context = lane;
	pacer_start(&lane->pacer, (uint64_t)(way_rate(comm, way) * share),
	            (uint64_t)lane->trunk->welcome.rate * RATE_UNIT, clock_now());
	lane->stream.want = pacer_want(&lane->pacer, share, RATE_UNIT);
	pacing_start(lane);
	if (pthread_create(&lane->thread, NULL, lane_main, lane))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for lane %u",
		                   lane->number);
	lane->started = true;
	cores_pin(lane->thread, comm->config.pin, lane->number);
	return TRIB_OK;
}

void lane_stop(struct lane *lane)
{
	if (!lane->started)
		return;
	lane_wake(lane);
	pthread_join(lane->thread, NULL);
	lane->started = false;
	pacing_end(lane);
}

void lane_close(struct lane *lane)
{
	while (lane->posted) { /* when it was quiet already */
		struct round *round = lane->posted;

		lane->posted = round->next;
		round_free(round);
	}
	if (lane->fd >= 0)
		close(lane->fd);
	if (lane->wake_fd >= 0)
		close(lane->wake_fd);
	lane->way->close(lane);
	free(lane->buffer);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}
