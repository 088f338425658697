/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures are reported with the right code, on the right ranks, by name and in time: late ranks,
 * ranks that leave, mismatched calls, and an aggregator that refuses, ends or never existed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster.h"
#include "worker/comm/comm.h"

#include <pthread.h>
#include <string.h>

static double seconds(void)
{
	return (double)clock_now() / 1e9;
}

static trib_options within(double timeout_s)
{
	trib_options options = TRIB_OPTIONS_INIT;

	options.timeout_s = timeout_s;
	return options;
}

static void in_cluster(int ranks, double timeout_s, void (*body)(struct rank *rank))
{
	trib_options options = within(timeout_s);
	struct cluster cluster;

	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, ranks, &options, body, &cluster);
	cluster_stop(&cluster);
}

/* A deadline passes: the error names the late ranks, and the request continues. */
static void late_body(struct rank *rank)
{
	uint32_t vector[5000];
	trib_request *request;
	double start = seconds();

	for (unsigned i = 0; i < 5000; i++)
		vector[i] = i;
	if (rank->rank == 1)
		nap_ms(700);
	demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vector, 5000, TRIB_U32, TRIB_SUM,
	                       &request) == TRIB_OK);
	if (rank->rank != 1) {
		demand(trib_test(&request) == TRIB_IN_PROGRESS && request);
		demand(trib_wait(&request, 0.3) == TRIB_ERR_TIMEOUT && request);
		demand(seconds() - start > 0.29 && seconds() - start < 0.65);
		demand(error_has("rank 1") && !error_has("rank 0,") && error_has("allreduce"));
		demand(trib_wait(&request, 0) == TRIB_ERR_TIMEOUT && request);
	}
	demand(trib_wait(&request, -1) == TRIB_OK && !request);
	for (unsigned i = 0; i < 5000; i++)
		demand(vector[i] == 3 * i);
}

static void test_late_rank(void **state)
{
	(void)state;
	in_cluster(3, 20, late_body);
}

static void *wait_long(void *request)
{
	demand(trib_wait(request, -1) == TRIB_OK);
	return NULL;
}

/* One thread waits for a request. That does not hold up a thread that waits for an earlier one. */
static void two_threads_body(struct rank *rank)
{
	uint32_t vectors[2][16] = { { 0 } };
	bool late = rank->rank == 1;
	trib_request *requests[2];
	pthread_t thread;
	double start;

	demand(trib_barrier(rank->comm) == TRIB_OK);
	start = seconds();
	for (unsigned i = 0; i < 2; i++) {
		nap_ms(late ? 700 + 1300 * i : 0);
		demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vectors[i], 16, TRIB_U32,
		                       TRIB_SUM, &requests[i]) == TRIB_OK);
	}
	demand(!pthread_create(&thread, NULL, wait_long, &requests[1]));
	if (!late) {
		nap_ms(50);
		demand(trib_wait(&requests[0], 0.3) == TRIB_ERR_TIMEOUT);
		demand(seconds() - start > 0.34 && seconds() - start < 0.65);
	}
	demand(trib_wait(&requests[0], -1) == TRIB_OK);
	demand(late || seconds() - start < 1.7);
	pthread_join(thread, NULL);
}

static void test_two_threads(void **state)
{
	(void)state;
	in_cluster(3, 20, two_threads_body);
}

/* In a broadcast, only the root can be missing. */
static void absent_root_body(struct rank *rank)
{
	uint8_t bytes[3000] = { 0 };
	trib_request *request;

	if (rank->rank == 1)
		nap_ms(1500);
	demand(trib_ibroadcast(rank->comm, bytes, sizeof(bytes), TRIB_U8, 1, &request) == TRIB_OK);
	if (rank->rank != 1) {
		demand(trib_wait(&request, 0.9) == TRIB_ERR_TIMEOUT);
		demand(error_has("waiting for rank 1 "));
	}
	demand(trib_wait(&request, -1) == TRIB_OK);
}

