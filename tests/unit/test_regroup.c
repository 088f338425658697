/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers join, leave and die between epochs, and aggregators die with them: every sum is over the
 * members.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "fake_controller.h"
#include "short.h"

#include <string.h>

#define AT_ONCE 3u
#define ELEMENTS 20000

struct job {
	struct fake_controller controller;
	unsigned epochs;
};

/* A worker of epochs born to born + AT_ONCE - 1. The first ones of epoch 0 leave earlier. */
struct worker {
	struct job *job;
	unsigned number;
	pthread_t thread;
};

static trib_options options_of(struct job *job)
{
	trib_options options = TRIB_OPTIONS_INIT;

	options.controller = job->controller.address;
	options.timeout_s = 20;
	return options;
}

/* Checks the sum of workers `first` to first + n - 1, each with its own value. */
static void check_sum(trib_comm *comm, unsigned number, unsigned first, unsigned n)
{
	uint64_t *vector = malloc(ELEMENTS * 8), expect = 0;

	demand(vector);
	demand(trib_size(comm) == (int)n);
	for (unsigned i = first; i < first + n; i++)
		expect += mix(i);
	for (unsigned k = 0; k < 3; k++) {
		for (size_t i = 0; i < ELEMENTS; i++)
			vector[i] = mix(number) + i;
		demand(trib_allreduce(comm, TRIB_IN_PLACE, vector, ELEMENTS, TRIB_U64, TRIB_SUM) ==
		       TRIB_OK);
		for (size_t i = 0; i < ELEMENTS; i++)
			demand(vector[i] == expect + n * i);
	}
	free(vector);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct job *job = worker->job;
	unsigned born = worker->number < AT_ONCE ? 0 : worker->number - AT_ONCE + 1;
	trib_options options = options_of(job);
	trib_comm *comm;

	if (worker->number < AT_ONCE) {
		options.has_rank = 1;
		options.rank = (int)worker->number;
		options.size = AT_ONCE;
	}
	demand(trib_init(&comm, &options) == TRIB_OK);
	/* Worker w is a member in epochs w - 2 to w: it joins when w - 3 leaves. */
	for (unsigned epoch = born; epoch < job->epochs; epoch++) {
		check_sum(comm, worker->number, epoch, AT_ONCE);
		if (epoch == worker->number)
			break;
		/*
		 * The next worker must ask before the epoch ends, or it would join an epoch later.
		 */
		for (unsigned i = 0;
		     epoch + 1 < job->epochs && !fake_controller_waiting(&job->controller); i++) {
			demand(i < 2000);
			nap_ms(5);
		}
		if (epoch + 1 < job->epochs)
			demand(trib_regroup(&comm) == TRIB_OK);
	}
	demand(trib_finalize(comm) == TRIB_OK);
	free(worker);
	return NULL;
}

static pthread_t worker_start(struct job *job, unsigned number)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	pthread_t thread;

	demand(worker);
	worker->job = job;
	worker->number = number;
	demand(pthread_create(&thread, NULL, worker_main, worker) == 0);
	return thread;
}

/* After each epoch one worker leaves and another joins. */
static void test_one_comes_one_leaves(void **state)
{
	struct job *job = calloc(1, sizeof(*job));
	pthread_t threads[64];

	(void)state;
	demand(job);
	job->epochs = test_is_short() ? 6 : 20;
	fake_controller_start(&job->controller, 3, 2, false);
	for (unsigned i = 0; i < job->epochs + AT_ONCE - 1; i++) {
		threads[i] = worker_start(job, i);
		/* Not before the epoch preceding its own, or it would join too early. */
		for (unsigned k = 0; i >= AT_ONCE - 1 && i + 1 < job->epochs + AT_ONCE - 1 &&
		                     fake_controller_generation(&job->controller) < i - AT_ONCE + 2;
		     k++) {
			demand(k < 4000);
			nap_ms(5);
		}
	}
	for (unsigned i = 0; i < job->epochs + AT_ONCE - 1; i++)
		demand(pthread_join(threads[i], NULL) == 0);
	assert_int_equal(fake_controller_generation(&job->controller), job->epochs);
	fake_controller_stop(&job->controller);
	free(job);
}

/* Runs `body` in ranks that a controller plans for. */
static void job_run(int ranks, void (*body)(struct rank *))
{
	struct job *job = calloc(1, sizeof(*job));
	struct cluster nowhere = { .address = "127.0.0.1:1" };
	trib_options options;

	demand(job);
	fake_controller_start(&job->controller, 2, 2, false);
	options = options_of(job);
	cluster_run(&nowhere, ranks, &options, body, job);
	fake_controller_stop(&job->controller);
	free(job);
}

/* Rank 1 leaves without notice: the others get an error, and continue as two. */
static void death_body(struct rank *rank)
{
	trib_status status;
	uint32_t one = 1;

	check_sum(rank->comm, (unsigned)rank->rank, 0, 3);
	if (rank->rank == 1) {
		/* It does not take part in the collective: for the others it is dead. */
		demand(trib_finalize(rank->comm) == TRIB_OK);
		rank->comm = NULL;
		return;
	}
	status = trib_allreduce(rank->comm, TRIB_IN_PLACE, &one, 1, TRIB_U32, TRIB_SUM);
	demand(status == TRIB_ERR_PEER && error_has("rank 1"));
	demand(trib_regroup(&rank->comm) == TRIB_OK);
	demand(trib_size(rank->comm) == 2 && trib_rank(rank->comm) == rank->rank / 2);
	one = 1;
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, &one, 1, TRIB_U32, TRIB_SUM) == TRIB_OK);
	demand(one == 2);
}

