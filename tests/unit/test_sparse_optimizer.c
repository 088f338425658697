/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers and options of tables: formulas, the same bits everywhere, sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sparse/store/sparse_optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 7u
#define STEPS 50u

static struct sparse_table_options made(const char *optimizer)
{
	trib_sparse_options given = TRIB_SPARSE_OPTIONS_INIT;
	struct sparse_table_options options;

	given.width = WIDTH;
	given.optimizer = optimizer;
	given.rate = 0.1;
	given.init = 0.5;
	given.seed = 42;
	assert_int_equal(sparse_table_options_take(&given, &options), TRIB_OK);
	return options;
}

static float gradient_of(unsigned step, unsigned column)
{
	return (float)((int)(step * 7919 + column * 104729) % 2001 - 1000) / 512;
}

/* The formulas of the header in double precision. */
static void reference(const struct sparse_table_options *o, unsigned step, double *w, double *a,
                      double *b)
{
	for (unsigned i = 0; i < WIDTH; i++) {
		double g = gradient_of(step, i);

		switch (o->optimizer) {
		case SPARSE_SGD:
			w[i] -= o->rate * g;
			break;
		case SPARSE_MOMENTUM:
			a[i] = o->momentum * a[i] + g;
			w[i] -= o->rate * a[i];
			break;
		case SPARSE_ADAGRAD:
			a[i] += g * g;
			w[i] -= o->rate * g / (sqrt(a[i]) + o->epsilon);
			break;
		default:
			a[i] = o->beta1 * a[i] + (1 - o->beta1) * g;
			b[i] = o->beta2 * b[i] + (1 - o->beta2) * g * g;
			w[i] -= o->rate * (a[i] / (1 - pow(o->beta1, step + 1))) /
			        (sqrt(b[i] / (1 - pow(o->beta2, step + 1))) + o->epsilon);
		}
	}
}

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void one_optimizer(const char *name, uint32_t state_floats, uint64_t expected)
{
	struct sparse_table_options options = made(name);
	float values[WIDTH], state[2 * WIDTH + 2] = { 0 }, gradient[WIDTH];
	double w[WIDTH], a[WIDTH] = { 0 }, b[WIDTH] = { 0 };
	uint64_t sum = 0;

	assert_int_equal(optimizer_state_floats(&options), state_floats);
	optimizer_values_begin(&options, 5, values);
	optimizer_state_begin(&options, state);
	for (unsigned i = 0; i < WIDTH; i++)
		w[i] = values[i];
	for (unsigned step = 0; step < STEPS; step++) {
		for (unsigned i = 0; i < WIDTH; i++)
			gradient[i] = gradient_of(step, i);
		optimizer_apply(&options, values, state, gradient);
		reference(&options, step, w, a, b);
	}
	for (unsigned i = 0; i < WIDTH; i++) {
		assert_true(fabs(values[i] - w[i]) < 1e-4);
		sum = sum * 1000003 + bits_of(values[i]);
	}
	printf("%s: 0x%016llx\n", name, (unsigned long long)sum);
	/* The bits of the first machine: all others have to have them too. */
	assert_true(sum == expected);
}

static void test_formulas(void **state)
{
	(void)state;
	one_optimizer("sgd", 0, 0xa06e955eb6c3f7baull);
	one_optimizer("momentum", WIDTH, 0xe6dc3315ec63985bull);
	one_optimizer("adagrad", WIDTH, 0x6455d27f170a01bdull);
	one_optimizer("adam", 2 * WIDTH + 2, 0x02489cbd24bd8d02ull);
}

static void test_first_values(void **state)
{
	struct sparse_table_options options = made("sgd");
	float values[WIDTH], other[WIDTH];
	double mean = 0;

	(void)state;
	for (uint64_t key = 0; key < 10000; key++) {
		optimizer_values_begin(&options, key, values);
		for (unsigned i = 0; i < WIDTH; i++) {
			assert_true(values[i] >= -0.5f && values[i] < 0.5f);
			mean += values[i];
		}
	}
	assert_true(fabs(mean / (10000 * WIDTH)) < 0.01);
	optimizer_values_begin(&options, 1, values);
	assert_true(values[0] != values[1]);
	optimizer_values_begin(&options, 2, other);
	assert_memory_not_equal(values, other, sizeof(values));
	options.seed++;
	optimizer_values_begin(&options, 1, other);
	assert_memory_not_equal(values, other, sizeof(values));
	options.init = 0;
	optimizer_values_begin(&options, 1, other);
	for (unsigned i = 0; i < WIDTH; i++)
		assert_int_equal(bits_of(other[i]), 0);
}

static void refused(const struct sparse_table_options *options, const char *word)
{
	assert_int_equal(sparse_table_options_check(options), TRIB_ERR_ARGUMENT);
	if (!strstr(trib_last_error(), word))
		fail_msg("\"%s\" does not say \"%s\"", trib_last_error(), word);
}

#define REFUSED(field, value, word)                    \
	do {                                           \
		struct sparse_table_options o_ = good; \
		o_.field = value;                      \
		refused(&o_, word);                    \
	} while (0)

static void test_options(void **state)
{
	struct sparse_table_options good = made("adam"), other = good;
	trib_sparse_options given = TRIB_SPARSE_OPTIONS_INIT;

	(void)state;
	assert_string_equal(good.name, "default");
	assert_true(good.momentum == 0.9 && good.beta1 == 0.9 && good.beta2 == 0.999);
	assert_true(sparse_table_options_equal(&good, &other));
	other.rate = 0.2;
	assert_false(sparse_table_options_equal(&good, &other));
	REFUSED(width, 0, "width is 0");
	REFUSED(width, 4097, "width is 4097");
	REFUSED(rate, NAN, "rate");
	REFUSED(rate, INFINITY, "rate");
	REFUSED(rate, -1, "rate");
	REFUSED(momentum, 1, "momentum");
	REFUSED(beta1, 1, "beta1");
	REFUSED(beta2, 0.99999999999, "beta2");
	REFUSED(epsilon, 0, "epsilon");
	REFUSED(init, -1, "init");
	REFUSED(optimizer, 4, "no optimizer number 4");
	REFUSED(parameters, UINT64_MAX, "parameters");
	REFUSED(name[0], '"', "name");
	REFUSED(name[0], 0, "name");
	REFUSED(name[63], 'x', "name");
	given.width = 1;
	given.optimizer = "lamb";
	assert_int_equal(sparse_table_options_take(&given, &other), TRIB_ERR_ARGUMENT);
	assert_non_null(strstr(trib_last_error(), "lamb"));
	assert_false(sparse_key_fits(&good, UINT64_MAX));
	good.parameters = 10;
	assert_true(sparse_key_fits(&good, 9) && !sparse_key_fits(&good, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_first_values),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
