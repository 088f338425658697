/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives end to end, with sockets and threads: every collective, type, operation and edge
 * size, in place or not. A reference gives the exact bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "number/number.h"
#include "reduce_reference.h"
#include "short.h"
#include "worker/comm/comm.h" /* for the agreed payload, which is the block of floats */

#include <pthread.h>
#include <string.h>

#define TYPES 12
#define OPS 4
#define MATRIX_RANKS 3

static const size_t all_counts[] = { 0, 1, 2, 3, 7, 8, 357, 358, 359, 1000, 5000, 100003 };
static const size_t few_counts[] = { 0, 1, 7, 359, 5000 };

struct matrix {
	const size_t *counts;
	size_t n_counts;
	enum reduce_values values;
	unsigned types; /* as bits */
	pthread_barrier_t barrier;
	/* A test case, made by rank 0: `count` elements for each rank. */
	void *in[CLUSTER_RANKS_MAX];
	void *expect;
};

struct test_case {
	trib_type type;
	trib_op op;
	size_t count, bytes; /* of one rank's part */
	bool in_place;
	int root;
};

static size_t block_of(const trib_comm *comm, trib_type type, trib_op op, size_t count)
{
	bool small = round_is_small(count * trib_type_size(type));
	const struct round_spec spec = { .type = type,
		                         .op = op,
		                         .small = small ? (uint8_t)comm->config.size : 0 };

	return round_spec_block(&spec, comm->payload);
}

static void case_make(struct rank *rank, const struct test_case *c, uint64_t seed)
{
	struct matrix *matrix = rank->job;
	size_t ranks = (size_t)rank->size;

	matrix->expect = malloc(ranks * c->bytes + 1);
	demand(matrix->expect);
	for (size_t r = 0; r < ranks; r++) {
		matrix->in[r] = malloc(ranks * c->bytes + 1);
		demand(matrix->in[r]);
		reduce_fill(c->type, matrix->values, mix(seed) + r * 1000000, matrix->in[r],
		            ranks * c->count);
	}
	for (size_t part = 0; part < ranks; part++) {
		const void *in[CLUSTER_RANKS_MAX];
		uint8_t *expect = (uint8_t *)matrix->expect + part * c->bytes;

		for (size_t r = 0; r < ranks; r++)
			in[r] = (const uint8_t *)matrix->in[r] + part * c->bytes;
		reduce_expect(c->type, c->op, in, (unsigned)ranks, c->count, rank->comm->payload,
		              rank->comm->config.wire_bits, expect);
		if (number_is_float(c->type) && c->op == TRIB_SUM && c->count <= 1000)
			demand(reduce_in_bound(c->type, in, (unsigned)ranks, c->count,
			                       block_of(rank->comm, c->type, c->op, c->count),
			                       expect));
	}
}

static void case_free(struct rank *rank)
{
	struct matrix *matrix = rank->job;

	free(matrix->expect);
	for (int r = 0; r < rank->size; r++)
		free(matrix->in[r]);
}

/* A buffer with a guard behind it, where nothing may be written. */
static uint8_t *guarded(size_t bytes)
{
	uint8_t *buffer = malloc(bytes + 16);

	demand(buffer);
	memset(buffer, 0xa5, bytes + 16);
	return buffer;
}

static void guard_check(const uint8_t *buffer, size_t bytes)
{
	for (unsigned i = 0; i < 16; i++)
		demand(buffer[bytes + i] == 0xa5);
}

/* All ranks with the result call it: `part` is exact, or in bounds if it is rounded by chance. */
static void result_check(struct rank *rank, const struct test_case *c, size_t part,
                         const uint8_t *out)
{
	struct matrix *matrix = rank->job;
	unsigned ranks = (unsigned)rank->size, bits = rank->comm->config.wire_bits;
	const void *in[CLUSTER_RANKS_MAX];

	if (!reduce_is_by_chance(c->type, c->op, c->count, ranks, bits)) {
		demand(memcmp(out, (const uint8_t *)matrix->expect + part * c->bytes, c->bytes) ==
		       0);
		return;
	}
	for (unsigned r = 0; r < ranks; r++)
		in[r] = (const uint8_t *)matrix->in[r] + part * c->bytes;
	demand(reduce_chance_in_bound(c->type, c->op, in, ranks, c->count, rank->comm->payload,
	                              bits, out));
}

