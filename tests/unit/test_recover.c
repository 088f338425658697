/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregators are killed at random moments while ranks run every collective, several at once, in
 * place or not. No sum is wrong, no call hangs, and none fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "fake_controller.h"
#include "number/number.h"
#include "reduce_reference.h"
#include "short.h"
#include "worker/comm/comm.h"

#include <math.h>
#include <string.h>

#define RANKS 3
#define CASES 10
#define CASES_SHORT 4 /* for 8 rounds */
#define AT_ONCE 4

/* FED and CHANCE: an allreduce with 8 bits on the wire, with error feedback or without. */
enum kind { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, BARRIER, FED, CHANCE, KINDS };

/* `count` elements for each rank, and the expected result, also with 8 bits on the wire. */
struct data {
	trib_type type;
	trib_op op;
	size_t count, bytes;
	uint8_t *in[RANKS], *expect, *expect8;
	float *lost, *sizes; /* what 8 bits take from the sum, and its magnitudes */
};

#define ROUNDS_MAX 10000

struct job {
	struct fake_controller controller;
	struct data data[CASES];
	pthread_barrier_t barrier;
	uint64_t seed;
	unsigned rounds, cases;
	bool leave;            /* aggregators leave instead of dying */
	_Atomic unsigned done; /* rounds of rank 0 */
	bool more;             /* one more round, as no plan has changed yet */
	_Atomic bool ended;
	_Atomic uint64_t hashes[ROUNDS_MAX][AT_ONCE]; /* of results that are rounded by chance */
};

static bool may_be_short(const struct data *data)
{
	return data->type == TRIB_F32 && (data->op == TRIB_SUM || data->op == TRIB_AVG);
}

static void data_make(struct data *data, const trib_comm *comm, uint64_t seed)
{
	static const trib_type types[] = { TRIB_I32, TRIB_F32,    TRIB_F16,   TRIB_U8,
		                           TRIB_F64, TRIB_F8E4M3, TRIB_F8E5M2 };
	static const size_t counts[] = { 1, 700, 5000, 60000, 300000 };

	data->type = types[mix(seed) % countof(types)];
	data->op = (trib_op)(mix(seed + 1) % 4);
	data->count = counts[mix(seed + 2) % countof(counts)];
	data->bytes = data->count * trib_type_size(data->type);
	data->expect = malloc(RANKS * data->bytes);
	data->expect8 = malloc(data->bytes);
	demand(data->expect && data->expect8);
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
		reduce_expect(data->type, data->op, in, RANKS, data->count, comm->payload,
		              comm->config.wire_bits, data->expect + part * data->bytes);
	}
	reduce_expect(data->type, data->op, (const void *const *)data->in, RANKS, data->count,
	              comm->payload, 8, data->expect8);
	if (!may_be_short(data))
		return;
	data->lost = malloc(data->bytes);
	data->sizes = malloc(data->bytes);
	demand(data->lost && data->sizes);
	reduce_lost((const void *const *)data->in, RANKS, data->count, comm->payload, 8, data->lost,
	            data->sizes);
}

/* A collective in flight. */
struct under_way {
	enum kind kind;
	const struct data *data;
	bool in_place;
	int root;
	uint8_t *out;
	trib_request *request;
	_Atomic uint64_t *hash;
};

/* Each result is the same on all ranks, also if some of them had to repeat a part of it. */
static void same_check(const struct under_way *flight)
{
	uint64_t hash = 0xcbf29ce484222325, before = 0;

	for (size_t i = 0; i < flight->data->bytes; i++)
		hash = (hash ^ flight->out[i]) * 0x100000001b3;
	demand(atomic_compare_exchange_strong(flight->hash, &before, hash) || before == hash);
}

static const char *residual_name(const struct under_way *flight, char *name, size_t size)
{
	snprintf(name, size, "%p", (const void *)flight);
	return name;
}

static trib_status start_short(struct rank *rank, struct under_way *flight, const void *send)
{
	const struct data *data = flight->data;
	trib_call call = TRIB_CALL_INIT;
	char name[32];

	call.wire_bits = 8;
	call.residual = flight->kind == FED ? residual_name(flight, name, sizeof(name)) : NULL;
	return trib_iallreduce_with(rank->comm, send, flight->out, data->count, data->type,
	                            data->op, &call, &flight->request);
}

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
	case FED:
	case CHANCE:
		status = start_short(rank, flight, send);
		break;
	default:
		status = trib_ibarrier(rank->comm, &flight->request);
		break;
	}
	demand(status == TRIB_OK);
}

