/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_ring: work requests for a queue that another thread holds at the moment. Any thread adds
 * without waiting. Only the holder of the queue takes, so the requests of each thread keep their
 * order. Lock-free: a thread that stops in the middle of adding delays only what was added after
 * it, until it goes on.
 *
 * The ring has numbers of entries only. The caller has `capacity` places for what they mean: entry
 * n is at place n modulo capacity.
 *
 * No entry is forgotten, if the threads keep to this: after adding, a thread calls work_ring_calls,
 * and if it can then have the queue without waiting, it takes. A holder takes, lets the queue go,
 * calls work_ring_calls, and does the same.
 */
#ifndef TRIB_PATH_VERBS_WORK_RING_H
#define TRIB_PATH_VERBS_WORK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct work_ring {
	/* For each place: n: it is free for entry n; n + 1: entry n is there. */
	_Atomic uint64_t *turns;
	uint32_t capacity;     /* a power of 2 */
	_Atomic uint64_t tail; /* the next entry to add */
	_Atomic uint64_t head; /* the next entry to take */
	atomic_uint calls;     /* orders adding, letting go and looking */
};

static inline void work_ring_init(struct work_ring *ring, _Atomic uint64_t *turns,
                                  uint32_t capacity)
{
	ring->turns = turns;
	ring->capacity = capacity;
	atomic_init(&ring->tail, 0);
	atomic_init(&ring->head, 0);
	atomic_init(&ring->calls, 0);
	for (uint32_t i = 0; i < capacity; i++)
		atomic_init(&turns[i], i);
}

static inline _Atomic uint64_t *work_ring_turn(const struct work_ring *ring, uint64_t entry)
{
	return &ring->turns[entry & (ring->capacity - 1)];
}

/* An entry for the caller to fill in. False: the ring is full. */
static inline bool work_ring_claim(struct work_ring *ring, uint64_t *entry)
{
	*entry = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	for (;;) {
		uint64_t turn =
			atomic_load_explicit(work_ring_turn(ring, *entry), memory_order_acquire);

		if ((int64_t)(turn - *entry) < 0)
			return false;
		if (turn != *entry)
			*entry = atomic_load_explicit(&ring->tail, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(&ring->tail, entry, *entry + 1,
		                                               memory_order_relaxed,
		                                               memory_order_relaxed))
			return true;
	}
}

/* The entry is filled in. */
static inline void work_ring_add(struct work_ring *ring, uint64_t entry)
{
	atomic_store_explicit(work_ring_turn(ring, entry), entry + 1, memory_order_release);
}

/* The oldest entry, if it is filled in. */
static inline bool work_ring_next(const struct work_ring *ring, uint64_t *entry)
{
	*entry = atomic_load_explicit(&ring->head, memory_order_relaxed);
	return atomic_load_explicit(work_ring_turn(ring, *entry), memory_order_acquire) ==
	       *entry + 1;
}

/* The holder has taken what work_ring_next gave it. */
static inline void work_ring_take(struct work_ring *ring, uint64_t entry)
{
	atomic_store_explicit(&ring->head, entry + 1, memory_order_relaxed);
	atomic_store_explicit(work_ring_turn(ring, entry), entry + ring->capacity,
	                      memory_order_release);
}

/* For the holder: has no thread an entry here, filled in or not? */
static inline bool work_ring_is_empty(const struct work_ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_relaxed) ==
	       atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

/* Is there an entry to take? All calls have one order, so of two threads the later one sees what
 * the earlier one has done before its call. */
static inline bool work_ring_calls(struct work_ring *ring)
{
	uint64_t entry;

	atomic_fetch_add_explicit(&ring->calls, 1, memory_order_acq_rel);
	return work_ring_next(ring, &entry);
}

#endif
