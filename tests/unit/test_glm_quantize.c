/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes of values: zeros stay zeros, integers that fit are exact, a value inside the range is off
 * by half a step at most, and a shorter range is chosen only if it loses less.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/data/column_spread.h"
#include "glm_values.h"
#include "short.h"

#include <math.h>
#include <string.h>

#define VALUES 400u

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

struct column {
	struct quantize_column about;
	struct glm_spread spread;
	float value[VALUES]; /* zeros too */
	uint32_t n;
};

static void column_end(struct column *column)
{
	uint32_t i;

	column->spread = (struct glm_spread){ 0 };
	column->about = (struct quantize_column){ .rows = column->n, .spread = &column->spread };
	for (i = 0; i < column->n; i++) {
		float value = column->value[i];
		bool first = !column->about.count;

		if (value == 0)
			continue;
		column->about.min = first ? value : fminf(value, column->about.min);
		column->about.max = first ? value : fmaxf(value, column->about.max);
		spread_add(&column->spread, value, first);
		column->about.count++;
	}
}

enum shape { POSITIVE, NEGATIVE, MIXED, WHOLE, LONG_TAIL, TINY, ENORMOUS, SHAPES };

static float shape_draw(enum shape shape)
{
	float value = (float)(1 + draw(1u << 20)) / 4096;

	switch (shape) {
	case NEGATIVE:
		return -value;
	case MIXED:
		return value - 100;
	case WHOLE:
		return (float)draw(300) - 100;
	case LONG_TAIL:
		return value * value * value;
	case TINY:
		return value * 1e-36f;
	case ENORMOUS:
		return value * 1e35f * (draw(2) ? 1 : -1);
	default:
		return value;
	}
}

static void column_draw(struct column *column, enum shape shape, bool always)
{
	uint32_t i;

	column->n = 1 + draw(VALUES);
	for (i = 0; i < column->n; i++) {
		column->value[i] = shape_draw(shape);
		if (!always && draw(3))
			column->value[i] = 0;
	}
	column_end(column);
}

static double error_true(const struct column *column, struct quantize_map map, uint32_t bits)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < column->n; i++) {
		double off =
			(double)quantize_value(quantize_code(column->value[i], map, bits), map) -
			column->value[i];

		sum += fabs(off);
	}
	return sum;
}

static double sizes_of(const struct column *column)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < column->n; i++)
		sum += fabs((double)column->value[i]);
	return sum;
}

static void codes_are_near(const struct column *column, struct quantize_map map, uint32_t bits)
{
	double last = map.low + ((1u << bits) - 1.0) * map.step;
	double low = fmin(map.low, last), high = fmax(map.low, last);
	uint32_t i;

	for (i = 0; i < column->n; i++) {
		float value = column->value[i];
		uint8_t code = quantize_code(value, map, bits);
		double off = fabs((double)quantize_value(code, map) - value);

		assert_true(code < 1u << bits);
		if (value >= low && value <= high)
			assert_true(off <= fabs((double)map.step) * 0.5 +
			                           fabs((double)value) * 1e-6 +
			                           fabs((double)map.low) * 1e-6);
		else
			assert_true(code == (value < low) * (map.step < 0) * ((1u << bits) - 1u) ||
			            code == (1u << bits) - 1 || code == 0);
	}
}

/* Without counts of the values, nothing is clipped. */
static void range_is_whole(const struct column *column, struct quantize_map map, uint32_t bits)
{
	double last = map.low + ((1u << bits) - 1.0) * map.step;

	if (!column->about.count || column->about.min == column->about.max)
		return;
	assert_true(fmin(map.low, last) <= column->about.min);
	assert_true(fmax(map.low, last) >= column->about.max);
}

static void zeros_stay_zeros(const struct column *column, struct quantize_map map, uint32_t bits)
{
	uint8_t zero = quantize_code(0, map, bits);

	if (map.low == 0)
		assert_int_equal(zero, 0);
	if (column->about.count == column->about.rows)
		return;
	assert_true(quantize_value(zero, map) == 0);
	if (column->about.min >= 0 || column->about.max <= 0)
		assert_true(map.low == 0);
}

