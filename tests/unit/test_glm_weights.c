/* SPDX-License-Identifier: Apache-2.0 */
/* How a mini-batch changes weights: the rules, their order, and low precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/kernel/glm_kernel.h"
#include "glm/train/weights_loops.h"

#include <math.h>
#include <string.h>

#define N 37u

struct fixture {
	float x[N], h[N], low[N], step[N], pace[N], inverse[N];
	int32_t u[N];
	int64_t g[N];
};

static void fixture_fill(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	for (uint32_t j = 0; j < N; j++) {
		f->x[j] = (float)j / 8 - 2;
		f->pace[j] = 1;
		f->inverse[j] = 1;
		f->step[j] = 0.25f;
		f->g[j] = (int64_t)(j % 5) * 1000000 - 2000000;
	}
}

static void test_sgd(void **state)
{
	struct weights_step step = { .rate = 0.5, .quantum = 0x1p-20 };
	struct fixture f;
	struct weights w = { .x = f.x, .g = f.g, .pace = f.pace };

	(void)state;
	fixture_fill(&f);
	weights_update(&w, &step, 0, N);
	for (uint32_t j = 0; j < N; j++) {
		double gradient = ((double)(j % 5) * 1000000 - 2000000) * 0x1p-20;

		assert_true(f.x[j] == ((float)j / 8 - 2) - 0.5f * (float)gradient);
		assert_true(f.g[j] == 0);
	}
}

static void test_adagrad(void **state)
{
	struct weights_step step = { .rate = 0.5, .quantum = 0x1p-20 };
	struct fixture f;
	struct weights w = { .x = f.x, .h = f.h, .g = f.g, .pace = f.pace };

	(void)state;
	fixture_fill(&f);
	f.pace[1] = 2;
	weights_update(&w, &step, 0, N);
	/* The first step has the length of the rate, in the direction of the gradient. */
	assert_true(fabs((double)f.x[0] - (-2 + 0.5)) < 1e-6);
	assert_true(fabs((double)f.x[1] - (-1.875 + 2 * 0.5)) < 1e-6);
	assert_true(f.x[2] == -1.75f && f.h[2] == 0);
	f.g[0] = -2000000;
	weights_update(&w, &step, 0, N);
	assert_true(fabs((double)f.x[0] - (-1.5 + 0.5 / sqrt(2))) < 1e-6);
}

/* One by one, in any order and range, gives the same bits as at once. */
static void test_order(void **state)
{
	struct weights_step step = { .rate = 0.3, .quantum = 0x1p-16 / 7, .total = 12345 };

	(void)state;
	for (int mode = 0; mode < 4; mode++) {
		struct fixture a, b;
		struct weights wa = { .x = a.x, .g = a.g, .pace = a.pace },
			       wb = { .x = b.x, .g = b.g, .pace = b.pace };

		fixture_fill(&a);
		fixture_fill(&b);
		if (mode & 1) {
			wa.h = a.h;
			wb.h = b.h;
		}
		if (mode & 2) {
			a.low[3] = b.low[3] = -1;
			wa.u = a.u, wa.low = a.low, wa.step = a.step;
			wb.u = b.u, wb.low = b.low, wb.step = b.step;
		}
		weights_update(&wa, &step, 0, N);
		for (uint32_t j = N; j-- > 20;)
			weights_update_one(&wb, &step, j);
		weights_update(&wb, &step, 5, 20);
		weights_update(&wb, &step, 0, 5);
		assert_memory_equal(a.x, b.x, sizeof(a.x));
		assert_memory_equal(a.h, b.h, sizeof(a.h));
		assert_memory_equal(a.g, b.g, sizeof(a.g));
	}
}

/* A column by itself gets the u that the kernel gives to all. */
static void prepared_check(void)
{
	struct glm_matrix matrix = { .layout = GLM_SPARSE, .columns = N, .bits = 4 };
	struct weights_step none = { .rate = 0 };
	struct fixture a, b;
	struct weights w = {
		.x = a.x, .u = a.u, .g = a.g, .pace = a.pace, .low = a.low, .step = a.step
	};
	struct glm_weights kernel = { .x = b.x, .u = b.u };

	fixture_fill(&a);
	for (uint32_t j = 0; j < N; j++) {
		a.x[j] = (float)(1.0 / (j + 3) - 0.1) * (j % 7 == 0 ? 1000 : 1);
		a.step[j] = (float)(0.1 + 1.0 / (j + 1));
	}
	b = a;
	for (uint32_t j = 0; j < N; j++)
		weights_update_one(&w, &none, j);
	kernel_prepare(&matrix, b.step, &kernel, 0, N);
	assert_memory_equal(a.u, b.u, sizeof(a.u));
}

