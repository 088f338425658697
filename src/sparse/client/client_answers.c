/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_answers.h"

#include "sparse/client/client_hot.h"
#include "sparse/client/client_queue.h"
#include "sparse/client/client_shard.h"

#include <inttypes.h>
#include <stdio.h>

static trib_status unexpected(const struct message *message)
{
	return status_fail(TRIB_ERR_REFUSED, "an unexpected %s message",
	                   message_name(message->kind));
}

static trib_status welcome_take(struct shard *shard, const struct message *message)
{
	if (shard->state != SHARD_GREETING)
		return unexpected(message);
	if (message->number < shard->acknowledged || message->number > shard->pushes) {
		client_fail(shard->table, TRIB_ERR_REFUSED,
		            "shard %u (%s) has lost data: it knows pushes of this worker up to "
		            "%" PRIu64 ", and had acknowledged %" PRIu64 " of %" PRIu64,
		            shard->number, shard->address_text, message->number,
		            shard->acknowledged, shard->pushes);
		return TRIB_OK;
	}
	shard->state = SHARD_OPEN;
	shard->was_open = true;
	shard->backoff = 0;
	shard->trouble[0] = '\0';
	shard->was_refused = false;
	queue_rewind(shard, message->number);
	client_hot_connected(shard);
	if (shard->table->is_leaving)
		shard_leave(shard);
	pthread_cond_broadcast(&shard->table->changed);
	return TRIB_OK;
}

static trib_status rows_take(struct shard *shard, const struct message *message)
{
	struct outgoing *pull = queue_find_pull(shard, message->number);
	size_t width = shard->table->width;

	if (!pull || !pull->is_sent || pull->n != message->count || message->width != width)
		return status_fail(TRIB_ERR_REFUSED, "%u rows of width %u that nobody asked for",
		                   message->count, message->width);
	for (uint32_t i = 0; pull->request->rows && i < pull->n; i++)
		message_values(message, pull->request->rows + pull->places[i] * width, i * width,
		               width);
	queue_remove(shard, pull);
	return TRIB_OK;
}

static void trouble_set(struct shard *shard, const struct message *message)
{
	snprintf(shard->trouble, sizeof(shard->trouble), "%.*s", (int)message->count,
	         message->text);
}

static void refused_take(struct shard *shard, const struct message *message)
{
	shard->was_refused = message->flags & MESSAGE_FOR_NOW;
	if (shard->was_refused)
		trouble_set(shard, message);
	else
		client_fail(shard->table, TRIB_ERR_REFUSED, "shard %u (%s) refuses: %.*s",
		            shard->number, shard->address_text, (int)message->count, message->text);
}

static void notice_take(struct shard *shard, const struct message *message)
{
	if (message->flags & MESSAGE_FATAL)
		client_fail(shard->table, TRIB_ERR_PEER, "%.*s", (int)message->count,
		            message->text);
	else
		trouble_set(shard, message);
}

static trib_status clock_take(struct shard *shard, const struct message *message)
{
	if (message->number > shard->lowest_clock)
		shard->lowest_clock = message->number;
	shard->slowest = message->count;
	client_hot_clock(shard);
	pthread_cond_broadcast(&shard->table->changed);
	return TRIB_OK;
}

static trib_status ack_take(struct shard *shard, const struct message *message)
{
	shard->trouble[0] = '\0';
	if (queue_acknowledge(shard, message->number)) {
		client_hot_acked(shard, message->number, message->count);
		return TRIB_OK;
	}
	return status_fail(TRIB_ERR_REFUSED, "an ACK of push %" PRIu64 ", which was not sent",
	                   message->number);
}

static trib_status open_answer_take(struct shard *shard, const struct message *message)
{
	switch (message->kind) {
	case MESSAGE_ACK:
		return ack_take(shard, message);
	case MESSAGE_ROWS:
		return rows_take(shard, message);
	case MESSAGE_CLOCK:
		return clock_take(shard, message);
	case MESSAGE_HOT:
	case MESSAGE_MAP:
	case MESSAGE_SEALED:
		client_hot_message(shard, message);
		return TRIB_OK;
	case MESSAGE_BYE:
		shard->state = SHARD_LEFT;
		pthread_cond_broadcast(&shard->table->changed);
		return TRIB_OK;
	default:
		return unexpected(message);
	}
}

trib_status answer_take(struct shard *shard, const struct message *message)
{
	switch (message->kind) {
	case MESSAGE_WELCOME:
		return welcome_take(shard, message);
	case MESSAGE_REFUSED:
		refused_take(shard, message);
		return TRIB_OK;
	case MESSAGE_NOTICE:
		notice_take(shard, message);
		return TRIB_OK;
	default:
		return shard->state == SHARD_OPEN ? open_answer_take(shard, message)
		                                  : unexpected(message);
	}
}