/* Rounded by chance or not: all ranks have the same bits. */
static void same_check(struct rank *rank, const uint8_t *out, size_t bytes)
{
	uint64_t hash[2] = { 0xcbf29ce484222325 };

	for (size_t i = 0; i < bytes; i++)
		hash[0] = (hash[0] ^ out[i]) * 0x100000001b3;
	hash[1] = ~hash[0];
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, hash, 2, TRIB_U64, TRIB_MAX) == TRIB_OK);
	demand(hash[0] == ~hash[1]);
}

static void try_allreduce(struct rank *rank, const struct test_case *c)
{
	struct matrix *matrix = rank->job;
	uint8_t *out = guarded(c->bytes);
	const void *send = matrix->in[rank->rank];

	if (c->in_place) {
		memcpy(out, send, c->bytes);
		send = rank->rank % 2 ? TRIB_IN_PLACE : out;
	}
	demand(trib_allreduce(rank->comm, send, out, c->count, c->type, c->op) == TRIB_OK);
	result_check(rank, c, 0, out);
	same_check(rank, out, c->bytes);
	guard_check(out, c->bytes);
	free(out);
}

static void try_reduce(struct rank *rank, const struct test_case *c)
{
	struct matrix *matrix = rank->job;
	size_t at = (size_t)c->root * c->bytes;
	const uint8_t *source = (const uint8_t *)matrix->in[rank->rank] + at;
	bool is_root = rank->rank == c->root;
	uint8_t *out = guarded(c->bytes);

	if (c->in_place)
		memcpy(out, source, c->bytes);
	demand(trib_reduce(rank->comm, c->in_place ? TRIB_IN_PLACE : source,
	                   is_root || c->in_place ? out : NULL, c->count, c->type, c->op,
	                   c->root) == TRIB_OK);
	if (is_root)
		result_check(rank, c, (size_t)c->root, out);
	else if (c->in_place) /* input only */
		demand(memcmp(out, source, c->bytes) == 0);
	guard_check(out, c->bytes);
	free(out);
}

static void try_reduce_scatter(struct rank *rank, const struct test_case *c)
{
	struct matrix *matrix = rank->job;
	size_t all = (size_t)rank->size * c->bytes;
	uint8_t *out = guarded(c->in_place ? all : c->bytes);

	if (c->in_place)
		memcpy(out, matrix->in[rank->rank], all);
	demand(trib_reduce_scatter(rank->comm, c->in_place ? TRIB_IN_PLACE : matrix->in[rank->rank],
	                           out, c->count, c->type, c->op) == TRIB_OK);
	result_check(rank, c, (size_t)rank->rank, out);
	guard_check(out, c->in_place ? all : c->bytes);
	free(out);
}

static void try_broadcast(struct rank *rank, const struct test_case *c)
{
	struct matrix *matrix = rank->job;
	uint8_t *buffer = guarded(c->bytes);

	if (rank->rank == c->root)
		memcpy(buffer, matrix->in[c->root], c->bytes);
	demand(trib_broadcast(rank->comm, buffer, c->count, c->type, c->root) == TRIB_OK);
	demand(memcmp(buffer, matrix->in[c->root], c->bytes) == 0);
	guard_check(buffer, c->bytes);
	free(buffer);
}

static void try_allgather(struct rank *rank, const struct test_case *c)
{
	struct matrix *matrix = rank->job;
	size_t all = (size_t)rank->size * c->bytes, at = (size_t)rank->rank * c->bytes;
	uint8_t *out = guarded(all);

	if (c->in_place)
		memcpy(out + at, matrix->in[rank->rank], c->bytes);
	demand(trib_allgather(rank->comm, c->in_place ? TRIB_IN_PLACE : matrix->in[rank->rank], out,
	                      c->count, c->type) == TRIB_OK);
	for (size_t r = 0; r < (size_t)rank->size; r++)
		demand(memcmp(out + r * c->bytes, matrix->in[r], c->bytes) == 0);
	guard_check(out, all);
	free(out);
}

static void try_case(struct rank *rank, struct test_case *c)
{
	for (int way = 0; way < 2; way++) {
		c->in_place = way;
		try_allreduce(rank, c);
		try_reduce(rank, c);
		try_reduce_scatter(rank, c);
		if (c->op == TRIB_SUM) { /* these have no operation */
			try_broadcast(rank, c);
			try_allgather(rank, c);
		}
		if (c->count > 5000)
			break; /* variants differ at edge cases, which are small */
	}
}

