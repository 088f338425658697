/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: their values, their slopes against finite differences, and their own exponential. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/model/loss.h"

#include <math.h>
#include <string.h>

static bool near(double a, double b, double by)
{
	return fabs(a - b) <= by * fmax(1, fmax(fabs(a), fabs(b)));
}

static void test_exponential(void **state)
{
	(void)state;
	for (double v = -700; v <= 0; v += 0.37)
		assert_true(fabs(loss_exp(v) / exp(v) - 1) < 1e-13);
	assert_true(loss_exp(0) == 1);
	assert_true(loss_exp(-1e9) > 0 && loss_exp(-1e9) < 1e-300);
	assert_true(loss_exp((double)NAN) > 0);
}

static void test_values(void **state)
{
	(void)state;
	for (double z = -40; z <= 40; z += 0.173)
		for (double y = -1; y <= 1; y += 2) {
			assert_true(near(loss_value(GLM_LOSS_LOGISTIC, z, y), log1p(exp(-y * z)),
			                 1e-12));
			assert_true(near(loss_probability(z), 1 / (1 + exp(-z)), 1e-12));
			assert_true(loss_value(GLM_LOSS_HINGE, z, y) == fmax(0, 1 - y * z));
			assert_true(loss_value(GLM_LOSS_SQUARED_HINGE, z, y) ==
			            fmax(0, 1 - y * z) * fmax(0, 1 - y * z));
			assert_true(loss_value(GLM_LOSS_LINEAR, z, y) == (z - y) * (z - y) / 2);
		}
}

/* A slope is the limit of differences, but for the corner of the hinge. */
static void test_slopes(void **state)
{
	const double h = 1e-6;

	(void)state;
	for (unsigned i = 0; i < GLM_LOSSES_N; i++)
		for (double z = -9.03; z <= 9; z += 0.171)
			for (double y = -1; y <= 1; y += 2) {
				enum glm_loss loss = (enum glm_loss)i;
				double slope =
					(loss_value(loss, z + h, y) - loss_value(loss, z - h, y)) /
					(2 * h);

				if (fabs(1 - y * z) > 2 * h)
					assert_true(near(loss_slope(loss, z, y), slope, 1e-7));
			}
}

static void test_far_away(void **state)
{
	(void)state;
	assert_true(near(loss_value(GLM_LOSS_LOGISTIC, -1e6, 1), 1e6, 1e-12));
	assert_true(loss_value(GLM_LOSS_LOGISTIC, 1e6, 1) >= 0);
	assert_true(near(loss_slope(GLM_LOSS_LOGISTIC, -1e6, 1), -1, 1e-12));
	assert_true(fabs(loss_slope(GLM_LOSS_LOGISTIC, 1e6, 1)) < 1e-300);
}

static void test_names(void **state)
{
	enum glm_loss loss;

	(void)state;
	for (unsigned i = 0; i < GLM_LOSSES_N; i++) {
		assert_true(loss_find(loss_name((enum glm_loss)i), &loss));
		assert_int_equal(loss, i);
	}
	assert_false(loss_find("poisson", &loss));
	assert_null(loss_name(GLM_LOSSES_N));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exponential), cmocka_unit_test(test_values),
		cmocka_unit_test(test_slopes),      cmocka_unit_test(test_far_away),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
