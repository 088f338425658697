/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No allocation and no lock for each packet, and few system calls. The linker replaces these
 * functions by counting ones (see meson.build), for the aggregator and two workers at once. A
 * vector 64 times larger must cost no more, except for time-driven work: heartbeats, ticks, sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "fake_controller.h"
#include "short.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#define RANKS 2
#define SMALL ((size_t)1 << 20)
#define LARGE ((size_t)64 << 20)
/* Allocations that may differ between two calls: requests, rounds and the like. */
#define SLACK 40u
/* Locks are taken by time: the aggregator publishes its counters every 50 ms. */
#define LOCKS_A_SECOND 200u

/* ---- counters ---- */

static _Atomic uint64_t allocations, locks, system_calls;
static _Atomic bool counting;

static void count(_Atomic uint64_t *what)
{
	if (atomic_load_explicit(&counting, memory_order_relaxed))
		atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

#define WRAP(counter, result, name, parameters, arguments) \
	result __real_##name parameters;                   \
	result __wrap_##name parameters;                   \
	result __wrap_##name parameters                    \
	{                                                  \
		count(&(counter));                         \
		return __real_##name arguments;            \
	}

WRAP(allocations, void *, malloc, (size_t size), (size))
WRAP(allocations, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(allocations, void *, realloc, (void *old, size_t size), (old, size))
WRAP(allocations, void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
WRAP(allocations, void, free, (void *old), (old))
WRAP(locks, int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
WRAP(system_calls, int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned n, int flags),
     (fd, messages, n, flags))
WRAP(system_calls, int, recvmmsg,
     (int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout),
     (fd, messages, n, flags, timeout))

/* ---- the work ---- */

struct cost {
	uint64_t allocations, locks, system_calls, packets;
	double seconds;
};

struct work {
	pthread_barrier_t barrier;
	size_t bytes[3];
	struct cost costs[3];
};

static uint64_t packets_of(struct rank *rank)
{
	trib_stats stats = { .struct_size = sizeof(stats) };

	demand(trib_get_stats(rank->comm, &stats) == TRIB_OK);
	return stats.sent_packets + stats.results;
}

static void work_body(struct rank *rank)
{
	struct work *work = rank->job;
	float *vector = calloc(LARGE, 1);

	demand(vector);
	for (unsigned i = 0; i < countof(work->bytes); i++) {
		struct cost *cost = &work->costs[i];
		uint64_t start, packets;

		memset(vector, 1, work->bytes[i]); /* touch every page before the measurement */
		demand(trib_barrier(rank->comm) == TRIB_OK);
		packets = packets_of(rank);
		pthread_barrier_wait(&work->barrier);
		start = clock_now();
		if (rank->rank == 0) {
			atomic_store(&allocations, 0);
			atomic_store(&locks, 0);
			atomic_store(&system_calls, 0);
			atomic_store(&counting, true);
		}
		pthread_barrier_wait(&work->barrier);
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, work->bytes[i] / 4,
		                      TRIB_F32, TRIB_SUM) == TRIB_OK);
		pthread_barrier_wait(&work->barrier);
		if (rank->rank == 0) {
			atomic_store(&counting, false);
			*cost = (struct cost){ atomic_load(&allocations), atomic_load(&locks),
				               atomic_load(&system_calls),
				               RANKS * (packets_of(rank) - packets),
				               (double)(clock_now() - start) / 1e9 };
			print_message("%zu bytes: %llu allocations, %llu locks, %llu system calls, "
			              "%llu packets, %.3f s\n",
			              work->bytes[i], (unsigned long long)cost->allocations,
			              (unsigned long long)cost->locks,
			              (unsigned long long)cost->system_calls,
			              (unsigned long long)cost->packets, cost->seconds);
		}
		pthread_barrier_wait(&work->barrier);
	}
	free(vector);
}

/* ---- small vectors ---- */

#define CALLS 200u
#define CALL_LOCKS 3u /* post, enter, finish */

static void small_body(struct rank *rank)
{
	struct work *work = rank->job;
	float vector[8] = { 1 };
	uint64_t start = 0;

	demand(trib_barrier(rank->comm) == TRIB_OK);
	pthread_barrier_wait(&work->barrier);
	if (rank->rank == 0) {
		atomic_store(&allocations, 0);
		atomic_store(&locks, 0);
		start = clock_now();
		atomic_store(&counting, true);
	}
	pthread_barrier_wait(&work->barrier);
	for (unsigned i = 0; i < CALLS; i++)
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, countof(vector), TRIB_F32,
		                      TRIB_MAX) == TRIB_OK);
	pthread_barrier_wait(&work->barrier);
	if (rank->rank == 0) {
		atomic_store(&counting, false);
		work->costs[0] = (struct cost){ .allocations = atomic_load(&allocations),
			                        .locks = atomic_load(&locks),
			                        .seconds = (double)(clock_now() - start) / 1e9 };
		print_message("%u calls of 32 bytes: %llu allocations, %llu locks, %.3f s\n", CALLS,
		              (unsigned long long)work->costs[0].allocations,
		              (unsigned long long)work->costs[0].locks, work->costs[0].seconds);
	}
	pthread_barrier_wait(&work->barrier);
}