static void test_absent_root(void **state)
{
	(void)state;
	in_cluster(3, 20, absent_root_body);
}

/* In steps, a rank hears from few others. All know the one that has not called. */
static void absent_in_steps_body(struct rank *rank)
{
	uint8_t part[4000] = { 0 }, whole[5 * sizeof(part)];
	trib_request *request;

	/* Ranks meet. */
	demand(trib_allgather(rank->comm, part, whole, sizeof(part), TRIB_U8) == TRIB_OK);
	if (rank->rank == 3)
		nap_ms(1500);
	demand(trib_iallgather(rank->comm, part, whole, sizeof(part), TRIB_U8, &request) ==
	       TRIB_OK);
	if (rank->rank != 3) {
		demand(trib_wait(&request, 0.9) == TRIB_ERR_TIMEOUT);
		demand(error_has("waiting for rank 3 "));
	}
	demand(trib_wait(&request, -1) == TRIB_OK);
}

static void test_absent_in_steps(void **state)
{
	(void)state;
	in_cluster(5, 20, absent_in_steps_body);
}

/*
 * A rank that gives up at its deadline tells the others which ranks it waited for, and is not
 * blamed itself.
 */
static void gave_up_body(struct rank *rank)
{
	float vector[100] = { 0 };
	trib_request *request;
	trib_status status;

	if (rank->rank == 2) {
		nap_ms(3000);
		return;
	}
	if (rank->rank == 0) {
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, 100, TRIB_F32, TRIB_SUM) ==
		       TRIB_ERR_TIMEOUT);
		return; /* and this rank leaves */
	}
	demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vector, 100, TRIB_F32, TRIB_SUM,
	                       &request) == TRIB_OK);
	while ((status = trib_wait(&request, 3)) == TRIB_ERR_TIMEOUT && request)
		;
	demand(status == TRIB_ERR_TIMEOUT && error_has("waiting for rank 2"));
}

static void test_gave_up(void **state)
{
	(void)state;
	in_cluster(3, 2, gave_up_body); /* ranks on a busy machine may be silent for half of it */
}

/* Requests that were never awaited end with the communicator, with their results. */
static void unwaited_body(struct rank *rank)
{
	uint32_t scattered[3 * 500], sum[100];
	trib_comm *comm;
	trib_request *one, *two;
	trib_options options = rank->options;

	demand(trib_init(&comm, &options) == TRIB_OK);
	for (unsigned i = 0; i < 1500; i++)
		scattered[i] = i;
	for (unsigned i = 0; i < 100; i++)
		sum[i] = i;
	demand(trib_ireduce_scatter(comm, TRIB_IN_PLACE, scattered, 500, TRIB_U32, TRIB_SUM,
	                            &one) == TRIB_OK);
	demand(trib_iallreduce(comm, TRIB_IN_PLACE, sum, 100, TRIB_U32, TRIB_SUM, &two) == TRIB_OK);
	demand(trib_finalize(comm) == TRIB_OK);
	for (unsigned i = 0; i < 500; i++)
		demand(scattered[i] == 3 * (500 * (unsigned)rank->rank + i));
	for (unsigned i = 0; i < 100; i++)
		demand(sum[i] == 3 * i);
}

static void test_unwaited(void **state)
{
	struct cluster cluster;
	trib_options options = TRIB_OPTIONS_INIT;

	(void)state;
	options.timeout_s = 10;
	cluster_start(&cluster, 2, 0);
	cluster_run_bare(&cluster, 3, &options, unwaited_body, NULL);
	cluster_stop(&cluster);
}

