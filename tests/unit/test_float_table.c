/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by table look-up, compared with libm, with exact sums and with the rules of float_table.h.
 */
#include "base/random_bits.h"
#include "number/float_table.h"

#include "short.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* FNV-1a of all entries in order, low byte first. A change of it changes sums on the wire. */
#define TABLES_CHECKSUM 0x58ca6af4145f9ed2ull

static struct float_tables tables;
static uint64_t random_state;

static uint32_t draw(void)
{
	return (uint32_t)random_next(&random_state);
}

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float value_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t add(uint32_t a, uint32_t b)
{
	return float_table_add(&tables, a, b);
}

/* A finite number that is not zero: any exponent from `lowest` on, of `range` many. */
static uint32_t draw_float(uint32_t lowest, uint32_t range)
{
	uint32_t random = draw();

	return (random & 0x807fffffu) | (lowest + draw() % range) << 23;
}

static bool is_nan(uint32_t bits)
{
	return (bits & ~FLOAT_TABLE_SIGN) > FLOAT_TABLE_INFINITY;
}

/* What every sum obeys, whatever the operands are. */
static uint32_t add_checked(uint32_t a, uint32_t b)
{
	uint32_t sum = add(a, b), opposite;

	assert_int_equal(sum, add(b, a));
	opposite = add(a ^ FLOAT_TABLE_SIGN, b ^ FLOAT_TABLE_SIGN);
	if (sum == 0 || is_nan(sum))
		assert_int_equal(opposite, sum);
	else
		assert_int_equal(opposite, sum ^ FLOAT_TABLE_SIGN);
	if (is_nan(sum))
		assert_int_equal(sum, FLOAT_TABLE_NAN);
	else
		assert_true((sum & ~FLOAT_TABLE_SIGN) >= FLOAT_TABLE_NORMAL || sum == 0);
	return sum;
}

/* Both are finite, and none is denormal. */
static double error_of(uint32_t a, uint32_t b, uint32_t sum)
{
	double exact = (double)value_of(a) + (double)value_of(b);

	if (fabs(exact) < 0x1p-126) {
		/* It may have been rounded up to the smallest number that is not zero. */
		assert_true((sum & ~FLOAT_TABLE_SIGN) <= FLOAT_TABLE_NORMAL);
		return 0;
	}
	if (sum == 0 && fabs(exact) < 0x1p-126 * (1 + FLOAT_TABLE_ERROR))
		return 0;
	if ((sum & ~FLOAT_TABLE_SIGN) == FLOAT_TABLE_INFINITY) {
		assert_true(fabs(exact) > 0x1p128 * (1 - FLOAT_TABLE_ERROR));
		assert_int_equal(sum >> 31, exact < 0);
		return 0;
	}
	return fabs((double)value_of(sum) - exact) / fabs(exact);
}

/* ---- the tables ---- */

static void near(uint16_t entry, double wanted)
{
	if (wanted > UINT16_MAX)
		wanted = UINT16_MAX;
	assert_true(fabs((double)entry - wanted) <= 0.51);
}

static void tables_are_right(void **state)
{
	const double ln2 = log(2);

	(void)state;
	for (int i = 0; i < 256; i++)
		assert_int_equal((int16_t)tables.exponent[i], i - 127);
	for (int i = 2048; i < 4096; i++) {
		near(tables.log_m[i], 65536 * log2(i / 2048.0));
		near(tables.log_mln2[i], 4096 * (1 + log2(i / 2048.0 * ln2)));
	}
	for (int i = 1; i < 4096; i++)
		near(tables.log_dm[i], 4096 * log2(i));
	for (int i = 0; i < 65536; i++) {
		near(tables.exp_dm[i], exp2(i / 4096.0 - 8));
		near(tables.exp[i], 65536 * (exp2(i / 65536.0) - 1));
	}
	for (int i = 0; i < 32768; i++) {
		near(tables.mid[i], 65536 * log2(1 + exp2(-i / 2048.0)) - 1);
		if (i >= 2048)
			near(tables.mid[32768 + i], -65536 * log2(1 - exp2(-i / 2048.0)) - 1);
	}
}

