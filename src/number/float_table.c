/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tables of float_table.h are made. All numbers are fixed point with 31 bits behind the
 * point (ONE), which is far more than a table keeps. No libm: its last bits differ from machine
 * to machine.
 */
#include "number/float_table.h"

#define ONE_BITS 31u
#define ONE (1ull << ONE_BITS)
#define LOG_BITS 24u      /* of a logarithm, behind the point, before it is rounded */
#define LN2 1488522236ull /* ln 2 * 2^31, rounded */

static uint64_t multiply(uint64_t a, uint64_t b)
{
	return (a * b + ONE / 2) >> ONE_BITS;
}

/* The square root of `square` * 2^31, rounded down. `square` is at most 2^32. */
static uint64_t root(uint64_t square)
{
	uint64_t result = 0;

	square <<= ONE_BITS;
	for (uint64_t bit = 1ull << ONE_BITS; bit; bit >>= 1)
		if ((result | bit) * (result | bit) <= square)
			result |= bit;
	return result;
}

/* powers[i] = 2^(2^-i) */
static void powers_build(uint64_t powers[LOG_BITS + 1])
{
	powers[0] = 2 * ONE;
	for (unsigned i = 1; i <= LOG_BITS; i++)
		powers[i] = root(powers[i - 1]);
}

/* 2^fraction, where `fraction` has `bits` behind the point and is below 1. */
static uint64_t power(const uint64_t powers[LOG_BITS + 1], uint64_t fraction, unsigned bits)
{
	uint64_t result = ONE;

	for (unsigned i = 1; i <= bits; i++)
		if (fraction >> (bits - i) & 1)
			result = multiply(result, powers[i]);
	return result;
}

/* 2^-distance, where `distance` has `bits` behind the point. */
static uint64_t power_below(const uint64_t powers[LOG_BITS + 1], uint64_t distance, unsigned bits)
{
	uint64_t whole = distance >> bits, fraction = distance & ((1ull << bits) - 1);

	if (fraction == 0)
		return ONE >> whole;
	return power(powers, (1ull << bits) - fraction, bits) >> (whole + 1);
}

/* log2 of a number from 1 to below 2, with LOG_BITS behind the point: each square gives a bit. */
static uint64_t logarithm(uint64_t number)
{
	uint64_t result = 0;

	for (unsigned i = 0; i < LOG_BITS; i++) {
		number = multiply(number, number);
		result <<= 1;
		if (number >= 2 * ONE) {
			number >>= 1;
			result |= 1;
		}
	}
	return result;
}

/* A logarithm with fewer bits behind the point. */
static uint64_t rounded(uint64_t log, unsigned bits)
{
	return (log + (1ull << (LOG_BITS - bits - 1))) >> (LOG_BITS - bits);
}

static uint16_t limited(uint64_t value)
{
	return (uint16_t)(value > UINT16_MAX ? UINT16_MAX : value);
}

/* ---- the tables ---- */

static void build_logs(struct float_tables *t)
{
	const uint64_t one = 1ull << LOG_BITS;

	for (uint32_t e = 0; e < 256; e++)
		t->exponent[e] = (uint16_t)(e - FLOAT_TABLE_BIAS);
	for (uint32_t i = 0; i < 4096; i++) {
		uint64_t m = (uint64_t)(i | 0x800u) << (ONE_BITS - 11), scaled = multiply(m, LN2);
		uint64_t log = scaled < ONE ? logarithm(2 * scaled) : one + logarithm(scaled);

		t->log_m[i] = limited(rounded(logarithm(m), FLOAT_TABLE_LOG_BITS));
		t->log_mln2[i] = limited(rounded(log, FLOAT_TABLE_STEP));
	}
	t->log_dm[0] = 0;
	for (uint32_t i = 1; i < 4096; i++) {
		uint32_t top = float_table_top(i);
		uint64_t log = logarithm((uint64_t)i << (ONE_BITS - top)) + top * one;

		t->log_dm[i] = limited(rounded(log, FLOAT_TABLE_STEP));
	}
}

static void build_exps(struct float_tables *t, const uint64_t powers[LOG_BITS + 1])
{
	/* A key of exp_dm is 1 + log2 of dm * 2^23 / (m ln 2). The entry is in 2^-16. */
	const unsigned to_unit = ONE_BITS + 1 + 23 - FLOAT_TABLE_LOG_BITS;

	for (uint32_t i = 0; i < 65536; i++) {
		uint64_t value = power(powers, i & ((1u << FLOAT_TABLE_STEP) - 1), FLOAT_TABLE_STEP)
		                 << (i >> FLOAT_TABLE_STEP);

		t->exp_dm[i] = limited((value + (1ull << (to_unit - 1))) >> to_unit);
		value = power(powers, i, FLOAT_TABLE_LOG_BITS) - ONE;
		t->exp[i] = limited((value + (1ull << (ONE_BITS - 17))) >> (ONE_BITS - 16));
	}
}

static void build_mid(struct float_tables *t, const uint64_t powers[LOG_BITS + 1])
{
	const uint64_t one = 1ull << LOG_BITS;

	for (uint32_t i = 0; i < FLOAT_TABLE_FAR; i++) {
		uint64_t below = power_below(powers, i, FLOAT_TABLE_CLOSE);
		uint64_t plus = i == 0 ? one : logarithm(ONE + below);
		/* Nearer numbers are subtracted without the table, up to its rounding. */
		uint64_t minus =
			i <= 1u << FLOAT_TABLE_CLOSE ? one : one - logarithm(2 * (ONE - below));

		t->mid[i] = limited(rounded(plus, FLOAT_TABLE_LOG_BITS) - 1);
		t->mid[FLOAT_TABLE_FAR | i] = limited(rounded(minus, FLOAT_TABLE_LOG_BITS) - 1);
	}
}

void float_tables_build(struct float_tables *tables)
{
	uint64_t powers[LOG_BITS + 1];

	powers_build(powers);
	build_logs(tables);
	build_exps(tables, powers);
	build_mid(tables, powers);
}