static void matrix_body(struct rank *rank)
{
	struct matrix *matrix = rank->job;
	uint64_t seed = 0;

	for (unsigned k = 0; k < TYPES * OPS * matrix->n_counts; k++) {
		struct test_case c = { .type = (trib_type)(k % TYPES),
			               .op = (trib_op)(k / TYPES % OPS),
			               .count = matrix->counts[k / TYPES / OPS],
			               .root = (int)(k % (unsigned)rank->size) };

		if (!(matrix->types >> c.type & 1))
			continue;
		/* A long vector fills the window again and again, whatever is computed. */
		if (c.count > 5000 && c.op != TRIB_SUM && c.op != (trib_op)(c.type % OPS))
			continue;
		c.bytes = c.count * trib_type_size(c.type);
		if (rank->rank == 0)
			case_make(rank, &c, ++seed);
		pthread_barrier_wait(&matrix->barrier);
		try_case(rank, &c);
		demand(trib_barrier(rank->comm) == TRIB_OK);
		pthread_barrier_wait(&matrix->barrier);
		if (rank->rank == 0)
			case_free(rank);
	}
}

static void matrix_run_at(const struct cluster *cluster, int ranks, const trib_options *options,
                          enum reduce_values values, bool all)
{
	struct matrix matrix = { .values = values };

	all = all && !test_is_short();
	matrix.counts = all ? all_counts : few_counts;
	matrix.n_counts = all ? countof(all_counts) : countof(few_counts);
	matrix.types = all ? ~0u
	                   : 1u << TRIB_U8 | 1u << TRIB_I32 | 1u << TRIB_F32 | 1u << TRIB_F64 |
	                               1u << TRIB_F8E4M3 | 1u << TRIB_F8E5M2;
	if (test_is_short() && options->lanes) /* lanes and trees move bytes, whatever the type */
		matrix.types = 1u << TRIB_I32 | 1u << TRIB_F32 | 1u << TRIB_F8E4M3;
	pthread_barrier_init(&matrix.barrier, NULL, (unsigned)ranks);
	cluster_run(cluster, ranks, options, matrix_body, &matrix);
	pthread_barrier_destroy(&matrix.barrier);
}

static void matrix_run(int ranks, trib_options options, enum reduce_values values, bool all)
{
	struct cluster cluster;

	cluster_start(&cluster, 4, 0);
	matrix_run_at(&cluster, ranks, &options, values, all);
	cluster_stop(&cluster);
}

static void test_every_case(void **state)
{
	(void)state;
	matrix_run(MATRIX_RANKS, (trib_options)TRIB_OPTIONS_INIT, REDUCE_FINITE, true);
}

static void test_specials(void **state)
{
	(void)state;
	matrix_run(MATRIX_RANKS, (trib_options)TRIB_OPTIONS_INIT, REDUCE_SPECIAL, false);
}

/* With few cells, the window stops all the time. With several lanes, vectors are split. */
static void test_lanes_and_pools(void **state)
{
	static const struct {
		int ranks, lanes;
		uint64_t pool;
	} cases[] = {
		{ 2, 1, 1 }, { 3, 2, 0 }, { 2, 4, 300000 }, { 4, 4, 1 }, { 2, 2, 1ull << 31 }
	};

	(void)state;
	for (unsigned i = 0; i < countof(cases); i++) {
		trib_options options = TRIB_OPTIONS_INIT;

		options.lanes = cases[i].lanes;
		options.pool_bytes = cases[i].pool;
		matrix_run(cases[i].ranks, options, REDUCE_SPECIAL, false);
	}
}

/* Several trees at once with different shares. The reference does not depend on them. */
static void test_stripes(void **state)
{
	static const struct {
		int ranks, lanes;
		unsigned trees;
		uint64_t pool;
	} cases[] = { { 3, 1, 2, 0 }, { 2, 2, 3, 0 }, { 4, 1, 3, 1 }, { 2, 4, 4, 300000 } };

	(void)state;
	for (unsigned i = 0; i < countof(cases); i++) {
		trib_options options = TRIB_OPTIONS_INIT;
		struct cluster clusters[4];
		char trees[200];

		for (unsigned k = 0; k < cases[i].trees; k++)
			cluster_start(&clusters[k], 4, 0);
		cluster_stars(clusters, cases[i].trees, cases[i].ranks, trees, sizeof(trees));
		options.trees = trees;
		options.lanes = cases[i].lanes;
		options.pool_bytes = cases[i].pool;
		matrix_run_at(&clusters[0], cases[i].ranks, &options, REDUCE_SPECIAL, i == 0);
		for (unsigned k = 0; k < cases[i].trees; k++)
			cluster_stop(&clusters[k]);
	}
}

