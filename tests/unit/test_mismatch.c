/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that call different collectives always get TRIB_ERR_MISMATCH, with what each called in
 * words. Rank 1 follows one program, all others another one. With this MTU 181 elements of i64
 * fill a packet, so that many of these calls have the same packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "short.h"
#include "wire/call.h"

#include <pthread.h>
#include <stdatomic.h>

#define STEPS_MAX 2
#define LARGE 60000u
#define AT_ONCE 6u /* pairs: they mostly wait */

struct step {
	enum wire_call_kind kind;
	size_t count;
	trib_type type;
	trib_op op;
	int root;
};

/* A barrier follows each program. */
struct program {
	struct step steps[STEPS_MAX];
};

#define SUM(n)                                                \
	{                                                     \
		WIRE_CALL_ALLREDUCE, n, TRIB_I64, TRIB_SUM, 0 \
	}
#define REDUCE(n, root)                                       \
	{                                                     \
		WIRE_CALL_REDUCE, n, TRIB_I64, TRIB_SUM, root \
	}
#define BROADCAST(n, root)                                       \
	{                                                        \
		WIRE_CALL_BROADCAST, n, TRIB_I64, TRIB_SUM, root \
	}
#define GATHER(n)                                             \
	{                                                     \
		WIRE_CALL_ALLGATHER, n, TRIB_I64, TRIB_SUM, 0 \
	}
#define SCATTER(n)                                                 \
	{                                                          \
		WIRE_CALL_REDUCE_SCATTER, n, TRIB_I64, TRIB_SUM, 0 \
	}

static const struct program small[] = {
	{ { SUM(181), SUM(362) } },
	{ { SUM(362), SUM(181) } },
	{ { SUM(181), SUM(181) } },
	{ { SUM(362) } },
	{ { REDUCE(181, 0) } },
	{ { REDUCE(181, 1) } },
	{ { BROADCAST(181, 0) } },
	{ { BROADCAST(181, 2) } },
	{ { GATHER(181) } },
	{ { SCATTER(181) } },
	{ { { WIRE_CALL_BARRIER, 0, TRIB_U8, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_SPLIT, 8, TRIB_U8, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, 181, TRIB_U64, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, 181, TRIB_I64, TRIB_MAX, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, 181, TRIB_I64, TRIB_AVG, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, 256, TRIB_F32, TRIB_SUM, 0 },
	    { WIRE_CALL_ALLREDUCE, 256, TRIB_F32, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, 512, TRIB_F32, TRIB_SUM, 0 } } },
};

static const struct program large[] = {
	{ { SUM(LARGE) } },
	{ { SUM(181) } },
	{ { SUM(LARGE + 181) } },
	{ { REDUCE(LARGE, 0) } },
	{ { REDUCE(LARGE, 1) } },
	{ { BROADCAST(LARGE, 0) } },
	{ { BROADCAST(LARGE, 1) } },
	{ { GATHER(LARGE) } },
	{ { SCATTER(LARGE) } },
	{ { { WIRE_CALL_BARRIER, 0, TRIB_U8, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, LARGE, TRIB_F32, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, LARGE + 2, TRIB_F32, TRIB_SUM, 0 } } },
	{ { { WIRE_CALL_ALLREDUCE, LARGE, TRIB_F64, TRIB_MIN, 0 } } },
};

struct pair {
	const struct program *programs[2]; /* of rank 1, of all others */
};

static const struct step barrier = { WIRE_CALL_BARRIER, 0, TRIB_U8, TRIB_SUM, 0 };

/* The step i of a program; after its end, the barrier. */
static const struct step *step_of(const struct program *program, unsigned i)
{
	return i < STEPS_MAX && program->steps[i].kind ? &program->steps[i] : &barrier;
}

static bool is_same(const struct step *a, const struct step *b)
{
	return a->kind == b->kind && a->count == b->count && a->type == b->type && a->op == b->op &&
	       a->root == b->root;
}

static const char *words(const struct step *step, char text[WIRE_CALL_TEXT])
{
	bool has_root = step->kind == WIRE_CALL_REDUCE || step->kind == WIRE_CALL_BROADCAST;
	struct wire_call call = { .kind = (uint8_t)step->kind,
		                  .count = step->count,
		                  .type = (uint8_t)step->type,
		                  .op = (uint8_t)step->op,
		                  .root = has_root ? (uint8_t)step->root : WIRE_ALL };

	return wire_call_text(&call, text);
}

static trib_status run_step(const struct rank *rank, const struct step *step, void *in, void *out)
{
	trib_comm *comm = rank->comm, *half = NULL;
	trib_status status;

	switch (step->kind) {
	case WIRE_CALL_ALLREDUCE:
		return trib_allreduce(comm, in, out, step->count, step->type, step->op);
	case WIRE_CALL_REDUCE:
		return trib_reduce(comm, in, out, step->count, step->type, step->op, step->root);
	case WIRE_CALL_BROADCAST:
		return trib_broadcast(comm, out, step->count, step->type, step->root);
	case WIRE_CALL_ALLGATHER:
		return trib_allgather(comm, in, out, step->count, step->type);
	case WIRE_CALL_REDUCE_SCATTER:
		return trib_reduce_scatter(comm, in, out, step->count, step->type, step->op);
	case WIRE_CALL_SPLIT:
		status = trib_split(comm, 0, 0, &half);
		trib_finalize(half);
		return status;
	default:
		return trib_barrier(comm);
	}
}

