/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trib_options.exchange and key: ranks that introduce themselves by an allgather of the program.
 * They need no aggregator and no address, and they fail together.
 */
#include "cluster.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define RANKS 3
#define BYTES_MAX 4096

/* An allgather in this process. */
struct hall {
	pthread_barrier_t barrier;
	char parts[RANKS][BYTES_MAX];
	unsigned rounds;
};

struct seat {
	struct hall *hall;
	int rank;
};

static struct hall hall;

static int hall_exchange(void *context, const void *mine, void *all, size_t bytes)
{
	struct seat *seat = context;

	if (bytes > BYTES_MAX)
		return -1;
	memcpy(seat->hall->parts[seat->rank], mine, bytes);
	pthread_barrier_wait(&seat->hall->barrier);
	for (int r = 0; r < RANKS; r++)
		memcpy((char *)all + (size_t)r * bytes, seat->hall->parts[r], bytes);
	if (seat->rank == 0)
		seat->hall->rounds++;
	pthread_barrier_wait(&seat->hall->barrier);
	return 0;
}

static void begin(struct rank *rank, struct seat *seat)
{
	*seat = (struct seat){ &hall, rank->rank };
	rank->options.exchange = hall_exchange;
	rank->options.exchange_context = seat;
	if (!rank->cluster->address[0])
		rank->options.aggregator = NULL; /* nothing is named */
}

static void sum_is_right(trib_comm *comm, int rank)
{
	int32_t value = rank + 1;

	demand(trib_allreduce(comm, TRIB_IN_PLACE, &value, 1, TRIB_I32, TRIB_SUM) == TRIB_OK);
	demand(value == RANKS * (RANKS + 1) / 2);
}

/* Two communicators of one job at once, told apart by their keys. */
static void two_body(struct rank *rank)
{
	struct seat seat;
	trib_comm *first, *second;

	begin(rank, &seat);
	demand(trib_init(&first, &rank->options) == TRIB_OK);
	rank->options.key = 77;
	demand(trib_init(&second, &rank->options) == TRIB_OK);
	sum_is_right(second, rank->rank);
	sum_is_right(first, rank->rank);
	demand(trib_finalize(first) == TRIB_OK);
	sum_is_right(second, rank->rank);
	demand(trib_finalize(second) == TRIB_OK);
}

static void test_without_aggregator(void **state)
{
	const struct cluster nowhere = { .address = "" };

	(void)state;
	unsetenv("TRIB_COOKIE");
	cluster_run_bare(&nowhere, RANKS, NULL, two_body, NULL);
	cluster_environment();
}

static void test_with_aggregator(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run_bare(&cluster, RANKS, NULL, two_body, NULL);
	cluster_stop(&cluster);
}

/* Settings of one rank are wrong: all ranks hear it, and none waits. */
static void wrong_body(struct rank *rank)
{
	struct seat seat;
	trib_comm *comm;

	begin(rank, &seat);
	if (rank->rank == 1)
		rank->options.lanes = 99; /* more than there are */
	demand(trib_init(&comm, &rank->options) != TRIB_OK);
	demand(comm == NULL && error_has("99 lanes"));
	demand(rank->rank == 1 || error_has("rank 1: "));
}

/* One rank knows an aggregator, which the others do not. */
static void odd_body(struct rank *rank)
{
	struct seat seat;
	trib_comm *comm;

	begin(rank, &seat);
	rank->options.aggregator = rank->rank == 2 ? "127.0.0.1:9" : NULL;
	demand(trib_init(&comm, &rank->options) == TRIB_ERR_CONFIG);
	demand(error_has("rank 2 knows an aggregator, rank 0 does not"));
}

/* Nobody listens at the aggregator: all fail at their deadline. */
static void gone_body(struct rank *rank)
{
	struct seat seat;
	trib_comm *comm;

	begin(rank, &seat);
	rank->options.aggregator = "127.0.0.1:9";
	rank->options.timeout_s = 0.5;
	demand(trib_init(&comm, &rank->options) != TRIB_OK && !comm);
}

static void test_together(void **state)
{
	const struct cluster nowhere = { .address = "" };

	(void)state;
	cluster_run_bare(&nowhere, RANKS, NULL, wrong_body, NULL);
	cluster_run_bare(&nowhere, RANKS, NULL, odd_body, NULL);
	hall.rounds = 0;
	cluster_run_bare(&nowhere, RANKS, NULL, gone_body, NULL);
	assert_int_equal(hall.rounds, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_aggregator),
		cmocka_unit_test(test_with_aggregator),
		cmocka_unit_test(test_together),
	};

	cluster_environment();
	pthread_barrier_init(&hall.barrier, NULL, RANKS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
