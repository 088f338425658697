/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of one sum: the width on the wire, and error feedback. The sums are exact to the bit, or
 * nothing is lost over many steps; wrong options get a sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "reduce_reference.h"
#include "worker/comm/comm.h" /* for the agreed payload, which is the block of floats */

#include <math.h>
#include <string.h>

#define RANKS 3
#define COUNT 40000u

static void fill(int rank, float *vector, size_t count)
{
	reduce_fill(TRIB_F32, REDUCE_FINITE, 77 + (uint64_t)rank, vector, count);
}

static void expect(const trib_comm *comm, unsigned bits, trib_op op, size_t count, void *out)
{
	float *in[RANKS];

	for (int r = 0; r < RANKS; r++) {
		in[r] = malloc(count * sizeof(float));
		demand(in[r]);
		fill(r, in[r], count);
	}
	reduce_expect(TRIB_F32, op, (const void *const *)in, RANKS, count, comm->payload, bits,
	              out);
	for (int r = 0; r < RANKS; r++)
		free(in[r]);
}

/* Each call has its own width, whatever the communicator's is. */
static void width_body(struct rank *rank)
{
	static const int widths[] = { 0, 16, 32 };
	static _Thread_local float in[COUNT], out[COUNT], right[COUNT];
	unsigned by_default = rank->comm->config.wire_bits;

	demand(by_default == (unsigned)rank->options.wire_bits);
	fill(rank->rank, in, COUNT);
	for (size_t i = 0; i < countof(widths); i++)
		for (trib_op op = TRIB_SUM; op <= TRIB_AVG; op++) {
			trib_call call = TRIB_CALL_INIT;

			call.wire_bits = widths[i];
			expect(rank->comm, widths[i] ? (unsigned)widths[i] : by_default, op, COUNT,
			       right);
			demand(trib_allreduce_with(rank->comm, in, out, COUNT, TRIB_F32, op,
			                           &call) == TRIB_OK);
			demand(memcmp(out, right, sizeof(out)) == 0);
			memset(out, 0, sizeof(out));
			demand(trib_reduce_with(rank->comm, in, out, COUNT, TRIB_F32, op, 1,
			                        &call) == TRIB_OK);
			demand(rank->rank != 1 || memcmp(out, right, sizeof(out)) == 0);
		}
}

static void test_width(void **state)
{
	struct cluster cluster;

	(void)state;
	for (int bits = 0; bits <= 32; bits += 16) {
		trib_options options = TRIB_OPTIONS_INIT;

		options.wire_bits = bits;
		cluster_start(&cluster, 2, 0);
		cluster_run(&cluster, RANKS, &options, width_body, NULL);
		cluster_stop(&cluster);
	}
}

#define STEPS 40

/* How far the mean of the sums of many steps is from the right one, at most. */
static double worst_mean(struct rank *rank, const trib_call *call, bool scatter)
{
	static _Thread_local float in[RANKS * COUNT], out[RANKS * COUNT];
	static _Thread_local double sums[COUNT];
	size_t first = scatter ? (size_t)rank->rank * COUNT : 0;
	double worst = 0;

	memset(sums, 0, sizeof(sums));
	for (size_t i = 0; i < RANKS * COUNT; i++)
		in[i] = (float)(mix(i * 8 + (size_t)rank->rank) % 960) / 1000;
	for (int step = 0; step < STEPS; step++) {
		if (scatter)
			demand(trib_reduce_scatter_with(rank->comm, TRIB_IN_PLACE,
			                                memcpy(out, in, sizeof(out)), COUNT,
			                                TRIB_F32, TRIB_SUM, call) == TRIB_OK);
		else
			demand(trib_allreduce_with(rank->comm, in, out, COUNT, TRIB_F32, TRIB_SUM,
			                           call) == TRIB_OK);
		for (size_t i = 0; i < COUNT; i++)
			sums[i] += (double)out[i];
	}
	for (size_t i = 0; i < COUNT; i++) {
		double right = 0;

		for (size_t r = 0; r < RANKS; r++)
			right += (double)(mix((first + i) * 8 + r) % 960) / 1000;
		worst = fmax(worst, fabs(sums[i] / STEPS - right));
	}
	return worst;
}

/*
 * Elements are below 31/32, and three ranks have 5 bits each: a unit is 1/32. With error feedback,
 * all steps together are off by what the residuals hold; rounded by chance, they are off by more,
 * but still less than always in the same direction.
 */
static void residual_body(struct rank *rank)
{
	const double unit = 1.0 / 32;
	trib_call call = TRIB_CALL_INIT;

	call.wire_bits = 8;
	demand(worst_mean(rank, &call, false) < RANKS * unit * 0.4);
	call.residual = "weights";
	demand(worst_mean(rank, &call, false) < RANKS * unit * 1.01 / STEPS);
	call.residual = "scattered";
	demand(worst_mean(rank, &call, true) < RANKS * unit * 1.01 / STEPS);
	call.wire_bits = 32; /* all of the residual arrives, and a new one is nearly 0 */
	call.residual = "weights";
	demand(worst_mean(rank, &call, false) < RANKS * unit * 1.01 / STEPS);
	demand(worst_mean(rank, &call, false) < 1e-6);
	demand(trib_drop_residual(rank->comm, "weights") == TRIB_OK);
	demand(trib_drop_residual(rank->comm, "unknown") == TRIB_OK);
	demand(trib_drop_residual(rank->comm, NULL) == TRIB_OK);
}

