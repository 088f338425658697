/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregators end without a word, at random moments, while ranks do every
 * collective, several at once, in place and not: no sum is wrong, nobody hangs,
 * and no call fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "desk.h"
#include "number/number.h"
#include "reduce_reference.h"
#include "short.h"
#include "worker/comm.h"

#include <string.h>

#define RANKS 3
#define CASES 10
#define AT_ONCE 4

enum kind { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, BARRIER, KINDS };

/* `count` elements for each rank, and what comes of them. */
struct data {
	trib_type type;
	trib_op op;
	size_t count, bytes;
	uint8_t *in[RANKS], *expect;
};

struct job {
	struct desk desk;
	struct data data[CASES];
	pthread_barrier_t barrier;
	uint64_t seed;
	unsigned rounds;
	bool leave;            /* aggregators leave instead of ending */
	_Atomic unsigned done; /* rounds, of rank 0 */
	_Atomic bool ended;
};

static void data_make(struct data *data, size_t payload, uint64_t seed)
{
	static const trib_type types[] = { TRIB_I32, TRIB_F32, TRIB_F16, TRIB_U8, TRIB_F64 };
	static const size_t counts[] = { 1, 700, 5000, 60000, 300000 };

	data->type = types[mix(seed) % countof(types)];
	data->op = (trib_op)(mix(seed + 1) % 4);
	data->count = counts[mix(seed + 2) % countof(counts)];
	data->bytes = data->count * trib_type_size(data->type);
	data->expect = malloc(RANKS * data->bytes);
	demand(data->expect);
	for (unsigned r = 0; r < RANKS; r++) {
		data->in[r] = malloc(RANKS * data->bytes);
		demand(data->in[r]);
		reduce_fill(data->type, REDUCE_SPECIAL, mix(seed + 3) + r, data->in[r],
		            RANKS * data->count);
	}
	for (unsigned part = 0; part < RANKS; part++) {
		const void *in[RANKS];

		for (unsigned r = 0; r < RANKS; r++)
			in[r] = data->in[r] + part * data->bytes;
		reduce_expect(data->type, data->op, in, RANKS, data->count,
		              payload / number_wire_size(data->type),
		              data->expect + part * data->bytes);
	}
}

/* One collective under way. */
struct under_way {
	enum kind kind;
	const struct data *data;
	bool in_place;
	int root;
	uint8_t *out;
	trib_request *request;
};

static void flight_start(struct rank *rank, struct under_way *flight)
{
	const struct data *data = flight->data;
	const uint8_t *in = data->in[rank->rank];
	size_t mine = (size_t)rank->rank * data->bytes, all = RANKS * data->bytes;
	const void *send = flight->in_place ? TRIB_IN_PLACE : (const void *)in;
	trib_status status = TRIB_OK;

	flight->out = malloc(all);
	demand(flight->out);
	memset(flight->out, 0xa5, all);
	if (flight->in_place && flight->kind == ALLGATHER)
		memcpy(flight->out + mine, in, data->bytes);
	else if (flight->in_place)
		memcpy(flight->out, in, all);
	switch (flight->kind) {
	case ALLREDUCE:
		status = trib_iallreduce(rank->comm, send, flight->out, data->count, data->type,
		                         data->op, &flight->request);
		break;
	case REDUCE:
		status = trib_ireduce(rank->comm, send, flight->out, data->count, data->type,
		                      data->op, flight->root, &flight->request);
		break;
	case BROADCAST:
		if (rank->rank == flight->root)
			memcpy(flight->out, in, data->bytes);
		status = trib_ibroadcast(rank->comm, flight->out, data->count, data->type,
		                         flight->root, &flight->request);
		break;
	case ALLGATHER:
		status = trib_iallgather(rank->comm, send, flight->out, data->count, data->type,
		                         &flight->request);
		break;
	case REDUCE_SCATTER:
		status = trib_ireduce_scatter(rank->comm, send, flight->out, data->count,
		                              data->type, data->op, &flight->request);
		break;
	default:
		status = trib_ibarrier(rank->comm, &flight->request);
		break;
	}
	demand(status == TRIB_OK);
}

static void flight_end(struct rank *rank, struct under_way *flight)
{
	const struct data *data = flight->data;
	size_t mine = (size_t)rank->rank * data->bytes;

	demand(trib_wait(&flight->request, -1) == TRIB_OK);
	switch (flight->kind) {
	case ALLREDUCE:
		demand(memcmp(flight->out, data->expect, data->bytes) == 0);
		break;
	case REDUCE:
		if (rank->rank == flight->root)
			demand(memcmp(flight->out, data->expect, data->bytes) == 0);
		break;
	case BROADCAST:
		demand(memcmp(flight->out, data->in[flight->root], data->bytes) == 0);
		break;
	case ALLGATHER:
		for (size_t r = 0; r < RANKS; r++)
			demand(memcmp(flight->out + r * data->bytes, data->in[r], data->bytes) ==
			       0);
		break;
	case REDUCE_SCATTER:
		demand(memcmp(flight->out, data->expect + mine, data->bytes) == 0);
		break;
	default:
		break;
	}
	/* It is the user's again: whoever looks at it now is wrong. */
	memset(flight->out, 0x5a, RANKS * data->bytes);
	free(flight->out);
}