static void test_low_precision(void **state)
{
	struct weights_step step = { .rate = 1, .quantum = 0x1p-16, .total = 65536 };
	struct fixture f;
	struct weights w = {
		.x = f.x, .u = f.u, .g = f.g, .pace = f.pace, .low = f.low, .step = f.step
	};

	(void)state;
	fixture_fill(&f);
	f.low[2] = -0.5f;
	weights_update(&w, &step, 0, N);
	/* Column 2 has g == 0: only its low value and the sum of the scales move it. */
	assert_true(f.x[2] == -1.75f + 0.5f);
	weights_update_one(&w, &step, 5);
	assert_true(f.u[5] == (int32_t)((double)f.x[5] * 0.25 * (1 << 24)));
	assert_true(weights_constant(&w, 0, N) == (int64_t)(-0.5 * -1.25 * (1 << 24)));
	f.x[4] = 1e9f;
	assert_int_equal(weights_update_one(&w, &step, 4), 1);
	assert_int_equal(f.u[4], GLM_WEIGHT_MAX);
	f.x[4] = (float)NAN;
	assert_int_equal(weights_update_one(&w, &step, 4), 1);
	prepared_check();
}

/* The loops in use, as weights.h gives them, have the bits of the plain ones. */
static void test_loops(void **state)
{
	struct weights_step step = { .rate = 0.3, .quantum = 0x1p-16 / 7, .total = -777 };

	(void)state;
	for (int mode = 0; mode < 4; mode++) {
		struct fixture a, b;

		fixture_fill(&a);
		for (uint32_t j = 0; j < N; j++) {
			a.low[j] = j % 3 ? 0 : -0.3f * (float)j;
			a.g[j] = (int64_t)(j * 7919 % 1000003) * (j % 2 ? -4000000 : 4000000);
			a.pace[j] = 1 / (1 + (float)j);
		}
		b = a;
		for (int k = 0; k < 2; k++) {
			struct fixture *f = k ? &b : &a;
			struct weights w = { .x = f->x,
				             .u = f->u,
				             .h = mode & 1 ? f->h : NULL,
				             .g = f->g,
				             .pace = f->pace,
				             .inverse = f->inverse,
				             .low = mode & 2 ? f->low : NULL,
				             .step = mode & 2 ? f->step : NULL };

			if (k) {
				weights_loops_plain.update(&w, &step, 1, N);
				weights_loops_plain.shrink(&w, 0.7, 1e-3, 0.1, 0, N);
			} else {
				weights_update(&w, &step, 1, N);
				weights_shrink(&w, 0.7, 1e-3, 0.1, 0, N);
			}
		}
		assert_memory_equal(a.x, b.x, sizeof(a.x));
		assert_memory_equal(a.h, b.h, sizeof(a.h));
		assert_memory_equal(a.g, b.g, sizeof(a.g));
	}
}

static void test_shrink(void **state)
{
	struct fixture f;
	struct weights w = { .x = f.x, .g = f.g, .pace = f.pace, .inverse = f.inverse };

	(void)state;
	fixture_fill(&f);
	f.inverse[0] = 0.5f;
	weights_shrink(&w, 0.5, 0.1, 1, 0, N);
	/* L1 brings small weights to 0 and never beyond; L2 divides. */
	assert_true(fabs((double)f.x[0] + (2 - 0.5 * 0.05) / (1 + 0.5 * 0.25)) < 1e-6);
	assert_true(f.x[16] == 0 && f.x[15] < 0 && f.x[17] > 0);
	assert_true(fabs((double)f.x[17] - (0.125 - 0.05) / 1.5) < 1e-7);
	weights_shrink(&w, 1e9, 1, 0, 0, N);
	for (uint32_t j = 0; j < N; j++)
		assert_true(f.x[j] == 0);
}

static void test_fixed(void **state)
{
	(void)state;
	assert_true(weights_fixed(1.5) == 3 << 23);
	assert_true(weights_fixed(-0x1p-25) == 0); /* a tie goes to even */
	assert_true(weights_fixed(1e300) == (1ll << 51) - 1);
	assert_true(weights_fixed(-1e300) == -(1ll << 51) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sgd),    cmocka_unit_test(test_adagrad),
		cmocka_unit_test(test_order),  cmocka_unit_test(test_low_precision),
		cmocka_unit_test(test_shrink), cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
