/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child made by fork() gets an error from every call with its parent's communicator, at once.
 * The parent's communicator works on, and the child can open one of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"

#include <sys/wait.h>

#define ELEMENTS 100000u /* does not fit slots */

/* In the child: exits with 0 if every call is refused. */
static void call_all(trib_comm *comm, trib_request *request)
{
	static float vector[ELEMENTS];
	trib_stats stats = { .struct_size = sizeof(stats) };
	trib_comm *half = NULL, *again = comm;
	trib_request *own = NULL;

	alarm(20); /* a hang is a failure */
	demand(trib_allreduce(comm, TRIB_IN_PLACE, vector, 10, TRIB_F32, TRIB_SUM) ==
	       TRIB_ERR_ARGUMENT);
	demand(error_has("fork()"));
	demand(trib_allreduce(comm, TRIB_IN_PLACE, vector, ELEMENTS, TRIB_F32, TRIB_SUM) ==
	       TRIB_ERR_ARGUMENT);
	demand(trib_barrier(comm) == TRIB_ERR_ARGUMENT);
	demand(trib_broadcast(comm, vector, 5, TRIB_F32, 0) == TRIB_ERR_ARGUMENT);
	demand(trib_iallreduce(comm, TRIB_IN_PLACE, vector, 10, TRIB_F32, TRIB_SUM, &own) ==
	       TRIB_ERR_ARGUMENT);
	demand(trib_split(comm, 0, 0, &half) == TRIB_ERR_ARGUMENT && !half);
	demand(trib_regroup(&again) == TRIB_ERR_ARGUMENT && again == comm);
	demand(trib_get_stats(comm, &stats) == TRIB_ERR_ARGUMENT);
	demand(trib_test(&request) == TRIB_ERR_ARGUMENT && request);
	demand(trib_wait(&request, 1) == TRIB_ERR_ARGUMENT && request);
	demand(trib_drop_residual(comm, NULL) == TRIB_ERR_ARGUMENT);
	demand(trib_finalize(comm) == TRIB_ERR_ARGUMENT && error_has("fork()"));
	_exit(0);
}

static void body(struct rank *rank)
{
	float *vector = calloc(ELEMENTS, sizeof(*vector));
	trib_request *request;
	int status = -1;
	pid_t child;

	demand(vector);
	demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vector, ELEMENTS, TRIB_F32, TRIB_SUM,
	                       &request) == TRIB_OK);
	if (rank->rank == 1) {
		child = fork();
		demand(child >= 0);
		if (!child)
			call_all(rank->comm, request);
		demand(waitpid(child, &status, 0) == child);
		demand(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	demand(trib_wait(&request, -1) == TRIB_OK);
	for (int i = 0; i < 20; i++)
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, i % 2 ? 10 : ELEMENTS,
		                      TRIB_F32, TRIB_SUM) == TRIB_OK);
	free(vector);
}

static void test_child_of_a_rank(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct cluster cluster;

	(void)state;
	options.timeout_s = 20;
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, 2, &options, body, NULL);
	cluster_stop(&cluster);
}

/* A child that opens its own communicator. */
static void test_child_begins_anew(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	trib_comm *comm = NULL;
	int status = -1;
	pid_t child;

	(void)state;
	options.has_rank = 1;
	options.size = 1;
	assert_int_equal(trib_init(&comm, &options), TRIB_OK);
	child = fork();
	if (!child) {
		trib_comm *own = NULL;

		alarm(20);
		demand(trib_init(&own, &options) == TRIB_OK);
		demand(trib_barrier(own) == TRIB_OK && trib_barrier(comm) == TRIB_ERR_ARGUMENT);
		demand(trib_finalize(own) == TRIB_OK);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(trib_barrier(comm), TRIB_OK);
	assert_int_equal(trib_finalize(comm), TRIB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_of_a_rank),
		cmocka_unit_test(test_child_begins_anew),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