/* A vector of zeros, in 32 bits: the sum is what 8 bits took from all ranks before. */
static void check_residual(struct rank *rank, const struct under_way *flight)
{
	const struct data *data = flight->data;
	trib_call call = TRIB_CALL_INIT;
	float *sum = calloc(data->count, sizeof(*sum)), most = 0;
	char name[32];

	demand(sum);
	call.wire_bits = 32;
	call.residual = residual_name(flight, name, sizeof(name));
	demand(trib_allreduce_with(rank->comm, TRIB_IN_PLACE, sum, data->count, TRIB_F32, TRIB_SUM,
	                           &call) == TRIB_OK);
	for (size_t i = 0; i < data->count; i++) {
		if (i % 1000 == 0) { /* the scale of a block depends on its neighbours */
			most = 0;
			for (size_t k = i < 400 ? 0 : i - 400; k < i + 1400 && k < data->count; k++)
				most = fmaxf(most, data->sizes[k]);
		}
		demand(fabsf(sum[i] - data->lost[i]) <= most * 1e-6f);
	}
	free(sum);
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
	case FED:
		demand(memcmp(flight->out, data->expect8, data->bytes) == 0);
		check_residual(rank, flight);
		break;
	case CHANCE:
		same_check(flight);
		break;
	default:
		break;
	}
	/* The buffer belongs to the user again: a late access of the library would be an error. */
	memset(flight->out, 0x5a, RANKS * data->bytes);
	free(flight->out);
}

static void round_body(struct rank *rank, unsigned round, uint64_t seed)
{
	struct job *job = rank->job;
	struct under_way flights[AT_ONCE];
	unsigned n = 1 + (unsigned)(mix(seed) % AT_ONCE);

	for (unsigned i = 0; i < n; i++) {
		uint64_t own = mix(seed + 10 * i + 1);

		flights[i] = (struct under_way){ .kind = (enum kind)(own % KINDS),
			                         .data = &job->data[own / 64 % job->cases],
			                         .in_place = own / 8 % 2,
			                         .root = (int)(own / 16 % RANKS),
			                         .hash = &job->hashes[round][i] };
		if (flights[i].kind >= FED && !may_be_short(flights[i].data))
			flights[i].kind = ALLREDUCE;
		/* Ranks are not synchronized. */
		if (mix(own + (uint64_t)rank->rank) % 8 == 0)
			nap_ms((unsigned)(mix(own) % 5));
		flight_start(rank, &flights[i]);
	}
	for (unsigned i = 0; i < n; i++)
		flight_end(rank, &flights[i]);
	demand(trib_drop_residual(rank->comm, NULL) == TRIB_OK); /* the next names mean others */
}

static void recover_body(struct rank *rank)
{
	struct job *job = rank->job;

	if (rank->rank == 0)
		for (unsigned i = 0; i < job->cases; i++)
			data_make(&job->data[i], rank->comm, mix(job->seed + i));
	pthread_barrier_wait(&job->barrier);
	for (unsigned i = 0; i < job->rounds; i++) {
		round_body(rank, i, mix(job->seed + 1000 + i));
		if (rank->rank == 0)
			atomic_store(&job->done, i + 1);
	}
	/* A run whose plan never changed proves nothing. */
	for (unsigned i = job->rounds;; i++) {
		pthread_barrier_wait(&job->barrier);
		if (rank->rank == 0)
			job->more =
				i < ROUNDS_MAX && fake_controller_generation(&job->controller) == 1;
		pthread_barrier_wait(&job->barrier);
		if (!job->more)
			break;
		round_body(rank, i, mix(job->seed + 1000 + i));
	}
	atomic_store(&job->ended, true);
}

