/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/child/child_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define RX_MESSAGES 8u
#define RECEIVE_BYTES (4 << 20)
#define SEND_BYTES (64 << 10)      /* the queue of a slow link holds that, and what TCP sends */
#define RECEIVE_PASSES 4u          /* calls to the kernel in one child_receive() */
#define HEARTBEAT_MAX 200000000ull /* 0.2 s: the most that heartbeats are apart */
#define GREET_EVERY 10000000ull    /* 10 ms between heartbeats until the first answer */
#define SILENT_LEAST 1600000000ull /* 1.6 s: a stop of 1 s is tolerated */
#define GAP_MAX 400000000ull       /* 0.4 s: if the caller stood still, silence proves nothing */
#define BYES_AT_ONCE 3u

void child_fail(struct sparse_child *child, trib_status status, const char *format, ...)
{
	va_list args;

	if (child->state == CHILD_FAILED)
		return;
	child->state = CHILD_FAILED;
	child->status = status;
	va_start(args, format);
	vsnprintf(child->why, sizeof(child->why), format, args);
	va_end(args);
}

/* ---- opening and closing ---- */

static trib_status open_socket(struct sparse_child *child)
{
	const struct udp_address *peer = &child->options.aggregator;
	struct udp_options options = { .offload = true,
		                       .receive_bytes = RECEIVE_BYTES,
		                       .send_bytes = SEND_BYTES };
	unsigned mtu;
	bool gso = false;
	trib_status status = udp_open(NULL, peer, &options, &child->fd, &gso);

	if (status != TRIB_OK)
		return status;
	mtu = child->options.mtu ? child->options.mtu : udp_mtu(child->fd);
	child->length.full = length_probe_full(mtu ? mtu : 1500, udp_overhead(peer) + WIRE_HEADER,
	                                       WIRE_PAYLOAD_MAX);
	if (child->length.full < WIRE_PAYLOAD_MIN)
		return status_fail(TRIB_ERR_CONFIG, "an MTU of %u is too small", mtu);
	child->rx = udp_rx_new(RX_MESSAGES, false);
	child->tx = udp_tx_new(CHILD_BATCH, gso);
	child->batch = aligned_alloc(64, (size_t)CHILD_BATCH * WIRE_PACKET_MAX);
	if (!child->rx || !child->tx || !child->batch)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
	child->at = child->batch;
	return TRIB_OK;
}

_Static_assert((CHILD_BATCH * WIRE_PACKET_MAX) % 64 == 0, "aligned_alloc");

static void child_free(struct sparse_child *child)
{
	if (child->fd >= 0)
		close(child->fd);
	udp_rx_free(child->rx);
	udp_tx_free(child->tx);
	free(child->batch);
	free(child);
}

trib_status child_open(struct sparse_child **out, const struct child_options *options, uint64_t now)
{
	struct sparse_child *child;
	trib_status status;

	*out = NULL;
	if (!options->size || options->size > WIRE_CHILDREN_MAX || options->rank >= options->size)
		return status_fail(TRIB_ERR_ARGUMENT, "child %u of %u: there can be 1 to %u",
		                   options->rank, options->size, WIRE_CHILDREN_MAX);
	child = calloc(1, sizeof(*child));
	if (!child)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to join an aggregator");
	child->options = *options;
	child->fd = -1;
	child->deadline = now + options->timeout_ns;
	child->stepped_at = now;
	udp_text(&options->aggregator, child->address, sizeof(child->address));
	if (getrandom(&child->nonce, sizeof(child->nonce), 0) != sizeof(child->nonce))
		child->nonce = now ^ (uint64_t)getpid() << 40;
	status = open_socket(child);
	if (status != TRIB_OK) {
		child_free(child);
		return status;
	}
	*out = child;
	return TRIB_OK;
}

static struct wire_control address_to(const struct sparse_child *child, uint8_t type)
{
	return (struct wire_control){ .type = type,
		                      .cookie = child->welcome.cookie,
		                      .job = child->options.job,
		                      .comm = child->welcome.comm,
		                      .epoch = child->welcome.epoch,
		                      .child = (uint8_t)child->options.rank,
		                      .token = child->token };
}

static void say_bye(struct sparse_child *child)
{
	struct wire_control bye = address_to(child, WIRE_BYE);

	child_send_control(child, &bye, sizeof(bye));
}

void child_close(struct sparse_child *child)
{
	if (!child)
		return;
	if (child->state == CHILD_JOINED)
		for (unsigned i = 0; i < BYES_AT_ONCE; i++)
			say_bye(child);
	child_free(child);
}