/* May a rank have done its part before it can know of the others? */
static bool may_end_early(const struct step *step)
{
	return step->kind == WIRE_CALL_REDUCE || step->kind == WIRE_CALL_BROADCAST;
}

static void body(struct rank *rank)
{
	const struct pair *pair = rank->job;
	const struct program *mine = pair->programs[rank->rank != 1];
	size_t room = 3 * 8 * (LARGE + 200);
	void *in = calloc(1, room), *out = calloc(1, room);
	char one[WIRE_CALL_TEXT], two[WIRE_CALL_TEXT];
	/* A rank may learn of the others' calls before it returns from joining. */
	trib_status status = trib_init(&rank->comm, &rank->options);
	unsigned first = 0;

	demand(in && out);
	while (is_same(step_of(pair->programs[0], first), step_of(pair->programs[1], first)))
		first++;
	words(step_of(pair->programs[0], first), one);
	words(step_of(pair->programs[1], first), two);
	for (unsigned i = 0; status == TRIB_OK && i <= STEPS_MAX; i++) {
		status = run_step(rank, step_of(mine, i), in, out);
		if (status == TRIB_OK && i == first && !may_end_early(step_of(mine, i)))
			fprintf(stderr, "rank %d: rank 1 called %s, others %s\n", rank->rank, one,
			        two);
		demand(status != TRIB_OK || i != first || may_end_early(step_of(mine, i)));
	}
	if (status != TRIB_ERR_MISMATCH || !error_has(one) || !error_has(two) ||
	    !error_has("rank 1"))
		fprintf(stderr, "rank %d: rank 1 called %s, others %s: %s\n", rank->rank, one, two,
		        trib_last_error());
	demand(status == TRIB_ERR_MISMATCH);
	demand(error_has(one) && error_has(two) && error_has("rank 1"));
	demand(error_has("rank 0") || error_has("rank 2"));
	trib_finalize(rank->comm);
	free(in);
	free(out);
}

struct work {
	const struct program *programs;
	unsigned n, step;
	_Atomic unsigned next;
};

static void *run_pairs(void *argument)
{
	struct work *work = argument;
	trib_options options = TRIB_OPTIONS_INIT;
	unsigned i;

	options.timeout_s = 20;
	while ((i = atomic_fetch_add(&work->next, work->step)) < work->n * work->n) {
		struct pair pair = { { &work->programs[i / work->n],
			               &work->programs[i % work->n] } };
		struct cluster cluster;

		if (i / work->n == i % work->n)
			continue;
		cluster_start(&cluster, 2, 0);
		cluster_run_bare(&cluster, 3, &options, body, &pair);
		cluster_stop(&cluster);
	}
	return NULL;
}

/* All pairs in a long run, else every step-th. */
static void all_pairs(const struct program *programs, unsigned n, unsigned step)
{
	/* Their clusters set the environment, so there can be one at a time. */
	bool alone = getenv("TRIB_TEST_RING") || getenv("TRIB_TEST_TREE");
	struct work work = { .programs = programs,
		             .n = n,
		             .step = test_is_long()             ? 1
		                     : test_is_short() || alone ? 11
		                                                : step };
	unsigned at_once = alone ? 1 : AT_ONCE;
	pthread_t threads[AT_ONCE];

	for (unsigned i = 0; i < at_once; i++)
		demand(!pthread_create(&threads[i], NULL, run_pairs, &work));
	for (unsigned i = 0; i < at_once; i++)
		pthread_join(threads[i], NULL);
}

static void test_small(void **state)
{
	(void)state;
	all_pairs(small, countof(small), 1);
}

/* The same calls in dense lanes. */
static void test_small_dense(void **state)
{
	(void)state;
	setenv("TRIB_ENGINE", "dense", 1);
	all_pairs(small, countof(small), 5);
	unsetenv("TRIB_ENGINE");
}

static void test_large(void **state)
{
	(void)state;
	all_pairs(large, countof(large), 3);
}

/* In each packet there is room for a signature: ranks that agree send one for each 181 elements. */
static void agreeing_body(struct rank *rank)
{
	int64_t vector[362] = { 0 };

	for (unsigned i = 0; i < 100; i++)
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, i % 2 ? 181 : 362,
		                      TRIB_I64, TRIB_SUM) == TRIB_OK);
}

static void test_no_more_packets(void **state)
{
	struct cluster cluster;

	(void)state;
	if (getenv("TRIB_TEST_RING") || getenv("TRIB_TEST_TREE"))
		return; /* in a star alone all packets come to one aggregator */
	for (unsigned dense = 0; dense < 2; dense++) {
		cluster_start(&cluster, 2, 0);
		setenv("TRIB_ENGINE", dense ? "dense" : "auto", 1);
		cluster_run(&cluster, 3, NULL, agreeing_body, NULL);
		aggregator_stop(cluster.aggregator);
		/* Of three ranks, the last one completes a sum. */
		assert_int_equal(cluster_count(&cluster, "verdicts", "added"), 2 * 150);
		assert_int_equal(cluster_count(&cluster, "verdicts", "completed"), 150);
		aggregator_free(cluster.aggregator);
	}
	unsetenv("TRIB_ENGINE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_small_dense),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_no_more_packets),
	};

	cluster_environment();
	setenv("TRIB_MTU", "1500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