static void *kill_main(void *argument)
{
	struct job *job = argument;

	unsigned last = 0, pause = test_is_short() ? 60 : 200;

	for (unsigned i = 0; !atomic_load(&job->ended); i++) {
		unsigned done = atomic_load(&job->done);

		/*
		 * The first kill comes soon, because a short run has few. Later ones mostly come
		 * while ranks work, sometimes while they recover from the last one.
		 */
		nap_ms((unsigned)(mix(job->seed + 77 * i) % (i ? pause : 20)));
		if (atomic_load(&job->ended))
			break;
		if (job->leave && !done) {
			i--; /* no effect while ranks are still joining */
			continue;
		}
		if (i && done == last && mix(job->seed + 78 * i) % 8)
			continue;
		last = done;
		if (job->leave)
			fake_controller_drain_one(&job->controller, mix(job->seed + i));
		else
			fake_controller_kill_one(&job->controller, mix(job->seed + i));
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
	job->cases = test_is_short() ? CASES_SHORT : CASES;
	job->seed = given ? strtoull(given, NULL, 0) : clock_now();
	job->rounds = rounds ? (unsigned)atoi(rounds)
	                     : (unsigned)test_count("rounds", test_is_long() ? 300 : 100, 8);
	demand(job->rounds <= ROUNDS_MAX);
	print_message("seed %llu\n", (unsigned long long)job->seed);
	fake_controller_start(&job->controller, trees + 2, trees, deep);
	pthread_barrier_init(&job->barrier, NULL, RANKS);
	options.controller = job->controller.address;
	options.lanes = lanes;
	options.timeout_s = 30;
	demand(pthread_create(&killer, NULL, kill_main, job) == 0);
	cluster_run(&nowhere, RANKS, &options, recover_body, job);
	demand(pthread_join(killer, NULL) == 0);
	print_message("%u rounds, %u plans\n", job->rounds,
	              fake_controller_generation(&job->controller));
	assert_true(fake_controller_generation(&job->controller) > 1);
	fake_controller_stop(&job->controller);
	pthread_barrier_destroy(&job->barrier);
	for (unsigned i = 0; i < CASES; i++) {
		free(job->data[i].expect);
		free(job->data[i].expect8);
		free(job->data[i].lost);
		free(job->data[i].sizes);
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

/* Any aggregator of a tree may die: a leaf or the root. */
static void test_deep_trees(void **state)
{
	(void)state;
	recover_run(2, 1, true, false);
}

/* Aggregators are told to leave and stay alive: the next plan may use them again. */
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

/* ---- a call that not all ranks have made ---- */

#define EARLY_COUNT 5000u /* enough bytes for a trial of ways, which begins with a vote */

struct early_job {
	struct fake_controller controller;
	trib_comm *comms[RANKS];
	pthread_barrier_t barrier;
};

static bool has_posted(trib_comm *comm)
{
	bool posted;

	pthread_mutex_lock(&comm->lock);
	posted = comm->posts > 0;
	pthread_mutex_unlock(&comm->lock);
	return posted;
}

static bool has_recovered(trib_comm *comm)
{
	bool recovered;

	pthread_mutex_lock(&comm->lock);
	recovered = comm->config.generation > 1 && !comm->recovering;
	pthread_mutex_unlock(&comm->lock);
	return recovered;
}

static void early_body(struct rank *rank)
{
	struct early_job *job = rank->job;
	int32_t vector[EARLY_COUNT];

	job->comms[rank->rank] = rank->comm;
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == RANKS - 1) {
		for (unsigned r = 0; r < RANKS - 1; r++)
			while (!has_posted(job->comms[r]))
				nap_ms(1);
		fake_controller_kill_one(&job->controller, 0);
		while (!has_recovered(rank->comm))
			nap_ms(1);
	}
	for (unsigned i = 0; i < EARLY_COUNT; i++)
		vector[i] = (int32_t)i + rank->rank;
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, EARLY_COUNT, TRIB_I32, TRIB_SUM) ==
	       TRIB_OK);
	for (unsigned i = 0; i < EARLY_COUNT; i++)
		demand(vector[i] == (int32_t)(RANKS * i + RANKS * (RANKS - 1) / 2));
}

/* The aggregator dies when all ranks but one have called. The last one calls in the new trees. */
static void test_early_callers(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct early_job *job = calloc(1, sizeof(*job));
	struct cluster nowhere = { .address = "127.0.0.1:1" };

	(void)state;
	demand(job);
	fake_controller_start(&job->controller, 3, 1, false);
	pthread_barrier_init(&job->barrier, NULL, RANKS);
	options.controller = job->controller.address;
	options.timeout_s = 30;
	cluster_run(&nowhere, RANKS, &options, early_body, job);
	fake_controller_stop(&job->controller);
	pthread_barrier_destroy(&job->barrier);
	free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_early_callers), cmocka_unit_test(test_one_star),
		cmocka_unit_test(test_stripes),       cmocka_unit_test(test_deep_trees),
		cmocka_unit_test(test_leaving),       cmocka_unit_test(test_leaving_deep),
	};

	cluster_environment();
	setenv("TRIB_MTU", "1500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
