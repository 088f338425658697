/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No allocation and no lock per packet, and few system calls: the functions
 * that would be called are counted (the linker puts ours in between, see
 * meson.build), on all sides at once: the aggregator and two workers. What a
 * small vector costs, a 64 times larger one must cost too, but for what goes
 * by time: heartbeats, ticks, sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "desk.h"
#include "short.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#define RANKS 2
#define SMALL ((size_t)1 << 20)
#define LARGE ((size_t)64 << 20)
/* Requests, rounds and their neighbours: allocations may differ by so many between two calls. */
#define SLACK 40u
/* Locks go by time: the aggregator publishes its counters every 50 ms. */
#define LOCKS_A_SECOND 200u

/* ---- what is counted ---- */

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

		memset(vector, 1, work->bytes[i]); /* no page is touched for the first time */
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

/* That a count of 0 means none, and not that nothing was counted. */
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
	/* Loopback's packets are so large that only seven are joined in a message. */
	setenv("TRIB_MTU", "1500", 1);
	pthread_barrier_init(&work.barrier, NULL, RANKS);
	cluster_run(cluster, RANKS, &options, work_body, &work);
	pthread_barrier_destroy(&work.barrier);
	assert_true(large->packets > 30 * small->packets && large->packets > 10000);
	assert_true(small->allocations > 0); /* the request itself */
	assert_true(large->allocations <= small->allocations + SLACK);
	if (test_is_short()) /* a sanitizer's time: batches are as small as cores are slow */
		return;
	assert_true((double)large->locks <=
	            (double)small->locks + SLACK + LOCKS_A_SECOND * large->seconds);
	/* Each packet goes through a send and a receive, many at a time; in a tree once a level. */
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

/* What is kept for the case that an aggregator is lost costs as little. */
static void test_per_packet_kept(void **state)
{
	struct cluster nowhere = { .address = "127.0.0.1:1" };
	trib_options options = TRIB_OPTIONS_INIT;
	struct desk desk;

	(void)state;
	desk_start(&desk, 1, 1, false);
	options.controller = desk.address;
	count_costs(&nowhere, options);
	desk_stop(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_count),
		cmocka_unit_test(test_per_packet),
		cmocka_unit_test(test_per_packet_kept),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