static void random_columns_keep_the_rules(void **state)
{
	uint64_t cases = test_cases("columns", 20000), c;
	static struct column column;
	double chosen = 0, whole = 0, sizes;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (c = 0; c < cases; c++) {
		enum shape shape = (enum shape)draw(SHAPES);
		uint32_t bits = 1 + draw(8);
		struct quantize_map map, full;
		struct quantize_column blind;

		column_draw(&column, shape, !draw(3));
		map = quantize_choose(&column.about, bits);
		assert_true(isfinite(map.low) && isfinite(map.step) && map.step != 0);
		codes_are_near(&column, map, bits);
		zeros_stay_zeros(&column, map, bits);
		blind = column.about;
		blind.spread = NULL;
		full = quantize_choose(&blind, bits);
		codes_are_near(&column, full, bits);
		range_is_whole(&column, full, bits);
		if (shape == TINY || shape == ENORMOUS)
			continue;
		/* Relative to the values; a map that loses nothing has no shorter range to try. */
		sizes = sizes_of(&column);
		chosen += sizes > 0 ? error_true(&column, map, bits) / sizes : 0;
		whole += sizes > 0 ? error_true(&column, full, bits) / sizes : 0;
	}
	print_message("absolute error: %.3f of that of the whole range\n", chosen / whole);
	assert_true(chosen < 0.95 * whole);
}

static void integers_that_fit_are_exact(void **state)
{
	uint64_t cases = test_cases("columns", 5000), c;
	static struct column column;

	(void)state;
	for (c = 0; c < cases; c++) {
		uint32_t bits = 1 + draw(8), levels = (1u << bits) - 1, i;
		int low = -(int)draw(levels + 1), always = !draw(3);
		struct quantize_map map;

		/* In all rows: anywhere. Else 0 is one of the integers. */
		low += always ? (int)draw(2000) - 1000 : 0;
		column.n = 1 + draw(VALUES);
		for (i = 0; i < column.n; i++)
			column.value[i] = (float)(low + (int)draw(levels + 1));
		column_end(&column);
		if (always && column.about.count != column.about.rows)
			continue;
		map = quantize_choose(&column.about, bits);
		for (i = 0; i < column.n; i++)
			assert_true(quantize_value(quantize_code(column.value[i], map, bits),
			                           map) == column.value[i]);
	}
}

static struct quantize_map choose(struct column *column, const float *values, uint32_t n,
                                  uint32_t bits)
{
	column->n = n;
	memcpy(column->value, values, n * sizeof(*values));
	column_end(column);
	return quantize_choose(&column->about, bits);
}

static void simple_columns(void **state)
{
	static struct column column;
	struct quantize_map map;
	float tail[VALUES];
	uint32_t i;

	(void)state;
	/* One value besides 0 is exact with one bit, whatever it is. */
	map = choose(&column, (float[]){ 0, 0.123f, 0.123f }, 3, 1);
	assert_true(map.low == 0 && quantize_value(1, map) == 0.123f);
	map = choose(&column, (float[]){ 0, -0.123f }, 2, 4);
	assert_true(map.low == 0 && quantize_value(1, map) == -0.123f);
	/* No value at all. */
	map = choose(&column, (float[]){ 0, 0 }, 2, 4);
	assert_true(map.low == 0 && map.step == 1);
	/* Negative integers, also 0. */
	map = choose(&column, (float[]){ 0, -1, -15 }, 3, 4);
	assert_true(map.low == 0 && map.step == -1);
	/* Always there, far from 0: begins at the minimum. */
	map = choose(&column, (float[]){ 1000, 1001, 1255 }, 3, 8);
	assert_true(map.low == 1000 && map.step == 1);
	/* Word counts: one text with 40 does not hide the ones of all others. */
	for (i = 0; i < VALUES; i++)
		tail[i] = i % 2 ? 1 : 0;
	tail[0] = 40;
	map = choose(&column, tail, VALUES, 4);
	assert_true(map.low == 0 && map.step == 1);
}

/* The order of the values has no influence on the counts. */
static void spread_has_no_order(void **state)
{
	static struct column one, other;
	uint32_t c, i;

	(void)state;
	for (c = 0; c < 200; c++) {
		column_draw(&one, (enum shape)draw(SHAPES), false);
		other.n = one.n;
		for (i = 0; i < one.n; i++)
			other.value[i] = one.value[one.n - 1 - i];
		column_end(&other);
		assert_memory_equal(one.spread.positive, other.spread.positive,
		                    sizeof(one.spread.positive));
		assert_memory_equal(one.spread.negative, other.spread.negative,
		                    sizeof(one.spread.negative));
		assert_int_equal(one.spread.top, other.spread.top);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_columns_keep_the_rules),
		cmocka_unit_test(integers_that_fit_are_exact),
		cmocka_unit_test(simple_columns),
		cmocka_unit_test(spread_has_no_order),
	};
	const char *given = getenv("TRIB_TEST_SEED");

	if (given)
		seed = strtoull(given, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