static void round_body(struct rank *rank, uint64_t seed)
{
	struct job *job = rank->job;
	struct under_way flights[AT_ONCE];
	unsigned n = 1 + (unsigned)(mix(seed) % AT_ONCE);

	for (unsigned i = 0; i < n; i++) {
		uint64_t own = mix(seed + 10 * i + 1);

		flights[i] = (struct under_way){ .kind = (enum kind)(own % KINDS),
			                         .data = &job->data[own / 64 % CASES],
			                         .in_place = own / 8 % 2,
			                         .root = (int)(own / 16 % RANKS) };
		/* Ranks are not in step. */
		if (mix(own + (uint64_t)rank->rank) % 8 == 0)
			nap_ms((unsigned)(mix(own) % 5));
		flight_start(rank, &flights[i]);
	}
	for (unsigned i = 0; i < n; i++)
		flight_end(rank, &flights[i]);
}

static void recover_body(struct rank *rank)
{
	struct job *job = rank->job;

	if (rank->rank == 0)
		for (unsigned i = 0; i < CASES; i++)
			data_make(&job->data[i], rank->comm->payload, mix(job->seed + i));
	pthread_barrier_wait(&job->barrier);
	for (unsigned i = 0; i < job->rounds; i++) {
		round_body(rank, mix(job->seed + 1000 + i));
		if (rank->rank == 0)
			atomic_store(&job->done, i + 1);
	}
	atomic_store(&job->ended, true);
}

static void *kill_main(void *argument)
{
	struct job *job = argument;

	unsigned last = 0, pause = test_is_short() ? 60 : 200;

	for (unsigned i = 0; !atomic_load(&job->ended); i++) {
		unsigned done = atomic_load(&job->done);

		/* The first one soon, as a short run has few; then mostly while they work, now and
		 * then while they recover from the last one. */
		nap_ms((unsigned)(mix(job->seed + 77 * i) % (i ? pause : 20)));
		if (atomic_load(&job->ended))
			break;
		if (i && done == last && mix(job->seed + 78 * i) % 8)
			continue;
		last = done;
		if (job->leave) /* where ranks are still joining, that is nothing */
			desk_leave_one(&job->desk, mix(job->seed + i));
		else
			desk_kill_one(&job->desk, mix(job->seed + i));
	}
	return NULL;
}

static void recover_run(unsigned trees, int lanes, bool deep, bool leave)
{
	trib_options options = TRIB_OPTIONS_INIT;
	const char *given = getenv("TRIB_TEST_SEED"), *rounds = getenv("TRIB_TEST_ROUNDS");
	struct job *job = calloc(1, sizeof(*job));
	struct cluster nowhere = { .address = "127.0.0.1:1" };
	pthread_t killer;

	demand(job);
	job->leave = leave;
	job->seed = given ? strtoull(given, NULL, 0) : clock_now();
	job->rounds = rounds ? (unsigned)atoi(rounds) : test_is_short() ? 30 : 200;
	print_message("seed %llu\n", (unsigned long long)job->seed);
	desk_start(&job->desk, trees + 2, trees, deep);
	pthread_barrier_init(&job->barrier, NULL, RANKS);
	options.controller = job->desk.address;
	options.lanes = lanes;
	options.timeout_s = 30;
	demand(pthread_create(&killer, NULL, kill_main, job) == 0);
	cluster_run(&nowhere, RANKS, &options, recover_body, job);
	demand(pthread_join(killer, NULL) == 0);
	print_message("%u rounds, %u plans\n", job->rounds, desk_generation(&job->desk));
	assert_true(desk_generation(&job->desk) > 1);
	desk_stop(&job->desk);
	pthread_barrier_destroy(&job->barrier);
	for (unsigned i = 0; i < CASES; i++) {
		free(job->data[i].expect);
		for (unsigned r = 0; r < RANKS; r++)
			free(job->data[i].in[r]);
	}
	free(job);
}

static void test_one_star(void **state)
{
	(void)state;
	recover_run(1, 1, false, false);
}

static void test_stripes(void **state)
{
	(void)state;
	recover_run(3, 2, false, false);
}

/* Any one of a tree may end: a leaf, or the root. */
static void test_deep_trees(void **state)
{
	(void)state;
	recover_run(2, 1, true, false);
}

/* They are told to go, and stay alive: the next plan may have them again. */
static void test_leaving(void **state)
{
	(void)state;
	recover_run(2, 2, false, true);
}

static void test_leaving_deep(void **state)
{
	(void)state;
	recover_run(2, 1, true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_star),     cmocka_unit_test(test_stripes),
		cmocka_unit_test(test_deep_trees),   cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_leaving_deep),
	};

	cluster_environment();
	setenv("TRIB_MTU", "1500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
