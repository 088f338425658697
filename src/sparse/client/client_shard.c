/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_shard.h"

#include "base/clock.h"
#include "base/log.h"
#include "sparse/client/client_answers.h"
#include "sparse/client/client_hot.h"
#include "sparse/client/client_queue.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKOFF_LEAST (20 * NSEC_PER_SEC / 1000)
#define BACKOFF_MOST NSEC_PER_SEC
#define ATTEMPT_NS (5 * NSEC_PER_SEC) /* 5 s: longest time until a server welcomes */
#define RECEIVE_BYTES (256u << 10)
#define SEND_VECTORS 16

/* ---- connecting ---- */

/* The connection is lost: it is tried again after a while. */
static void shard_lose(struct shard *shard, uint64_t now, const char *why)
{
	if (shard->fd >= 0)
		close(shard->fd);
	shard->fd = -1;
	/*
	 * The server may have closed before its BYE was read. Or it died before BYE was in its log:
	 * then workers with a bound would wait for this one, so it says BYE again.
	 */
	if (shard->state == SHARD_LEFT || (shard->says_bye && !client_is_awaited(shard->table))) {
		shard->state = SHARD_LEFT;
		pthread_cond_broadcast(&shard->table->changed);
		return;
	}
	if (why) {
		snprintf(shard->trouble, sizeof(shard->trouble), "%s", why);
		shard->was_refused = false;
	}
	if (shard->state == SHARD_OPEN)
		log_info("shard %u (%s) is lost: %s", shard->number, shard->address_text,
		         shard->trouble);
	shard->state = SHARD_APART;
	shard->backoff = shard->backoff ? shard->backoff * 2 : BACKOFF_LEAST;
	if (shard->backoff > BACKOFF_MOST)
		shard->backoff = BACKOFF_MOST;
	shard->retry_at = now + shard->backoff;
	buffer_free(&shard->in);
	buffer_free(&shard->control);
	shard->unsent = NULL;
	shard->says_bye = false;
}

void shard_leave(struct shard *shard)
{
	shard->says_bye = message_add_short(&shard->control, MESSAGE_BYE, 0, 0);
}

static void shard_connect(struct shard *shard, uint64_t now)
{
	int fd = tcp_begin(&shard->address);

	if (fd < 0) {
		shard_lose(shard, now, strerror(-fd));
		return;
	}
	tcp_share(fd);
	shard->fd = fd;
	shard->state = SHARD_CONNECTING;
	shard->deadline = now + ATTEMPT_NS;
}

/* The socket is connected, or has failed. */
static void shard_greet(struct shard *shard, uint64_t now)
{
	struct message_hello hello = shard->table->hello;
	int error = tcp_wait(shard->fd, 0);

	if (error) {
		shard_lose(shard, now, strerror(error));
		return;
	}
	if (!shard->was_refused) /* else the cause stands until the server says another */
		shard->trouble[0] = '\0';
	hello.shard = shard->number;
	hello.acknowledged = shard->acknowledged;
	hello.clock = shard->table->told;
	shard->state = SHARD_GREETING;
	if (!message_add_hello(&shard->control, shard->table->client, &hello))
		shard_lose(shard, now, "no memory");
}

uint64_t shard_step(struct shard *shard, uint64_t now)
{
	switch (shard->state) {
	case SHARD_APART:
		if (now < shard->retry_at)
			return shard->retry_at;
		shard_connect(shard, now);
		return shard->state == SHARD_APART ? shard->retry_at : shard->deadline;
	case SHARD_CONNECTING:
	case SHARD_GREETING:
		if (now < shard->deadline)
			return shard->deadline;
		shard_lose(shard, now,
		           shard->state == SHARD_CONNECTING ? "no connection within 5 s"
		                                            : "no WELCOME within 5 s");
		return shard->retry_at;
	default:
		return UINT64_MAX;
	}
}

/* ---- sending ---- */

static bool has_to_send(const struct shard *shard)
{
	return buffer_bytes(&shard->control) || (shard->state == SHARD_OPEN && shard->unsent);
}

short shard_events(const struct shard *shard)
{
	if (shard->state == SHARD_CONNECTING)
		return POLLOUT;
	return (short)(POLLIN | (has_to_send(shard) ? POLLOUT : 0));
}

