/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_queue: the future events, as a heap with four children per node, which fill one or
 * two cache lines. The usual operation replaces the first event by that slot's next event,
 * which seldom sinks far.
 */
#ifndef TRIB_SIM_EVENT_QUEUE_H
#define TRIB_SIM_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct queue_entry {
	double time;
	uint32_t order; /* breaks ties: the lowest first */
	uint32_t slot;
};

struct queue {
	struct queue_entry *entries;
	uint32_t n;
};

static inline bool queue_before(const struct queue_entry *a, const struct queue_entry *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static inline void queue_sink(struct queue *queue, uint32_t at, struct queue_entry entry)
{
	struct queue_entry *entries = queue->entries;

	for (;;) {
		uint32_t first = 4 * at + 1, last = first + 4, best = first;

		if (first >= queue->n)
			break;
		if (last > queue->n)
			last = queue->n;
		for (uint32_t i = first + 1; i < last; i++)
			if (queue_before(&entries[i], &entries[best]))
				best = i;
		if (!queue_before(&entries[best], &entry))
			break;
		entries[at] = entries[best];
		at = best;
	}
	entries[at] = entry;
}

/* Replaces the first event by the same slot's next event. */
static inline void queue_replace(struct queue *queue, double time)
{
	struct queue_entry entry = queue->entries[0];

	entry.time = time;
	queue_sink(queue, 0, entry);
}

static inline void queue_pop(struct queue *queue)
{
	queue->n--;
	if (queue->n)
		queue_sink(queue, 0, queue->entries[queue->n]);
}

static inline void queue_push(struct queue *queue, struct queue_entry entry)
{
	uint32_t at = queue->n++;

	while (at) {
		uint32_t above = (at - 1) / 4;

		if (!queue_before(&entry, &queue->entries[above]))
			break;
		queue->entries[at] = queue->entries[above];
		at = above;
	}
	queue->entries[at] = entry;
}

/* Restores the heap after `order` fields have changed. */
static inline void queue_restore(struct queue *queue)
{
	for (uint32_t at = queue->n / 4 + 1; at-- > 0;)
		if (at < queue->n)
			queue_sink(queue, at, queue->entries[at]);
}

#endif
