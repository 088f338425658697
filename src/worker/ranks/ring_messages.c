/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages stay in the buffer that they came in: this rank adds its part there, and the same buffer
 * goes to the next rank. A rank starts messages of its own only while few are on their way, so
 * those of other ranks are not held up. Ranks cannot block each other in a circle: a rank takes
 * messages as long as fewer than TAKE_BELOW wait to leave, and starts some only below
 * RING_START_BELOW, so there is always a rank that still takes some.
 */
#include "worker/ranks/ring_internal.h"
#include "worker/ranks/ring_abort.h"

#include "base/clock.h"

#include <string.h>

#define TAKE_BELOW 128u /* messages on their way to the next rank */
/* Ranks that wait ask who is late every 50 ms, and 5 ms later for each rank. */
#define ASK_NS 50000000ull
#define ASK_RANK_NS 5000000ull

static struct message *buffer_get(struct ring_thread *thread)
{
	struct message *buffer = queue_get(&thread->spare);

	if (!buffer)
		buffer = message_new(NULL, ring_message_max(&thread->ring));
	thread->no_memory |= !buffer;
	return buffer;
}

static void queue_out(struct ring_thread *thread, struct message *buffer)
{
	queue_put(&thread->ready, buffer);
	thread->n_out++;
}

/* ---- failures ---- */

bool ring_tell_failure(struct ring_thread *thread)
{
	struct ring_abort abort;
	struct message *buffer;

	if (!ring_abort_write(thread->comm, &abort))
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

static void offer(struct ring_thread *thread, struct message *buffer)
{
	trib_status status = TRIB_OK;

	ring_abort_take(thread->comm, buffer);
	if (atomic_load_explicit(&thread->comm->stop_ring, memory_order_relaxed)) {
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

void *ring_place(void *user, uint32_t message, uint32_t bytes)
{
	struct ring_thread *thread = user;
	struct message *buffer;

	(void)message;
	if (bytes > ring_message_max(&thread->ring) || !(buffer = buffer_get(thread)))
		return NULL;
	buffer->bytes = bytes;
	return buffer->data;
}

void ring_unplace(void *user, void *memory)
{
	struct ring_thread *thread = user;

	queue_put(&thread->spare, message_of(memory));
}

void ring_deliver(void *user, uint32_t message, void *memory, uint32_t bytes)
{
	struct message *buffer = message_of(memory);

	(void)message;
	buffer->bytes = bytes;
	offer(user, buffer);
}

void ring_take_posts(struct ring_thread *thread)
{
	struct round *round = ring_mail_take(thread->mail);
	struct message_queue again = { 0 };
	struct message *buffer;

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
	queue_init(&thread->aside);
	while ((buffer = again.first)) {
		again.first = buffer->next;
		offer(thread, buffer);
	}
}

void ring_start_messages(struct ring_thread *thread)
{
	while (thread->n_out < RING_START_BELOW) {
		struct message *buffer = buffer_get(thread);

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

uint64_t ring_ask_late(struct ring_thread *thread, uint64_t now)
{
	uint64_t every = ASK_NS + ASK_RANK_NS * thread->ring.size;
	struct message *buffer;

	atomic_store_explicit(&thread->comm->ring_waiting, thread->ring.late, memory_order_relaxed);
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

void ring_send_messages(struct ring_thread *thread)
{
	struct channel *channel = channel_of(thread->to);
	struct message *buffer;

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
void ring_grant(struct ring_thread *thread)
{
	struct channel *channel = channel_of(thread->from);
	uint32_t ahead = thread->granted - channel_delivered(channel);

	if (thread->n_out < TAKE_BELOW && ahead <= RING_CREDIT / 2) {
		channel_grant(channel, RING_CREDIT - ahead);
		thread->granted += RING_CREDIT - ahead;
	}
}