/* The communicator's deadline ends a blocking call and the communicator. */
static void never_body(struct rank *rank)
{
	float vector[100] = { 0 };
	trib_request *request;
	double start = seconds();

	if (rank->rank == 1) {
		nap_ms(1800);
		return;
	}
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, 100, TRIB_F32, TRIB_SUM) ==
	       TRIB_ERR_TIMEOUT);
	demand(seconds() - start > 0.9 && seconds() - start < 1.7);
	demand(error_has("rank 1"));
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, 100, TRIB_F32, TRIB_SUM) < 0);
	demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vector, 100, TRIB_F32, TRIB_SUM,
	                       &request) < 0 &&
	       !request);
}

static void test_deadline(void **state)
{
	(void)state;
	in_cluster(2, 1, never_body);
}

/* A request that is not awaited again, and a failure while several are in flight. */
static void leaver_body(struct rank *rank)
{
	const bool ring = getenv("TRIB_TEST_RING");
	uint64_t vectors[4][3000] = { { 0 } };
	trib_request *requests[4];
	double start = seconds();

	/* Without an aggregator, a rank that is late may hear that rank 2 has left from the third
	 * one, before it gets rank 2's own message. */
	demand(trib_barrier(rank->comm) == TRIB_OK || (ring && error_has("rank 2")));
	if (rank->rank == 2)
		return; /* cluster_run finalizes */
	for (unsigned k = 0; k < 4; k++)
		demand(trib_iallreduce(rank->comm, TRIB_IN_PLACE, vectors[k], 3000, TRIB_U64,
		                       TRIB_SUM, &requests[k]) == TRIB_OK ||
		       ((k > 0 || ring) && error_has("rank 2")));
	for (unsigned k = 0; k < 4; k++) {
		if (!requests[k])
			continue;
		demand(trib_wait(&requests[k], -1) == TRIB_ERR_PEER && !requests[k]);
		demand(error_has("rank 2"));
	}
	demand(seconds() - start < 5);
	demand(trib_finalize(rank->comm) == TRIB_ERR_PEER);
	rank->comm = NULL;
}

static void test_early_leaver(void **state)
{
	(void)state;
	in_cluster(3, 20, leaver_body);
}

struct mismatch {
	size_t count[2];
	trib_type type[2];
	trib_op op[2];
	unsigned wire[2]; /* TRIB_WIRE in bits; 0: auto */
};

/* Two of three must see it: the third may learn of it before it returns from joining. */
static void mismatch_body(struct rank *rank)
{
	const struct mismatch *m = rank->job;
	int odd = rank->rank == 1;
	void *vector = calloc(m->count[odd] + 1, 8);
	double start;
	trib_status status;

	demand(vector);
	status = trib_init(&rank->comm, &rank->options);
	demand(status == TRIB_OK || rank->rank != 1);
	if (status == TRIB_OK) /* as if the processes had different settings */
		rank->comm->config.wire_bits = m->wire[odd];
	start = seconds();
	if (status == TRIB_OK)
		status = trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, m->count[odd],
		                        m->type[odd], m->op[odd]);
	demand(status == TRIB_ERR_MISMATCH);
	demand(error_has("rank 1") && (error_has("rank 0") || error_has("rank 2")));
	demand(seconds() - start < 5);
	trib_finalize(rank->comm);
	free(vector);
}

static void all_mismatch(const struct mismatch *cases, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		trib_options options = within(20);
		struct cluster cluster;

		cluster_start(&cluster, 2, 0);
		cluster_run_bare(&cluster, 3, &options, mismatch_body,
		                 (void *)(uintptr_t)&cases[i]);
		cluster_stop(&cluster);
	}
}

