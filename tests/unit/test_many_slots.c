/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As many small allreduces in flight as slots allow, TRIB_SLOTS=65536. One rank posts all of them
 * before the other one posts its first. Each is a packet of its own, so each has a slot of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "short.h"

#include <stdatomic.h>

#define RANKS 2
#define COUNT 200 /* two vectors do not fit into a packet of 1500 bytes */

struct job {
	unsigned operations;
	atomic_bool posted; /* rank 0 has posted all */
};

static int32_t input_of(int rank, unsigned operation, unsigned element)
{
	return (int32_t)(operation * 7 + element + 1) * (rank + 1);
}

static void post(const struct rank *rank, unsigned operation, int32_t *vector,
                 trib_request **request)
{
	for (unsigned i = 0; i < COUNT; i++)
		vector[i] = input_of(rank->rank, operation, i);
	demand(trib_iallreduce(rank->comm, vector, vector, COUNT, TRIB_I32, TRIB_SUM, request) ==
	       TRIB_OK);
}

static void body(struct rank *rank)
{
	struct job *job = rank->job;
	unsigned n = job->operations;
	int32_t *vectors = calloc(n, COUNT * sizeof(*vectors));
	trib_request **requests = calloc(n, sizeof(trib_request *));

	demand(vectors && requests);
	while (rank->rank && !atomic_load(&job->posted))
		nap_ms(1);
	for (unsigned i = 0; i < n; i++)
		post(rank, i, vectors + (size_t)i * COUNT, &requests[i]);
	if (!rank->rank) {
		demand(trib_test(&requests[0]) == TRIB_IN_PROGRESS);
		demand(trib_test(&requests[n - 1]) == TRIB_IN_PROGRESS);
		atomic_store(&job->posted, true);
	}
	for (unsigned i = 0; i < n; i++) {
		demand(trib_wait(&requests[i], -1) == TRIB_OK);
		for (unsigned k = 0; k < COUNT; k++)
			demand(vectors[(size_t)i * COUNT + k] == 3 * input_of(0, i, k));
	}
	free(requests);
	free(vectors);
}

static void many_slots(void **state)
{
	struct job job = { .operations = (unsigned)test_count("operations", 65536, 4096) };
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run(&cluster, RANKS, NULL, body, &job);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(many_slots) };

	cluster_environment();
	setenv("TRIB_SLOTS", "65536", 1);
	setenv("TRIB_MTU", "1500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
