/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads post to one queue, as libtribverbs.so does: who finds it held, adds to the ring.
 * Each request comes out once, in the order of its thread, and none stays behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/verbs/work_ring.h"
#include "short.h"

#include <pthread.h>
#include <sched.h>

#define CAPACITY 8u
#define THREADS 4u
#define ROUND 4u /* requests of a thread */

struct request {
	unsigned thread;
	uint64_t number;
};

struct queue {
	struct work_ring ring;
	_Atomic uint64_t turns[CAPACITY];
	struct request waiting[CAPACITY];
	pthread_mutex_t lock;
	uint64_t seen[THREADS]; /* with the lock */
	bool wrong;             /* with the lock */
	atomic_uint went_by_ring;
	pthread_barrier_t pause;
	uint64_t rounds;
};

static void execute(struct queue *queue, const struct request *request)
{
	queue->wrong = queue->wrong || queue->seen[request->thread] != request->number;
	queue->seen[request->thread]++;
}

static void take_waiting(struct queue *queue)
{
	uint64_t entry;

	while (work_ring_next(&queue->ring, &entry)) {
		execute(queue, &queue->waiting[entry % CAPACITY]);
		work_ring_take(&queue->ring, entry);
	}
}

static void let_go(struct queue *queue)
{
	do {
		take_waiting(queue);
		sched_yield(); /* others add now, whatever the number of processors */
		pthread_mutex_unlock(&queue->lock);
	} while (work_ring_calls(&queue->ring) && pthread_mutex_trylock(&queue->lock) == 0);
}

static bool add(struct queue *queue, const struct request *request)
{
	uint64_t entry;

	if (!work_ring_claim(&queue->ring, &entry))
		return false;
	queue->waiting[entry % CAPACITY] = *request;
	work_ring_add(&queue->ring, entry);
	atomic_fetch_add(&queue->went_by_ring, 1);
	return true;
}

/* False: the ring is full. */
static bool post(struct queue *queue, const struct request *request)
{
	bool posted = true;

	if (pthread_mutex_trylock(&queue->lock) != 0) {
		posted = add(queue, request);
		if (!work_ring_calls(&queue->ring) || pthread_mutex_trylock(&queue->lock) != 0)
			return posted;
	} else {
		take_waiting(queue);
		if (work_ring_is_empty(&queue->ring))
			execute(queue, request);
		else
			posted = add(queue, request);
	}
	let_go(queue);
	return posted;
}

struct poster {
	struct queue *queue;
	unsigned thread;
};

/* After each round all threads pause: no later request takes out what was forgotten. */
static void *run(void *argument)
{
	const struct poster *poster = argument;
	struct queue *queue = poster->queue;

	for (uint64_t i = 0; i < queue->rounds * ROUND; i++) {
		while (!post(queue, &(struct request){ poster->thread, i }))
			;
		if (i % ROUND != ROUND - 1)
			continue;
		pthread_barrier_wait(&queue->pause);
		pthread_mutex_lock(&queue->lock);
		queue->wrong = queue->wrong || queue->seen[poster->thread] != i + 1;
		pthread_mutex_unlock(&queue->lock);
		pthread_barrier_wait(&queue->pause);
	}
	return NULL;
}

static void threads_lose_nothing(void **state)
{
	static struct queue queue;
	struct poster posters[THREADS];
	pthread_t threads[THREADS];

	(void)state;
	work_ring_init(&queue.ring, queue.turns, CAPACITY);
	pthread_mutex_init(&queue.lock, NULL);
	pthread_barrier_init(&queue.pause, NULL, THREADS);
	queue.rounds = test_count("rounds", 1000, 100);
	for (unsigned i = 0; i < THREADS; i++) {
		posters[i] = (struct poster){ &queue, i };
		assert_int_equal(pthread_create(&threads[i], NULL, run, &posters[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	print_message("%u of %llu requests went by the ring\n", queue.went_by_ring,
	              (unsigned long long)(THREADS * ROUND * queue.rounds));
	assert_false(queue.wrong);
	assert_true(work_ring_is_empty(&queue.ring));
}

static void a_full_ring_takes_no_more(void **state)
{
	struct work_ring ring;
	_Atomic uint64_t turns[CAPACITY];
	uint64_t entry, next;

	(void)state;
	work_ring_init(&ring, turns, CAPACITY);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < CAPACITY; i++) {
			assert_true(work_ring_claim(&ring, &entry));
			assert_int_equal(entry, round * CAPACITY + i);
			work_ring_add(&ring, entry);
		}
		assert_false(work_ring_claim(&ring, &entry));
		for (unsigned i = 0; i < CAPACITY; i++) {
			assert_true(work_ring_calls(&ring));
			assert_true(work_ring_next(&ring, &next));
			work_ring_take(&ring, next);
		}
		assert_false(work_ring_calls(&ring));
	}
}

/* A thread that stops before it has filled its entry in delays what comes after. */
static void an_entry_that_is_not_filled_in_is_not_taken(void **state)
{
	struct work_ring ring;
	_Atomic uint64_t turns[CAPACITY];
	uint64_t first, second, next;

	(void)state;
	work_ring_init(&ring, turns, CAPACITY);
	assert_true(work_ring_claim(&ring, &first));
	assert_true(work_ring_claim(&ring, &second));
	work_ring_add(&ring, second);
	assert_false(work_ring_next(&ring, &next));
	assert_false(work_ring_is_empty(&ring));
	work_ring_add(&ring, first);
	assert_true(work_ring_next(&ring, &next));
	assert_int_equal(next, first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_lose_nothing),
		cmocka_unit_test(a_full_ring_takes_no_more),
		cmocka_unit_test(an_entry_that_is_not_filled_in_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