/* Control messages go first, but not into the middle of a message. */
static unsigned vectors_fill(struct shard *shard, struct iovec *vectors)
{
	struct outgoing *item = shard->state == SHARD_OPEN ? shard->unsent : NULL;
	size_t at = shard->unsent_at;
	unsigned n = 0;

	if (!at && buffer_bytes(&shard->control)) {
		vectors[0] = (struct iovec){ buffer_front(&shard->control),
			                     buffer_bytes(&shard->control) };
		return 1;
	}
	while (item && n < SEND_VECTORS) {
		vectors[n++] = (struct iovec){ buffer_front(&item->bytes) + at,
			                       buffer_bytes(&item->bytes) - at };
		at = 0;
		if (buffer_bytes(&shard->control))
			break;
		do
			item = item->next;
		while (item && item->is_sent);
	}
	return n;
}

static void bytes_sent(struct shard *shard, size_t n)
{
	shard->table->stats.server_bytes_sent += n;
	if (!shard->unsent_at && buffer_bytes(&shard->control)) {
		buffer_consume(&shard->control, n);
		return;
	}
	while (n) {
		size_t left = buffer_bytes(&shard->unsent->bytes) - shard->unsent_at;

		if (n < left) {
			shard->unsent_at += n;
			return;
		}
		n -= left;
		queue_sent(shard);
	}
}

void shard_send(struct shard *shard, uint64_t now)
{
	while (shard->state >= SHARD_GREETING && shard->fd >= 0 && has_to_send(shard)) {
		struct iovec vectors[SEND_VECTORS];
		unsigned n = vectors_fill(shard, vectors);
		int64_t sent = tcp_send(shard->fd, vectors, n);

		if (sent < 0)
			shard_lose(shard, now, strerror((int)-sent));
		if (sent <= 0)
			return;
		bytes_sent(shard, (size_t)sent);
	}
}

/* ---- receiving ---- */

/* Handles the messages that are complete. False: the connection is of no more use. */
static bool messages_take(struct shard *shard)
{
	while (buffer_bytes(&shard->in) >= MESSAGE_HEADER && shard->fd >= 0) {
		struct message_header header;
		struct message message;
		size_t bytes;

		if (message_header_read(buffer_front(&shard->in), &header) != TRIB_OK)
			return false;
		bytes = MESSAGE_HEADER + header.bytes;
		if (buffer_bytes(&shard->in) < bytes)
			return true;
		if (message_parse(&header, buffer_front(&shard->in) + MESSAGE_HEADER, &message) !=
		            TRIB_OK ||
		    answer_take(shard, &message) != TRIB_OK)
			return false;
		if (shard->fd >= 0)
			buffer_consume(&shard->in, bytes);
	}
	return true;
}

static void shard_receive(struct shard *shard, uint64_t now)
{
	ssize_t n;

	if (!buffer_reserve(&shard->in, RECEIVE_BYTES)) {
		shard_lose(shard, now, "no memory");
		return;
	}
	n = recv(shard->fd, shard->in.data + shard->in.used, RECEIVE_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		const char *why = n ? strerror(errno) : "the server closed the connection";

		shard_lose(shard, now, shard->was_refused ? NULL : why);
		return;
	}
	shard->in.used += (size_t)n;
	shard->table->stats.server_bytes_received += (uint64_t)n;
	if (!messages_take(shard))
		client_fail(shard->table, TRIB_ERR_REFUSED, "shard %u (%s) answered with %s",
		            shard->number, shard->address_text, trib_last_error());
}

void shard_serve(struct shard *shard, short events, uint64_t now)
{
	if (shard->state == SHARD_CONNECTING) {
		if (events)
			shard_greet(shard, now);
		return;
	}
	if (events & (POLLIN | POLLHUP | POLLERR))
		shard_receive(shard, now);
}

void shard_free(struct shard *shard)
{
	client_hot_end(shard);
	if (shard->fd >= 0)
		close(shard->fd);
	buffer_free(&shard->in);
	buffer_free(&shard->control);
	while (shard->first)
		queue_remove(shard, shard->first);
}
