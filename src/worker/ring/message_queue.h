/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between ranks, queues of them, and a pool: messages that are not needed wait there for
 * the next call. The heap would often get new pages from the kernel for long ones.
 *
 * A message for several ranks is written once: each rank gets a handle (message_again).
 */
#ifndef TRIB_WORKER_RING_MESSAGE_QUEUE_H
#define TRIB_WORKER_RING_MESSAGE_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define POOL_HEAD 64u        /* bytes of a message's own head, beside its vector */
#define POOL_LEAST 12u       /* log2 of the shortest vector's room in a pool: 4 KiB */
#define POOL_LISTS 10u       /* each one of messages twice as long */
#define POOL_MOST (4u << 20) /* bytes that wait in a pool */

struct message {
	struct message *next;
	struct message_pool *pool; /* NULL: of none */
	struct message *content;   /* of a handle: the message with the data; NULL: it is none */
	unsigned handles;          /* that have this message as their content */
	uint32_t bytes;
	uint8_t list; /* of the pool */
	_Alignas(8) uint8_t data[];
};

struct message_queue {
	struct message *first, **end;
};

/* Zeroed memory is an empty pool. */
struct message_pool {
	struct message *lists[POOL_LISTS];
	size_t waits; /* bytes */
};

static inline void queue_init(struct message_queue *queue)
{
	*queue = (struct message_queue){ .end = &queue->first };
}

/* Bytes of the messages in a list: vectors are often a power of two, and each has a head. */
static inline uint32_t pool_room(unsigned list)
{
	return POOL_HEAD + (1u << (POOL_LEAST + list));
}

/* Its data is not initialized; NULL: no memory. `pool`: where it goes when it is freed, or NULL. */
static inline struct message *message_new(struct message_pool *pool, uint32_t bytes)
{
	struct message *message;
	unsigned list = 0;

	while (list < POOL_LISTS && bytes > pool_room(list))
		list++;
	if (!pool || list == POOL_LISTS) {
		message = malloc(sizeof(*message) + bytes);
		pool = NULL;
	} else if ((message = pool->lists[list])) {
		pool->lists[list] = message->next;
		pool->waits -= pool_room(list);
	} else {
		message = malloc(sizeof(*message) + pool_room(list));
	}
	if (message)
		*message = (struct message){ .pool = pool, .bytes = bytes, .list = (uint8_t)list };
	return message;
}

/* Nobody has the message any more. */
static inline void pool_put(struct message *message)
{
	struct message_pool *pool = message->pool;
	size_t bytes = pool ? pool_room(message->list) : 0;

	if (!pool || pool->waits + bytes > POOL_MOST) {
		free(message);
		return;
	}
	message->next = pool->lists[message->list];
	pool->lists[message->list] = message;
	pool->waits += bytes;
}

/* Frees a message, or a handle. A content that has handles stays until the last one is freed. */
static inline void message_free(struct message *message)
{
	while (message) {
		struct message *content = message->content;

		if (message->handles) {
			message->handles--;
			return;
		}
		pool_put(message);
		message = content;
	}
}

/* A handle: `content` once more, without a copy. NULL: no memory. The content does not change any
 * more, and is no handle. */
static inline struct message *message_again(struct message *content)
{
	struct message *handle = message_new(content->pool, 0);

	if (!handle)
		return NULL;
	handle->content = content;
	handle->bytes = content->bytes;
	content->handles++;
	return handle;
}

/* The data of a message, or of a handle. */
static inline const uint8_t *message_data(const struct message *message)
{
	return message->content ? message->content->data : message->data;
}

/* No message of the pool is in use. */
static inline void pool_free(struct message_pool *pool)
{
	for (unsigned list = 0; list < POOL_LISTS; list++)
		while (pool->lists[list]) {
			struct message *message = pool->lists[list];

			pool->lists[list] = message->next;
			free(message);
		}
	pool->waits = 0;
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
		message_free(message);
}

/* The message that this memory is the data of. */
static inline struct message *message_of(void *data)
{
	return (void *)((uint8_t *)data - offsetof(struct message, data));
}

#endif