static void test_mismatch(void **state)
{
	static const struct mismatch cases[] = {
		{ { 1000, 2000 }, { TRIB_F32, TRIB_F32 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		{ { 1000, 1002 }, { TRIB_I32, TRIB_I32 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		{ { 10000, 20000 }, { TRIB_I64, TRIB_I64 }, { TRIB_MAX, TRIB_MAX }, { 0 } },
		{ { 1000, 1000 }, { TRIB_I32, TRIB_I64 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		{ { 1000, 1000 }, { TRIB_F32, TRIB_F64 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		{ { 1000, 1000 }, { TRIB_F32, TRIB_I32 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		{ { 1000, 1000 }, { TRIB_U8, TRIB_U8 }, { TRIB_MIN, TRIB_MAX }, { 0 } },
		{ { 0, 5 }, { TRIB_U8, TRIB_U8 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		/* one engine has the vector of rank 1, another those of the others */
		{ { 100, 100000 }, { TRIB_F32, TRIB_F32 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
		{ { 100000, 100 }, { TRIB_F32, TRIB_F32 }, { TRIB_SUM, TRIB_SUM }, { 0 } },
	};

	(void)state;
	all_mismatch(cases, countof(cases));
}

/*
 * Ranks with different values of TRIB_WIRE must not get a wrong sum. With this MTU, a packet of
 * 8-bit integers has the classes of two packets of 16-bit integers. If a vector fills its packets,
 * then fragments have the same lengths.
 */
static void test_wire_mismatch(void **state)
{
	enum { MTU = 1484, PAYLOAD = 1432 };
	static const struct mismatch cases[] = {
		{ { 1 << 20, 1 << 20 },
		  { TRIB_F32, TRIB_F32 },
		  { TRIB_SUM, TRIB_SUM },
		  { 32, 16 } },
		{ { 1 << 20, 1 << 20 }, { TRIB_F32, TRIB_F32 }, { TRIB_AVG, TRIB_AVG }, { 0, 16 } },
		{ { 16385, 16385 }, { TRIB_BF16, TRIB_BF16 }, { TRIB_SUM, TRIB_SUM }, { 0, 32 } },
		{ { 24 * PAYLOAD, 24 * PAYLOAD },
		  { TRIB_F32, TRIB_F32 },
		  { TRIB_SUM, TRIB_SUM },
		  { 8, 16 } },
		{ { 24 * PAYLOAD, 24 * PAYLOAD },
		  { TRIB_F32, TRIB_F32 },
		  { TRIB_SUM, TRIB_SUM },
		  { 16, 8 } },
	};
	char mtu[16];

	(void)state;
	snprintf(mtu, sizeof(mtu), "%d", MTU);
	setenv("TRIB_MTU", mtu, 1);
	all_mismatch(cases, countof(cases));
	unsetenv("TRIB_MTU");
}

/* Two ranks call as the root. The first may not notice; the next call does. */
static void roots_body(struct rank *rank)
{
	uint8_t bytes[100] = { 0 };
	trib_status status = trib_broadcast(rank->comm, bytes, 100, TRIB_U8, rank->rank);

	if (status == TRIB_OK)
		status = trib_barrier(rank->comm);
	demand(status == TRIB_ERR_MISMATCH);
	demand(error_has("rank 0") && error_has("rank 1"));
}

static void test_two_roots(void **state)
{
	(void)state;
	in_cluster(2, 20, roots_body);
}

/* The aggregator ends during a collective. */
static void orphan_body(struct rank *rank)
{
	struct cluster *cluster = rank->job;
	float vector[1000] = { 0 };
	double start;
	trib_status status;

	demand(trib_barrier(rank->comm) == TRIB_OK);
	if (rank->rank == 0) {
		nap_ms(100);
		cluster_stop(cluster);
	} else {
		nap_ms(300);
	}
	start = seconds();
	status = trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, 1000, TRIB_F32, TRIB_SUM);
	demand(status == TRIB_ERR_AGGREGATOR);
	demand(error_has("the aggregator at 127.0.0.1:") && seconds() - start < 3);
}

static void test_aggregator_ends(void **state)
{
	trib_options options = within(4);
	struct cluster cluster;

	(void)state;
	if (getenv("TRIB_TEST_RING"))
		return;
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, 2, &options, orphan_body, &cluster);
}

static trib_status try_init(const char *address, int rank, int size, int lanes, double timeout_s)
{
	trib_options options = within(timeout_s);
	trib_comm *comm = (trib_comm *)&options;
	trib_status status;

	options.aggregator = address;
	options.has_rank = 1;
	options.rank = rank;
	options.size = size;
	options.lanes = lanes;
	status = trib_init(&comm, &options);
	demand((status == TRIB_OK) == (comm != NULL));
	trib_finalize(comm);
	return status;
}

static void test_no_start(void **state)
{
	struct cluster cluster;
	double start = seconds();
	trib_status status;

	(void)state;
	assert_int_equal(try_init("127.0.0.1:1", 0, 2, 1, 0.5), TRIB_ERR_AGGREGATOR);
	demand(error_has("127.0.0.1:1"));
	cluster_start(&cluster, 2, 0);
	setenv("TRIB_COOKIE", "0000000000000bad", 1);
	status = try_init(cluster.address, 0, 2, 1, 0.5);
	assert_true(status == TRIB_ERR_REFUSED || status == TRIB_ERR_AGGREGATOR); /* by tcp */
	demand(error_has("TRIB_COOKIE"));
	setenv("TRIB_COOKIE", "no hex", 1);
	assert_int_equal(try_init(cluster.address, 0, 2, 1, 0.5), TRIB_ERR_CONFIG);
	setenv("TRIB_COOKIE", CLUSTER_COOKIE_TEXT, 1);
	assert_int_equal(try_init(cluster.address, 0, 3, 1, 0.5), TRIB_ERR_TIMEOUT);
	demand(error_has("rank 1, 2"));
	/* A second attempt, with another size. */
	assert_int_equal(try_init(cluster.address, 1, 4, 1, 0.5), TRIB_ERR_TIMEOUT);
	demand(seconds() - start < 4);
	aggregator_stop(cluster.aggregator);
	assert_true(cluster_count(&cluster, "drops", "cookie") > 0);
	aggregator_free(cluster.aggregator);
}

static void test_init_arguments(void **state)
{
	trib_options options = within(0.5);
	trib_comm *comm = NULL;

	(void)state;
	assert_int_equal(trib_init(NULL, &options), TRIB_ERR_ARGUMENT);
	assert_int_equal(try_init("127.0.0.1:1", 2, 2, 1, 0.5), TRIB_ERR_ARGUMENT);
	assert_int_equal(try_init("127.0.0.1:1", -1, 2, 1, 0.5), TRIB_ERR_ARGUMENT);
	assert_int_equal(try_init("127.0.0.1:1", 0, 0, 1, 0.5), TRIB_ERR_ARGUMENT);
	assert_int_equal(try_init("127.0.0.1:1", 0, 65, 1, 0.5), TRIB_ERR_CONFIG);
	assert_int_equal(try_init("127.0.0.1:1", 0, 2, 17, 0.5), TRIB_ERR_CONFIG);
	assert_int_equal(try_init("127.0.0.1:1", 0, 2, -1, 0.5), TRIB_ERR_CONFIG);
	assert_int_equal(try_init("127.0.0.1:1", 0, 2, 1, 0.01), TRIB_ERR_CONFIG);
	assert_int_equal(try_init("127.0.0.1:99999", 0, 2, 1, 0.5), TRIB_ERR_CONFIG);
	options.struct_size = 0;
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_ARGUMENT);
	options.struct_size = sizeof(options);
	options.has_rank = 1;
	options.size = 2;
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_CONFIG); /* no aggregator */
	assert_null(comm);
	assert_int_equal(trib_finalize(NULL), TRIB_OK);
}

static void arguments_body(struct rank *rank)
{
	trib_comm *comm = rank->comm, *other;
	trib_request *request = (trib_request *)&comm, *none = NULL;
	trib_stats stats = { 0 };
	uint32_t x = 1, y = 0;

	demand(trib_allreduce(NULL, &x, &y, 1, TRIB_U32, TRIB_SUM) == TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, NULL, &y, 1, TRIB_U32, TRIB_SUM) == TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, &x, NULL, 1, TRIB_U32, TRIB_SUM) == TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, TRIB_IN_PLACE, NULL, 1, TRIB_U32, TRIB_SUM) ==
	       TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, &x, &y, 1, (trib_type)12, TRIB_SUM) == TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, &x, &y, 1, (trib_type)-1, TRIB_SUM) == TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, &x, &y, 1, TRIB_U32, (trib_op)4) == TRIB_ERR_ARGUMENT);
	demand(trib_allreduce(comm, &x, &y, SIZE_MAX / 2, TRIB_U32, TRIB_SUM) == TRIB_ERR_ARGUMENT);
	demand(trib_allgather(comm, &x, &y, SIZE_MAX / 8, TRIB_U32) == TRIB_ERR_ARGUMENT);
	demand(trib_broadcast(comm, &x, 1, TRIB_U32, 2) == TRIB_ERR_ARGUMENT);
	demand(trib_broadcast(comm, &x, 1, TRIB_U32, -1) == TRIB_ERR_ARGUMENT);
	demand(trib_reduce(comm, &x, NULL, 1, TRIB_U32, TRIB_SUM, rank->rank) == TRIB_ERR_ARGUMENT);
	demand(trib_iallreduce(comm, NULL, &y, 1, TRIB_U32, TRIB_SUM, &request) ==
	               TRIB_ERR_ARGUMENT &&
	       !request);
	demand(trib_iallreduce(comm, &x, &y, 1, TRIB_U32, TRIB_SUM, NULL) == TRIB_ERR_ARGUMENT);
	demand(trib_test(NULL) == TRIB_ERR_ARGUMENT && trib_test(&none) == TRIB_ERR_ARGUMENT);
	demand(trib_wait(NULL, 1) == TRIB_ERR_ARGUMENT && trib_wait(&none, 1) == TRIB_ERR_ARGUMENT);
	demand(trib_split(NULL, 0, 0, &other) == TRIB_ERR_ARGUMENT);
	demand(trib_split(comm, 0, 0, NULL) == TRIB_ERR_ARGUMENT);
	demand(trib_get_stats(comm, NULL) == TRIB_ERR_ARGUMENT);
	demand(trib_get_stats(comm, &stats) == TRIB_ERR_ARGUMENT);
	demand(trib_type_size((trib_type)99) == 0 && trib_type_size(TRIB_BF16) == 2);
	/* None of these calls sent anything, so the next calls match. */
	demand(trib_allreduce(comm, &x, &y, 1, TRIB_U32, TRIB_SUM) == TRIB_OK && y == 2);
	demand(trib_allreduce(comm, NULL, NULL, 0, TRIB_U32, TRIB_SUM) == TRIB_OK);
	demand(trib_reduce_scatter(comm, NULL, NULL, 0, TRIB_F32, TRIB_SUM) == TRIB_OK);
	demand(trib_allgather(comm, NULL, NULL, 0, TRIB_F64) == TRIB_OK);
	demand(trib_broadcast(comm, NULL, 0, TRIB_I8, 1) == TRIB_OK);
	demand(trib_reduce(comm, NULL, NULL, 0, TRIB_BF16, TRIB_AVG, 1) == TRIB_OK);
	/* A very long timeout must not overflow into a negative one. */
	demand(trib_ibarrier(comm, &request) == TRIB_OK && trib_wait(&request, 1e300) == TRIB_OK);
}

static void test_arguments(void **state)
{
	(void)state;
	in_cluster(2, 10, arguments_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_arguments),  cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_no_start),        cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_wire_mismatch),   cmocka_unit_test(test_two_roots),
		cmocka_unit_test(test_early_leaver),    cmocka_unit_test(test_late_rank),
		cmocka_unit_test(test_absent_root),     cmocka_unit_test(test_absent_in_steps),
		cmocka_unit_test(test_gave_up),         cmocka_unit_test(test_unwaited),
		cmocka_unit_test(test_two_threads),     cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_aggregator_ends),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