static void checksum_step(uint64_t *sum, const uint16_t *entries, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		*sum = (*sum ^ (entries[i] & 0xff)) * 0x100000001b3ull;
		*sum = (*sum ^ entries[i] >> 8) * 0x100000001b3ull;
	}
}

static void tables_have_the_same_bits_everywhere(void **state)
{
	uint64_t sum = 0xcbf29ce484222325ull;

	(void)state;
	checksum_step(&sum, tables.exponent, 256);
	checksum_step(&sum, tables.log_m, 4096);
	checksum_step(&sum, tables.log_dm, 4096);
	checksum_step(&sum, tables.log_mln2, 4096);
	checksum_step(&sum, tables.exp_dm, 65536);
	checksum_step(&sum, tables.mid, 65536);
	checksum_step(&sum, tables.exp, 65536);
	printf("checksum of the tables: 0x%016llx\n", (unsigned long long)sum);
	assert_true(sum == TABLES_CHECKSUM);
}

/* ---- sums ---- */

static const uint32_t specials[] = {
	0,           1,                                                  /* the smallest denormal */
	0x007fffffu,                                                     /* the largest denormal */
	0x00800000u,                                                     /* 2^-126 */
	0x00800001u, 0x00ffffffu, 0x01000000u, 0x3f7fffffu, 0x3f800000u, /* 1 */
	0x3f800001u, 0x40000000u, 0x7effffffu, 0x7f000000u, 0x7f7fffffu, /* the largest number */
	0x7f800000u,                                                     /* infinity */
	0x7f800001u,                                                     /* a signaling NaN */
	0x7fc00000u, 0x7fffffffu,
};
#define SPECIALS_N (sizeof(specials) / sizeof(specials[0]))

static uint32_t flushed(uint32_t bits)
{
	return (bits & ~FLOAT_TABLE_SIGN) < FLOAT_TABLE_NORMAL ? 0 : bits;
}

static void compare_special(uint32_t a, uint32_t b)
{
	uint32_t sum = add_checked(a, b), x = flushed(a), y = flushed(b);
	float wanted = value_of(x) + value_of(y);

	if (isnan(wanted))
		assert_int_equal(sum, FLOAT_TABLE_NAN);
	else if (isinf(value_of(x)) || isinf(value_of(y)) || !x || !y)
		assert_int_equal(sum, bits_of(wanted));
	else
		assert_true(error_of(x, y, sum) <= FLOAT_TABLE_ERROR);
}

static void special_numbers_add_as_documented(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SPECIALS_N; i++)
		for (unsigned j = 0; j < SPECIALS_N; j++)
			for (unsigned signs = 0; signs < 4; signs++)
				compare_special(specials[i] | (signs & 1) << 31,
				                specials[j] | (signs >> 1) << 31);
	assert_int_equal(add(FLOAT_TABLE_SIGN, FLOAT_TABLE_SIGN), 0);
	assert_int_equal(add(0x7f7fffffu, 0x7f7fffffu), FLOAT_TABLE_INFINITY);
	assert_int_equal(add(0xff7fffffu, 0xff7fffffu), FLOAT_TABLE_SIGN | FLOAT_TABLE_INFINITY);
	assert_int_equal(add(0x7f800000u, 0xff800000u), FLOAT_TABLE_NAN);
}

static void zero_changes_nothing(void **state)
{
	(void)state;
	for (uint32_t exponent = 1; exponent < 255; exponent++)
		for (unsigned i = 0; i < 100; i++) {
			uint32_t x = draw_float(exponent, 1);

			assert_int_equal(add_checked(x, 0), x);
			assert_int_equal(add_checked(x, FLOAT_TABLE_SIGN), x);
			assert_int_equal(add_checked(x, x ^ FLOAT_TABLE_SIGN), 0);
			assert_int_equal(add_checked(x, draw() & 0x807fffffu), x);
		}
}