static void test_goes_on_without(void **state)
{
	(void)state;
	job_run(3, death_body);
}

/*
 * Rank 0 is gone, so rank 1 becomes rank 0, and is late for the next epoch. The other rank had
 * reported the dead rank 0: that report must not count for the new one.
 */
static void late_body(struct rank *rank)
{
	struct job *job = rank->job;
	uint32_t one = 1;

	check_sum(rank->comm, (unsigned)rank->rank, 0, 3);
	if (rank->rank == 0) {
		demand(trib_finalize(rank->comm) == TRIB_OK);
		rank->comm = NULL;
		return;
	}
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, &one, 1, TRIB_U32, TRIB_SUM) ==
	       TRIB_ERR_PEER);
	demand(trib_regroup(&rank->comm) == TRIB_OK);
	demand(trib_size(rank->comm) == 2 && trib_rank(rank->comm) == rank->rank - 1);
	/* It asks when the other one waits, or not at all if the other has got its plan alone. */
	while (rank->rank == 1 && !fake_controller_waiting(&job->controller) &&
	       fake_controller_generation(&job->controller) == 2)
		nap_ms(5);
	demand(trib_regroup(&rank->comm) == TRIB_OK);
	demand(trib_size(rank->comm) == 2 && trib_rank(rank->comm) == rank->rank - 1);
	check_sum(rank->comm, (unsigned)rank->rank, 1, 2);
}

static void test_numbers_of_the_plan(void **state)
{
	(void)state;
	job_run(3, late_body);
}

/* A worker leaves between two epochs, and the controller learns it late. */
static void bye_body(struct rank *rank)
{
	struct job *job = rank->job;

	check_sum(rank->comm, (unsigned)rank->rank, 0, 3);
	if (rank->rank == 2) {
		pthread_mutex_lock(&job->controller.lock);
		job->controller.lost_byes = 3;
		pthread_mutex_unlock(&job->controller.lock);
		demand(trib_finalize(rank->comm) == TRIB_OK);
		rank->comm = NULL;
		return;
	}
	demand(trib_regroup(&rank->comm) == TRIB_OK);
	check_sum(rank->comm, (unsigned)rank->rank, 0, 2);
}

static void test_lost_good_bye(void **state)
{
	(void)state;
	job_run(3, bye_body);
}

/*
 * All ranks but one have left when an aggregator dies. The last one asks for other trees, and is
 * told that it is alone. Nothing that it called has failed, so it leaves without an error.
 */
static void last_body(struct rank *rank)
{
	struct job *job = rank->job;

	check_sum(rank->comm, (unsigned)rank->rank, 0, 3);
	if (rank->rank == 2) {
		for (unsigned gone = 0; gone != 2;) {
			nap_ms(5);
			pthread_mutex_lock(&job->controller.lock);
			gone = (unsigned)__builtin_popcountll(job->controller.memberships[0].gone);
			pthread_mutex_unlock(&job->controller.lock);
		}
		fake_controller_kill_one(&job->controller, 1);
		while (fake_controller_generation(&job->controller) < 2)
			nap_ms(5);
		nap_ms(100); /* the plan has come */
	}
	demand(trib_finalize(rank->comm) == TRIB_OK);
	rank->comm = NULL;
}

static void test_last_to_leave(void **state)
{
	(void)state;
	job_run(3, last_body);
}

/* The same, but the last one calls once more: that is an error, also when it leaves. */
static void caller_body(struct rank *rank)
{
	struct job *job = rank->job;
	trib_status status = TRIB_OK;
	uint32_t one = 1;

	check_sum(rank->comm, (unsigned)rank->rank, 0, 3);
	if (rank->rank == 2) {
		nap_ms(200); /* the others leave */
		fake_controller_kill_one(&job->controller, 1);
		status = trib_allreduce(rank->comm, TRIB_IN_PLACE, &one, 1, TRIB_U32, TRIB_SUM);
		demand(status == TRIB_ERR_PEER);
	}
	demand(trib_finalize(rank->comm) == status);
	rank->comm = NULL;
}

static void test_last_calls(void **state)
{
	(void)state;
	job_run(3, caller_body);
}

/* Sub-communicators have their own trees and keys, different in each epoch. */
static void split_body(struct rank *rank)
{
	for (unsigned epoch = 0; epoch < 3; epoch++) {
		trib_comm *sub = NULL;
		uint32_t one = 1;

		demand(trib_split(rank->comm, rank->rank % 2, 0, &sub) == TRIB_OK);
		demand(trib_allreduce(sub, TRIB_IN_PLACE, &one, 1, TRIB_U32, TRIB_SUM) == TRIB_OK);
		demand(one == 2);
		demand(trib_regroup(&sub) == TRIB_ERR_ARGUMENT);
		demand(trib_finalize(sub) == TRIB_OK);
		demand(trib_regroup(&rank->comm) == TRIB_OK);
		check_sum(rank->comm, (unsigned)rank->rank, 0, 4);
	}
}

static void test_split(void **state)
{
	(void)state;
	job_run(4, split_body);
}

static void alone_body(struct rank *rank)
{
	demand(trib_regroup(&rank->comm) == TRIB_ERR_CONFIG && error_has("TRIB_CONTROLLER"));
	demand(rank->comm);
}

static void test_needs_controller(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run(&cluster, 2, NULL, alone_body, NULL);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_comes_one_leaves),
		cmocka_unit_test(test_goes_on_without),
		cmocka_unit_test(test_numbers_of_the_plan),
		cmocka_unit_test(test_last_to_leave),
		cmocka_unit_test(test_last_calls),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_lost_good_bye),
		cmocka_unit_test(test_needs_controller),
	};

	cluster_environment();
	setenv("TRIB_MTU", "1500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