static void alone_body(struct rank *rank)
{
	int32_t in[4] = { 1, -2, 3, INT32_MIN }, out[4] = { 0 };
	trib_request *request = NULL;

	demand(trib_rank(rank->comm) == 0 && trib_size(rank->comm) == 1);
	for (trib_op op = TRIB_SUM; op <= TRIB_AVG; op++) {
		memset(out, 0, sizeof(out));
		demand(trib_allreduce(rank->comm, in, out, 4, TRIB_I32, op) == TRIB_OK);
		demand(memcmp(in, out, sizeof(in)) == 0);
	}
	demand(trib_allgather(rank->comm, in, out, 4, TRIB_I32) == TRIB_OK);
	demand(trib_reduce_scatter(rank->comm, TRIB_IN_PLACE, out, 4, TRIB_I32, TRIB_SUM) ==
	       TRIB_OK);
	demand(memcmp(in, out, sizeof(in)) == 0);
	demand(trib_barrier(rank->comm) == TRIB_OK);
	demand(trib_iallreduce(rank->comm, in, out, 4, TRIB_I32, TRIB_SUM, &request) == TRIB_OK);
	demand(trib_test(&request) == TRIB_OK && !request);
	demand(trib_broadcast(rank->comm, in, 4, TRIB_I32, 0) == TRIB_OK);
}

static void test_alone(void **state)
{
	struct cluster nowhere = { .address = "127.0.0.1:1" };

	(void)state;
	cluster_run(&nowhere, 1, NULL, alone_body, NULL);
}

/* Requests of different sizes and kinds in flight at once, awaited from the last to the first. */
#define IN_FLIGHT 20

static void in_flight_body(struct rank *rank)
{
	trib_request *requests[IN_FLIGHT] = { NULL };
	uint32_t *vectors[IN_FLIGHT];
	trib_stats stats = { .struct_size = sizeof(stats) };

	for (unsigned k = 0; k < IN_FLIGHT; k++) {
		size_t count = k % 3 ? k * 37 : 20000 + k;

		vectors[k] = calloc(count + 1, 4);
		demand(vectors[k]);
		for (size_t i = 0; i < count; i++)
			vectors[k][i] = (uint32_t)(i * 7 + k + (unsigned)rank->rank);
		if (k % 5 == 4)
			demand(trib_ibroadcast(rank->comm, vectors[k], count, TRIB_U32, 1,
			                       &requests[k]) == TRIB_OK);
		else
			demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vectors[k], count,
			                       TRIB_U32, TRIB_MAX, &requests[k]) == TRIB_OK);
	}
	for (unsigned k = IN_FLIGHT; k-- > 0;) {
		size_t count = k % 3 ? k * 37 : 20000 + k;
		uint32_t winner = k % 5 == 4 ? 1 : (uint32_t)rank->size - 1;
		trib_status status;

		if (k % 2) {
			while ((status = trib_test(&requests[k])) == TRIB_IN_PROGRESS)
				nap_ms(1);
		} else {
			status = trib_wait(&requests[k], -1);
		}
		demand(status == TRIB_OK && !requests[k]);
		for (size_t i = 0; i < count; i++)
			demand(vectors[k][i] == (uint32_t)(i * 7 + k + winner));
		free(vectors[k]);
	}
	demand(trib_get_stats(rank->comm, &stats) == TRIB_OK);
	demand(stats.rounds == IN_FLIGHT && stats.sent_packets > 0);
}

static void test_in_flight(void **state)
{
	struct cluster cluster;

	(void)state;
	for (int lanes = 1; lanes <= 4; lanes *= 2) {
		trib_options options = TRIB_OPTIONS_INIT;

		options.lanes = lanes;
		cluster_start(&cluster, 4, 0);
		cluster_run(&cluster, 3, &options, in_flight_body, NULL);
		cluster_stop(&cluster);
	}
}

