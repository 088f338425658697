/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of two f32 by table look-up, as Libra does (section 3.5): with integer additions, shifts and
 * tables only. So it runs on a processor, in BPF and on a programmable switch, and all give the
 * same bits. docs/numbers.md ("Sums by table") explains it.
 *
 * For x >= y > 0 with i = log2 x and t = log2 x - log2 y:
 *
 *     x + y = 2^(i + log2(1 + 2^-t))        x - y = 2^(i + log2(1 - 2^-t))
 *
 * The seven tables take 408.5 KiB, as in the paper. Logarithms have 16 bits behind the point.
 *
 * What the paper leaves open, and what is done here:
 * 1. Signs. The number with the larger magnitude gives the sign. The paper's miTable holds only
 *    log2(1 + 2^-t). Here one half of it holds that, the other half -log2(1 - 2^-t), with 11 bits
 *    of t behind the point each.
 * 2. Differences of close numbers. log2(1 - 2^-t) has no bound near t = 0. If the signs differ and
 *    the exponents differ by 0 or 1, the significands are subtracted as integers. The result is
 *    the one of IEEE 754. A switch finds the first 1 by five shifts by a constant, each with a
 *    condition. So t is at least 1 where the table is used.
 * 3. Zeros. x + 0 is x. A sum that is zero is +0, also -0 + -0.
 * 4. Small addends. If t is 16 or more, the result is x.
 * 5. Denormals count as zero. A sum below 2^-126 is +0.
 * 6. Overflow gives an infinity. Infinities and NaN are added as in IEEE 754. Every NaN comes out
 *    as FLOAT_TABLE_NAN.
 *
 * The relative error of a sum is at most FLOAT_TABLE_ERROR, unless it is below 2^-126. a + b and
 * b + a have the same bits; -a + -b has those of -(a + b), but for zeros and NaN.
 */
#ifndef TRIB_NUMBER_FLOAT_TABLE_H
#define TRIB_NUMBER_FLOAT_TABLE_H

#include <stdint.h>

#define FLOAT_TABLE_ERROR 0x1p-12 /* of the exact sum, at most */
#define FLOAT_TABLE_SIGN 0x80000000u
#define FLOAT_TABLE_INFINITY 0x7f800000u
#define FLOAT_TABLE_NAN 0x7fc00000u
#define FLOAT_TABLE_NORMAL 0x00800000u /* the smallest magnitude that is not zero */

#define FLOAT_TABLE_BIAS 127u
#define FLOAT_TABLE_LOG_BITS 16u                        /* of a logarithm, behind the point */
#define FLOAT_TABLE_STEP 12u                            /* such bits of the keys of exp_dm */
#define FLOAT_TABLE_CLOSE 11u                           /* such bits of the keys of mid */
#define FLOAT_TABLE_FAR (1u << (4 + FLOAT_TABLE_CLOSE)) /* keys of one half of mid: t < 16 */
#define FLOAT_TABLE_MID (5u)                            /* bits of t that such a key lacks */

/*
 * p = 2^(e - 127) * (m + dm): m = 1.f1...f11, and dm are the 12 bits behind. The names in comments
 * are the paper's.
 */
struct float_tables {
	uint16_t exponent[256];  /* epoTable: e - 127, modulo 2^16 */
	uint16_t log_m[4096];    /* logTable: log2 m; the key is 1f1...f11, so half of it is used */
	uint16_t log_dm[4096];   /* logTable: log2 of dm's 12 bits as an integer, 12 bits behind the
	                            point; 0 for 0, which exp_dm makes 0 */
	uint16_t log_mln2[4096]; /* logTable: 1 + log2(m ln 2), 12 bits behind the point */
	uint16_t exp_dm[65536];  /* expTable: dm / (m ln 2), by log_dm - log_mln2 + 2 */
	uint16_t mid[65536];     /* miTable: log2(1 + 2^-t) less one unit, then -log2(1 - 2^-t) less
	                            one unit */
	uint16_t exp[65536];     /* expTable: 2^f - 1 for a fraction f */
};

_Static_assert(sizeof(struct float_tables) == 418304, "the tables take 408.5 KiB");

/* Fills the tables. Integers only, so every machine gets the same ones. */
void float_tables_build(struct float_tables *tables);