/* What a small call does for itself is a large part of its time. */
static void test_small_call(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct work work = { .bytes = { 0 } };
	const struct cost *cost = &work.costs[0];
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	pthread_barrier_init(&work.barrier, NULL, RANKS);
	cluster_run(&cluster, RANKS, &options, small_body, &work);
	pthread_barrier_destroy(&work.barrier);
	cluster_stop(&cluster);
	/* A request and its round use the memory of those before. */
	assert_true(cost->allocations <= SLACK);
	assert_true((double)cost->locks <=
	            CALLS * RANKS * CALL_LOCKS + SLACK + 2 * LOCKS_A_SECOND * cost->seconds);
}

/* Proves that the counters work, so that a count of 0 means none. */
static void test_counters_count(void **state)
{
	static void *volatile kept;
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	(void)state;
	atomic_store(&counting, true);
	kept = malloc(10);
	free(kept);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	atomic_store(&counting, false);
	assert_int_equal(atomic_load(&allocations), 2);
	assert_int_equal(atomic_load(&locks), 1);
}

static void count_costs(const struct cluster *cluster, trib_options options)
{
	struct work work = { .bytes = { SMALL, SMALL, LARGE } }; /* the first one warms up */
	const struct cost *small = &work.costs[1], *large = &work.costs[2];

	options.pool_bytes = 2 * LARGE;
	/* Loopback's packets are so large that only seven fit in one message. */
	setenv("TRIB_MTU", "1500", 1);
	pthread_barrier_init(&work.barrier, NULL, RANKS);
	cluster_run(cluster, RANKS, &options, work_body, &work);
	pthread_barrier_destroy(&work.barrier);
	assert_true(large->packets > 30 * small->packets && large->packets > 10000);
	assert_true(small->allocations > 0); /* the request itself */
	assert_true(large->allocations <= small->allocations + SLACK);
	if (test_is_short()) /* with a sanitizer, cores are slow and batches are small */
		return;
	assert_true((double)large->locks <=
	            (double)small->locks + SLACK + LOCKS_A_SECOND * large->seconds);
	/* Each packet is sent and received once, many at a time; in a tree once for each level. */
	assert_true(large->system_calls > 0 &&
	            large->system_calls < large->packets / (getenv("TRIB_TEST_TREE") ? 4 : 8));
}

static void test_per_packet(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	count_costs(&cluster, (trib_options)TRIB_OPTIONS_INIT);
	cluster_stop(&cluster);
}

/* Keeping inputs for recovery costs no more. */
static void test_per_packet_kept(void **state)
{
	struct cluster nowhere = { .address = "127.0.0.1:1" };
	trib_options options = TRIB_OPTIONS_INIT;
	struct fake_controller controller;

	(void)state;
	fake_controller_start(&controller, 1, 1, false);
	options.controller = controller.address;
	count_costs(&nowhere, options);
	fake_controller_stop(&controller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_count),
		cmocka_unit_test(test_small_call),
		cmocka_unit_test(test_per_packet),
		cmocka_unit_test(test_per_packet_kept),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