/* Sums in each half and in the whole, all three at the same time. */
static void split_body(struct rank *rank)
{
	trib_comm *half, *backwards, *none;
	int color = rank->rank % 2;

	demand(trib_split(rank->comm, color, -rank->rank, &half) == TRIB_OK);
	demand(trib_size(half) == 2 && trib_rank(half) == (rank->rank < 2));
	demand(trib_split(rank->comm, 7, -rank->rank, &backwards) == TRIB_OK);
	demand(trib_size(backwards) == 4 && trib_rank(backwards) == 3 - rank->rank);
	demand(trib_split(rank->comm, rank->rank ? -1 : 0, 0, &none) == TRIB_OK);
	demand((none == NULL) == (rank->rank != 0));
	for (int round = 0; round < 20; round++) {
		int64_t mine[3][999], *all[3] = { mine[0], mine[1], mine[2] };
		trib_comm *comms[3] = { rank->comm, half, backwards };
		int64_t expect[3] = { 10, color ? 6 : 4, 10 };
		trib_request *requests[3];

		for (int c = 0; c < 3; c++) {
			for (int i = 0; i < 999; i++)
				all[c][i] = (rank->rank + 1) * (i + round);
			demand(trib_iallreduce(comms[c], TRIB_IN_PLACE, all[c], 999, TRIB_I64,
			                       TRIB_SUM, &requests[c]) == TRIB_OK);
		}
		for (int c = 2; c >= 0; c--) {
			demand(trib_wait(&requests[c], -1) == TRIB_OK);
			for (int i = 0; i < 999; i++)
				demand(all[c][i] == expect[c] * (i + round));
		}
	}
	/* Ranks in the new order: rank 0 of a reversed half was rank 2 or 3. */
	int32_t who = rank->rank;
	demand(trib_broadcast(half, &who, 1, TRIB_I32, 0) == TRIB_OK && who == color + 2);
	demand(trib_finalize(none) == TRIB_OK);
	demand(trib_finalize(backwards) == TRIB_OK);
	demand(trib_finalize(half) == TRIB_OK);
}

static void test_split(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, 4, NULL, split_body, NULL);
	cluster_stop(&cluster);
}

/*
 * Several threads use one communicator: the order of starts matters, the waiting thread does not.
 */
struct waiter {
	trib_request *request;
	pthread_t thread;
};

static void *wait_elsewhere(void *argument)
{
	struct waiter *waiter = argument;

	demand(trib_wait(&waiter->request, -1) == TRIB_OK);
	return NULL;
}

static void threads_body(struct rank *rank)
{
	struct waiter waiters[8];
	float vectors[8][3000];

	for (unsigned k = 0; k < 8; k++) {
		for (unsigned i = 0; i < 3000; i++)
			vectors[k][i] = (float)(i + k);
		demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vectors[k], 3000, TRIB_F32,
		                       TRIB_AVG, &waiters[k].request) == TRIB_OK);
		demand(pthread_create(&waiters[k].thread, NULL, wait_elsewhere, &waiters[k]) == 0);
	}
	for (unsigned k = 0; k < 8; k++) {
		demand(pthread_join(waiters[k].thread, NULL) == 0);
		for (unsigned i = 0; i < 3000; i++)
			demand(vectors[k][i] == (float)(i + k));
	}
}

static void test_threads(void **state)
{
	struct cluster cluster, nowhere = { .address = "127.0.0.1:1" };

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, 3, NULL, threads_body, NULL);
	cluster_stop(&cluster);
	cluster_run(&nowhere, 1, NULL, threads_body, NULL);
}

static void many_body(struct rank *rank)
{
	uint32_t value[200];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 200; i++)
			value[i] = (uint32_t)rank->rank * i + round;
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, value, 200, TRIB_U32, TRIB_SUM) ==
		       TRIB_OK);
		for (unsigned i = 0; i < 200; i++)
			demand(value[i] == (uint32_t)(rank->size * (rank->size - 1) / 2) * i +
			                           (uint32_t)rank->size * round);
	}
}

static void test_many_ranks(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run(&cluster, test_is_short() ? 16 : 64, NULL, many_body, NULL);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),           cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_split),           cmocka_unit_test(test_threads),
		cmocka_unit_test(test_many_ranks),      cmocka_unit_test(test_specials),
		cmocka_unit_test(test_lanes_and_pools), cmocka_unit_test(test_every_case),
		cmocka_unit_test(test_stripes),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