/* log2 of the magnitude of a number that is not zero, infinite or NaN; plus 127, in 2^-16. */
static inline uint32_t float_table_log(const struct float_tables *t, uint32_t bits)
{
	uint32_t m = 0x800u | (bits >> 12 & 0x7ffu);
	uint32_t key = t->log_dm[bits & 0xfffu] + (2u << FLOAT_TABLE_STEP) - t->log_mln2[m];
	uint32_t exponent = (t->exponent[bits >> 23 & 0xffu] + FLOAT_TABLE_BIAS) & 0xffffu;

	return (exponent << FLOAT_TABLE_LOG_BITS) + t->log_m[m] + t->exp_dm[key & 0xffffu];
}

/* The magnitude whose logarithm, plus 127, this is. */
static inline uint32_t float_table_exp(const struct float_tables *t, uint32_t log)
{
	uint32_t exponent = log >> FLOAT_TABLE_LOG_BITS;

	if (exponent == 0)
		return 0;
	if (exponent >= 255)
		return FLOAT_TABLE_INFINITY;
	return exponent << 23 | (uint32_t)t->exp[log & 0xffffu] << 7;
}

/* Where a number below 2^25 that is not 0 has its first 1. */
static inline uint32_t float_table_top(uint32_t number)
{
	uint32_t top = 0;

	if (number >> 16) {
		number >>= 16;
		top += 16;
	}
	if (number >> 8) {
		number >>= 8;
		top += 8;
	}
	if (number >> 4) {
		number >>= 4;
		top += 4;
	}
	if (number >> 2) {
		number >>= 2;
		top += 2;
	}
	return top + (number >> 1);
}

/* x - y of magnitudes x >= y whose exponents differ by 0 or 1. */
static inline uint32_t float_table_subtract(uint32_t x, uint32_t y)
{
	uint32_t exponent = y >> 23;
	uint32_t above = (x >> 23) - exponent;
	uint32_t difference =
		((0x800000u | (x & 0x7fffffu)) << (above & 1)) - (0x800000u | (y & 0x7fffffu));
	uint32_t top = float_table_top(difference & 0x1ffffffu);

	if (difference == 0 || exponent + top < 24)
		return 0;
	if (top == 24) /* to nearest, ties to even */
		difference = (difference >> 1) + (difference & difference >> 1 & 1);
	else
		difference <<= 23 - top;
	return ((exponent + top - 23) << 23) + (difference & 0x7fffffu);
}

/* A sum with an operand that is infinite, NaN, zero or denormal. x has the larger magnitude. */
static inline uint32_t float_table_special(uint32_t x, uint32_t y)
{
	uint32_t magnitude = x & ~FLOAT_TABLE_SIGN;

	if (magnitude > FLOAT_TABLE_INFINITY ||
	    (magnitude == FLOAT_TABLE_INFINITY && (x ^ y) == FLOAT_TABLE_SIGN))
		return FLOAT_TABLE_NAN;
	return magnitude < FLOAT_TABLE_NORMAL ? 0 : x;
}

/* The sum of two f32, given as their bits. */
static inline uint32_t float_table_add(const struct float_tables *t, uint32_t a, uint32_t b)
{
	uint32_t a_is_larger = (a & ~FLOAT_TABLE_SIGN) > (b & ~FLOAT_TABLE_SIGN);
	uint32_t x = a_is_larger ? a : b, y = a_is_larger ? b : a;
	uint32_t sign = x & FLOAT_TABLE_SIGN, differ = (x ^ y) >> 31;
	uint32_t log, distance, magnitude, key;

	x &= ~FLOAT_TABLE_SIGN;
	y &= ~FLOAT_TABLE_SIGN;
	if (x >= FLOAT_TABLE_INFINITY || y < FLOAT_TABLE_NORMAL)
		return float_table_special(sign | x, (sign ^ differ << 31) | y);
	if (differ && (x >> 23) - (y >> 23) <= 1) {
		magnitude = float_table_subtract(x, y);
		return magnitude ? sign | magnitude : 0;
	}
	log = float_table_log(t, x);
	distance = log - float_table_log(t, y);
	if (distance >> 31) /* rounding has changed the order */
		distance = 0;
	key = (distance + (1u << (FLOAT_TABLE_MID - 1))) >> FLOAT_TABLE_MID;
	if (key >= FLOAT_TABLE_FAR)
		return sign | x;
	if (differ)
		log -= t->mid[FLOAT_TABLE_FAR | key] + 1u;
	else
		log += t->mid[key] + 1u;
	magnitude = float_table_exp(t, log);
	return magnitude ? sign | magnitude : 0;
}

#endif