static void any_sum_is_within_the_bound(void **state)
{
	uint64_t n = test_cases("sums", 6000000);
	double worst = 0;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t a = draw_float(1, 254), b = draw_float(1, 254), sum;
		double error;

		if (i % 8) { /* not far apart */
			uint32_t lowest = (a >> 23 & 0xff) > 17 ? (a >> 23 & 0xff) - 17 : 1;

			b = draw_float(lowest, 18);
		}
		sum = add_checked(a, b);
		error = error_of(a, b, sum);
		worst = error > worst ? error : worst;
		if (error > FLOAT_TABLE_ERROR)
			fail_msg("%a + %a is %a", (double)value_of(a), (double)value_of(b),
			         (double)value_of(sum));
	}
	printf("the largest relative error is %.3g, and the bound %.3g\n", worst,
	       FLOAT_TABLE_ERROR);
	assert_true(worst > FLOAT_TABLE_ERROR / 4); /* the bound says something */
}

static void close_differences_are_exact(void **state)
{
	uint64_t n = test_cases("differences", 3000000);

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t a = draw_float(1, 254), exponent = a >> 23 & 0xff;
		uint32_t b = (a & FLOAT_TABLE_SIGN) ^ FLOAT_TABLE_SIGN, sum;
		float exact;

		b |= (exponent > 1 ? exponent - draw() % 2 : 1) << 23 | (draw() & 0x7fffffu);
		if (i % 4 == 0) /* a few units in the last place */
			b = ((a ^ FLOAT_TABLE_SIGN) & ~7u) | draw() % 8;
		exact = value_of(a) + value_of(b);
		sum = add_checked(a, b);
		assert_int_equal(sum, fabsf(exact) < 0x1p-126f ? 0 : bits_of(exact));
	}
}

/* The tables round, so a larger addend may give a smaller sum, but by no more than they round. */
static void sums_grow_with_their_addends(void **state)
{
	uint64_t n = test_cases("rows of sums", 3000);

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t a = draw_float(110, 20);
		double before = -HUGE_VAL, below = 0;

		for (int step = -400; step <= 400; step++) {
			float b = copysignf(exp2f((float)(abs(step) - 400) / 20), (float)step);
			uint32_t sum = add(a, bits_of(b * value_of(a & 0x7fffffffu)));
			double now = (double)value_of(sum);

			below = fmax(fabs(now), fabs(before)) * 2 * FLOAT_TABLE_ERROR;
			assert_true(step == -400 || now >= before - below);
			before = now;
		}
	}
}

static float draw_uniform(void)
{
	return (float)(((double)draw() + 0.5) * 0x1p-31 - 1);
}

/* As Table 2 of the paper: 99.84 % there. */
static void uniform_pairs_are_precise(void **state)
{
	uint64_t n = test_cases("pairs", 300000);
	double total = 0;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t a = bits_of(draw_uniform()), b = bits_of(draw_uniform());

		total += error_of(a, b, add(a, b));
	}
	printf("mean precision: %.5f %%\n", 100 * (1 - total / (double)n));
	assert_true(total / (double)n < 0.0001);
}

/* Errors of single sums have both signs: a long sum is not off by as much as all of them. */
static void long_sums_do_not_drift(void **state)
{
	double mean = 0;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		uint32_t sum = 0;
		double exact = 0, error;

		for (unsigned k = 0; k < 900; k++) {
			float value = fabsf(draw_uniform());

			sum = add(sum, bits_of(value));
			exact += (double)value;
		}
		error = (double)value_of(sum) / exact - 1;
		assert_true(fabs(error) < 0.001);
		mean += error / 200;
	}
	printf("mean error of sums of 900: %.3g\n", mean);
	assert_true(fabs(mean) < 0.0002);
}

int main(void)
{
	const char *given = getenv("TRIB_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_right),
		cmocka_unit_test(tables_have_the_same_bits_everywhere),
		cmocka_unit_test(special_numbers_add_as_documented),
		cmocka_unit_test(zero_changes_nothing),
		cmocka_unit_test(any_sum_is_within_the_bound),
		cmocka_unit_test(close_differences_are_exact),
		cmocka_unit_test(sums_grow_with_their_addends),
		cmocka_unit_test(uniform_pairs_are_precise),
		cmocka_unit_test(long_sums_do_not_drift),
	};

	random_state = given ? strtoull(given, NULL, 10) : 25;
	printf("TRIB_SEED=%llu\n", (unsigned long long)random_state);
	float_tables_build(&tables);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