void child_abort(struct sparse_child *child, const char *sentence)
{
	struct {
		struct wire_control header;
		struct wire_abort abort;
	} packet = { .header = address_to(child, WIRE_ABORT),
		     .abort = { .rank = child->options.rank, .status = TRIB_ERR_PEER } };

	if (child->state == CHILD_JOINED) {
		snprintf(packet.abort.text, sizeof(packet.abort.text), "%.*s",
		         (int)sizeof(packet.abort.text) - 1, sentence);
		/* If it is lost, the others hear from their server. */
		child_send_control(child, &packet, sizeof(packet));
	}
	child_fail(child, TRIB_ERR_PEER, "%s", sentence);
}

/* ---- small questions ---- */

int child_fd(const struct sparse_child *child)
{
	return child->fd;
}

enum child_state child_state(const struct sparse_child *child)
{
	return child->state;
}

const struct wire_welcome *child_welcome(const struct sparse_child *child)
{
	return &child->welcome;
}

trib_status child_failure(const struct sparse_child *child, const char **sentence)
{
	*sentence = child->why;
	return child->status;
}

/* ---- what is due ---- */

static void note_error(struct sparse_child *child, int error)
{
	if (error == -ECONNREFUSED)
		closed_port_hint(&child->closed, clock_now());
	else if (error == -EMSGSIZE && child->state == CHILD_JOINED)
		child_fail(child, TRIB_ERR_SYSTEM, "the path's MTU to %s has shrunk below %u bytes",
		           child->address, child->welcome.payload + WIRE_HEADER);
}

void child_send_control(struct sparse_child *child, void *packet, uint32_t bytes)
{
	wire_seal(packet, bytes);
	if (send(child->fd, packet, bytes, MSG_DONTWAIT) < 0) {
		log_debug("to the aggregator at %s: %s", child->address, strerror(errno));
		note_error(child, -errno);
	}
}

static void send_heartbeat(struct sparse_child *child, uint64_t now)
{
	uint64_t every = (uint64_t)child->welcome.dead_after_ms * 1000000 / 10;
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet = { .header = address_to(child, WIRE_REPORT),
		     .report = { .stamp = (uint32_t)(now / 1000) | 1, .serial = now } };

	if (every > HEARTBEAT_MAX)
		every = HEARTBEAT_MAX;
	packet.header.flags = WIRE_AT_REST;
	child->ask_at = now + (child->greeted ? every : GREET_EVERY);
	child_send_control(child, &packet, wire_cut(&packet));
}

static void check_silence(struct sparse_child *child, uint64_t now)
{
	uint64_t limit = (uint64_t)child->welcome.dead_after_ms * 1000000;

	if (limit < SILENT_LEAST)
		limit = SILENT_LEAST;
	if (now > child->stepped_at + GAP_MAX) /* this process stood still, not the aggregator */
		child->heard_at += now - child->stepped_at;
	if (now > child->heard_at + limit)
		child_fail(child, TRIB_ERR_AGGREGATOR,
		           "the aggregator at %s has been silent for %.1f s", child->address,
		           (double)(now - child->heard_at) / 1e9);
}

/* A JOIN or a heartbeat is a probe: the aggregator answers it. */
static void check_closed(struct sparse_child *child, uint64_t now)
{
	closed_port_heard(&child->closed, child->heard_at);
	if (child->heard && closed_port_is_proven(&child->closed, now, CLOSED_PROBES))
		child_fail(child, TRIB_ERR_AGGREGATOR,
		           "the aggregator at %s has ended: its port is closed", child->address);
	else if (closed_port_probes(&child->closed, now))
		child->ask_at = now;
}

static void send_due(struct sparse_child *child, uint64_t now)
{
	if (child->state == CHILD_JOINING)
		child_ask(child, now);
	else if (child->state == CHILD_JOINED)
		send_heartbeat(child, now);
}

uint64_t child_step(struct sparse_child *child, uint64_t now)
{
	if (child->state == CHILD_JOINING && now >= child->deadline)
		child_give_up(child);
	else if (child->state == CHILD_JOINED)
		check_silence(child, now);
	if (child->state == CHILD_JOINING || child->state == CHILD_JOINED)
		check_closed(child, now);
	child->stepped_at = now;
	if (now >= child->ask_at)
		send_due(child, now);
	if (child->state == CHILD_FAILED)
		return UINT64_MAX;
	if (child->closed.since && child->ask_at > now + CLOSED_PROBE_EVERY)
		return now + CLOSED_PROBE_EVERY;
	return child->ask_at;
}

/* ---- receiving ---- */

static bool is_ours(const struct sparse_child *child, const struct wire_control *control)
{
	if (control->job != child->options.job)
		return false;
	if (child->state != CHILD_JOINED)
		return control->cookie == child->options.cookie &&
		       control->child == child->options.rank;
	return control->cookie == child->welcome.cookie && control->comm == child->welcome.comm &&
	       control->epoch == child->welcome.epoch &&
	       (control->child == child->options.rank || control->child == WIRE_ALL);
}