static void test_residual(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct cluster cluster;

	(void)state;
	options.lanes = 2; /* both lanes write parts of the residual */
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, RANKS, &options, residual_body, NULL);
	cluster_stop(&cluster);
}

/* NaN and infinities arrive, and leave no residual behind. */
static void special_body(struct rank *rank)
{
	static _Thread_local float in[COUNT], out[COUNT];
	trib_call call = TRIB_CALL_INIT;

	call.wire_bits = 16;
	call.residual = "r";
	for (int step = 0; step < 3; step++) {
		for (size_t i = 0; i < COUNT; i++)
			in[i] = step == 0 && i % 7 == (size_t)rank->rank ? INFINITY : 1.1f;
		demand(trib_allreduce_with(rank->comm, in, out, COUNT, TRIB_F32, TRIB_AVG, &call) ==
		       TRIB_OK);
		for (size_t i = 0; i < COUNT; i++)
			demand(step == 0 && i % 7 < RANKS ? isinf(out[i])
			                                  : fabsf(out[i] - 1.1f) < 0.001f);
	}
	/* The largest numbers: an element and its residual must not overflow together. */
	for (int step = 0; step < 3; step++) {
		for (size_t i = 0; i < COUNT; i++)
			in[i] = (i % 2 ? -1 : 1) * 3.4028235e38f;
		demand(trib_allreduce_with(rank->comm, in, out, COUNT, TRIB_F32, TRIB_AVG, &call) ==
		       TRIB_OK);
		for (size_t i = 0; i < COUNT; i++)
			demand(isfinite(out[i]));
	}
}

static void test_special(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, RANKS, &(trib_options)TRIB_OPTIONS_INIT, special_body, NULL);
	cluster_stop(&cluster);
}

static void wrong_body(struct rank *rank)
{
	static _Thread_local float in[COUNT], out[COUNT];
	trib_comm *comm = rank->comm;
	trib_request *request = NULL, *second = NULL;
	trib_call call = TRIB_CALL_INIT;

	call.wire_bits = 24;
	demand(trib_allreduce_with(comm, in, out, COUNT, TRIB_F32, TRIB_SUM, &call) ==
	       TRIB_ERR_ARGUMENT);
	demand(error_has("24") && error_has("8, 16 or 32"));
	call = (trib_call)TRIB_CALL_INIT;
	call.struct_size = 0;
	demand(trib_allreduce_with(comm, in, out, COUNT, TRIB_F32, TRIB_SUM, &call) ==
	       TRIB_ERR_ARGUMENT);
	call = (trib_call)TRIB_CALL_INIT;
	call.residual = "r";
	demand(trib_allreduce_with(comm, in, out, COUNT, TRIB_BF16, TRIB_SUM, &call) ==
	       TRIB_ERR_ARGUMENT);
	demand(error_has("\"r\"") && error_has("f32"));
	demand(trib_allreduce_with(comm, in, out, COUNT, TRIB_F32, TRIB_MAX, &call) ==
	       TRIB_ERR_ARGUMENT);
	demand(trib_iallreduce_with(comm, in, out, COUNT, TRIB_F32, TRIB_SUM, &call, &request) ==
	       TRIB_OK);
	demand(trib_iallreduce_with(comm, in, out, COUNT, TRIB_F32, TRIB_SUM, &call, &second) ==
	       TRIB_ERR_ARGUMENT);
	demand(!second && error_has("has not ended"));
	demand(trib_drop_residual(comm, "r") == TRIB_ERR_ARGUMENT && error_has("has not ended"));
	demand(trib_wait(&request, -1) == TRIB_OK);
	demand(trib_allreduce_with(comm, in, out, COUNT - 1, TRIB_F32, TRIB_SUM, &call) ==
	       TRIB_ERR_ARGUMENT);
	demand(error_has("40000") && error_has("39999"));
	demand(trib_drop_residual(comm, "r") == TRIB_OK);
	demand(trib_allreduce_with(comm, in, out, COUNT - 1, TRIB_F32, TRIB_SUM, &call) == TRIB_OK);
	demand(trib_drop_residual(NULL, "r") == TRIB_ERR_ARGUMENT);
}

static void test_wrong(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct cluster cluster;
	trib_comm *comm = NULL;

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run(&cluster, RANKS, &options, wrong_body, NULL);
	cluster_stop(&cluster);
	options.wire_bits = 12;
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_ARGUMENT);
	assert_true(error_has("wire_bits is 12"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_residual),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_wrong),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
