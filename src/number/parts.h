/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts: floats as short integers, several in one 64-bit word. Pure: no I/O, no state.
 *
 * A word of P parts is the sum of part[k] * 2^(k * 64/P), with signed parts. Adding words
 * adds their parts, as long as no part overflows: so aggregators add words, whatever is in
 * them. An integer has
 *
 *     B = 64/P - 1 - ceil(log2 workers)    bits of magnitude,
 *
 * so N of them fit a part. Few bits need a fine scale: it belongs to a sub-block of
 * PARTS_BLOCK elements. Its name is a class of one byte, the exponent of the largest finite
 * magnitude, and the workers take the maximum of their classes. A worker must know it before
 * it encodes: there is no guess that other classes could beat, because a fragment has many.
 *
 * Error bound, for a sum over N workers of a sub-block whose class has the top 2^t, with
 * u = t - B, but never less than the type's smallest denormal:
 *
 *     |result - exact sum|  <=  N * 2^u / 2  +  half a unit in the last place of the result
 *
 * (N * 2^u if B is not above the type's mantissa bits: there a magnitude within half a unit
 * of 2^t becomes 2^B - 1 units. 0 instead if u is the smallest denormal.)
 *
 * With 8 bits, most of a sub-block's elements may be below half a unit, and would always be
 * rounded to 0. Two ways keep them. Dither rounds up or down by chance, so that the mean over
 * many steps is right; the bound is N * 2^u then. Error feedback keeps what rounding took, the
 * residual, and the caller adds it to the next vector.
 */
#ifndef TRIB_NUMBER_PARTS_H
#define TRIB_NUMBER_PARTS_H

#include "number/number.h"

#define PARTS_BLOCK 48u /* elements of a sub-block: whole words for every number of parts */

struct parts {
	trib_type type;    /* a float of up to 32 bits */
	unsigned per_word; /* 3, 4, 6 or 8; 2 works, too */
	unsigned workers;
	uint32_t dither; /* for 8 in a word: the seed; 0: round to nearest */
};

/*
 * How many parts a word has. `bits` is the least width that the caller allows: 8, 16 or 32; 0: by
 * the type, 10 bits for fp8 and otherwise its own.
 * More workers need wider parts. 0: no parts; the type travels as number_encode() makes it.
 */
unsigned parts_choose(trib_type type, unsigned workers, unsigned bits);

/* Bytes of n elements on the wire. */
static inline size_t parts_bytes(unsigned per_word, size_t n)
{
	return (n + per_word - 1) / per_word * 8;
}

/* Sub-blocks of n elements. */
static inline size_t parts_classes(size_t n)
{
	return (n + PARTS_BLOCK - 1) / PARTS_BLOCK;
}

/* Magnitude bits of an integer. */
int parts_bits(unsigned per_word, unsigned workers);

/* The class of each sub-block. True: there are NaN or infinities, which do not count. */
bool parts_classify(trib_type type, const void *elements, size_t n, uint8_t *classes);

/* An integer of the class is worth 2^this. */
int parts_unit_exponent(const struct parts *parts, uint8_t klass);

/*
 * Classes must not be below the elements' own. What does not fit becomes some integer that fits, so
 * sums never overflow: NaN and infinities do, and the caller replaces those of the sum.
 */
void parts_encode(const struct parts *parts, const void *elements, size_t n, const uint8_t *classes,
                  void *words);

/*
 * What encoding took from f32 elements: each one less its integer times the unit. `words` are
 * those of parts_encode(). 0 for NaN and infinities.
 */
void parts_residual(const struct parts *parts, const void *elements, size_t n,
                    const uint8_t *classes, const void *words, float *residual);

/* Sums back to floats; `average` divides by the workers. Rounds once. A zero sum is +0. */
void parts_decode(const struct parts *parts, const void *words, size_t n, const uint8_t *classes,
                  bool average, void *elements);

#endif