static void take_abort(struct sparse_child *child, const struct wire_abort *abort)
{
	child_fail(child, abort->status < 0 ? (trib_status)abort->status : TRIB_ERR_PEER, "%s",
	           abort->text);
}

static void take_control(struct sparse_child *child, const struct wire_control *control,
                         uint32_t bytes, uint64_t now)
{
	if (!is_ours(child, control))
		return;
	if (control->token)
		child->token = control->token;
	if (control->type == WIRE_WELCOME && child->state == CHILD_JOINING)
		child_take_welcome(child, wire_payload(control), bytes, now);
	else if (control->type == WIRE_ABORT)
		take_abort(child, wire_payload(control));
	else if (control->type == WIRE_BYE && control->child == WIRE_ALL)
		child->ask_at = 0; /* the aggregator asks whether this child is there */
	child->greeted |= control->type == WIRE_STATUS;
	child->heard_at = now;
}

static void take_fragment(struct sparse_child *child, const struct child_listener *listener,
                          const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	struct wire_unsent unsent = { .proof = child->proof };

	if (child->state != CHILD_JOINED || header->type != WIRE_RESULT ||
	    header->comm != child->welcome.comm ||
	    (header->child != WIRE_ALL && header->child != child->options.rank))
		return;
	unsent.pos = wire_pos(0, listener->position(listener->context, header));
	if (!wire_is_intact(header, bytes, &unsent))
		return;
	child->heard_at = now;
	listener->take(listener->context, header, bytes, now);
}

static void take_message(struct sparse_child *child, const struct child_listener *listener,
                         const struct udp_message *message, uint64_t now)
{
	uint32_t step = message->segment;

	if (!step || (message->bytes > step && step % 8))
		return; /* the second packet would not be aligned */
	for (uint32_t at = 0; at < message->bytes; at += step) {
		const struct wire_header *header = (const void *)(message->data + at);
		uint32_t left = message->bytes - at;
		uint32_t bytes = left < step ? left : step;

		if (wire_parse(header, bytes) != WIRE_SOUND)
			continue;
		if (wire_is_fragment(header))
			take_fragment(child, listener, header, bytes, now);
		else
			take_control(child, wire_control(header), bytes, now);
	}
}

bool child_receive(struct sparse_child *child, const struct child_listener *listener, uint64_t now)
{
	for (unsigned pass = 0; pass < RECEIVE_PASSES; pass++) {
		int n = udp_receive(child->rx, child->fd);

		if (n < 0)
			note_error(child, n);
		if (n <= 0)
			return false;
		for (int i = 0; i < n; i++)
			take_message(child, listener, udp_message(child->rx, i), now);
		if (!udp_rx_was_full(child->rx))
			return false;
	}
	return true;
}

/* ---- sending ---- */

void *child_room(struct sparse_child *child)
{
	return child->state == CHILD_JOINED && child->n < CHILD_BATCH && !child->is_full ? child->at
	                                                                                 : NULL;
}

void child_add(struct sparse_child *child, uint32_t bytes, uint64_t position)
{
	struct wire_header *header = (void *)child->at;
	struct wire_unsent unsent = { .proof = child->proof, .pos = wire_pos(0, position) };

	header->type = WIRE_DATA;
	header->comm = child->welcome.comm;
	header->child = (uint8_t)child->options.rank;
	wire_seal_fragment(header, bytes, &unsent);
	child->bytes[child->n++] = bytes;
	child->at += bytes;
}

/* Neighbours of one length leave as one message; the last may be shorter. */
static void add_messages(struct sparse_child *child)
{
	const uint8_t *at = child->batch, *from = at;
	unsigned first = 0;

	for (unsigned i = 0; i < child->n; i++) {
		const uint32_t *bytes = child->bytes;

		at += bytes[i];
		if (i + 1 < child->n && bytes[i] == bytes[first] && bytes[i + 1] <= bytes[first] &&
		    i + 1 - first < UDP_GSO_SEGMENTS &&
		    (uint32_t)(at - from) + bytes[first] <= UDP_GSO_BYTES)
			continue;
		udp_tx_add(child->tx, from, (uint32_t)(at - from), bytes[first], NULL);
		from = at;
		first = i + 1;
	}
}

void child_flush(struct sparse_child *child)
{
	int error;

	if (!child->n)
		return;
	if (!child->is_full)
		add_messages(child);
	error = udp_send(child->tx, child->fd);
	child->is_full = error == -EAGAIN;
	if (child->is_full)
		return;
	udp_tx_clear(child->tx); /* after an error the rest counts as lost */
	child->n = 0;
	child->at = child->batch;
	if (error)
		note_error(child, error);
}

bool child_is_full(const struct sparse_child *child)
{
	return child->is_full;
}
