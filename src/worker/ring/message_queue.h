/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks, and queues of them. */
#ifndef TRIB_WORKER_RING_MESSAGE_QUEUE_H
#define TRIB_WORKER_RING_MESSAGE_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct message {
	struct message *next;
	uint32_t bytes;
	_Alignas(8) uint8_t data[];
};

struct message_queue {
	struct message *first, **end;
};

static inline void queue_init(struct message_queue *queue)
{
	*queue = (struct message_queue){ .end = &queue->first };
}

/* Its data is not initialized; NULL: no memory. */
static inline struct message *message_new(uint32_t bytes)
{
	return malloc(sizeof(struct message) + bytes);
}

static inline void queue_put(struct message_queue *queue, struct message *message)
{
	message->next = NULL;
	*queue->end = message;
	queue->end = &message->next;
}

static inline struct message *queue_get(struct message_queue *queue)
{
	struct message *message = queue->first;

	if (message)
		queue->first = message->next;
	if (!queue->first)
		queue->end = &queue->first;
	return message;
}

static inline void queue_free(struct message_queue *queue)
{
	struct message *message;

	while ((message = queue_get(queue)))
		free(message);
}

/* The message that this memory is the data of. */
static inline struct message *message_of(void *data)
{
	return (void *)((uint8_t *)data - offsetof(struct message, data));
}

#endif
