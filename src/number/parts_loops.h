/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside number only: the loops of parts for four or eight integers in a word, written for SIMD
 * units. parts_loops.c is compiled once for each instruction set, and parts.c takes the best one
 * that the processor has. All give the same bits for finite elements; test_parts.c compares them
 * with fixed.c. NaN and infinities become any integer that fits, because the caller replaces their
 * sum.
 *
 * A call is for a run of whole sub-blocks. The caller leaves some to fixed.c: where a scale is so
 * small that denormals matter, or so large that 2^23 units overflow, and where results may be
 * denormal.
 */
#ifndef TRIB_NUMBER_PARTS_LOOPS_H
#define TRIB_NUMBER_PARTS_LOOPS_H

#include "number/format.h"
#include "number/parts.h"

/* The unit of a class is 2^(zero + class), but not below `lowest` nor above `highest`. */
struct parts_units {
	int zero, lowest, highest;
};

static inline struct parts_units parts_units_of(const struct parts *parts)
{
	const struct format format = format_of(parts->type);
	const int bits = parts_bits(parts->per_word, parts->workers);
	int highest = UINT8_MAX + 1 - format.bias; /* a class from the network may be any byte */

	highest = highest < format.highest ? highest : format.highest;
	return (struct parts_units){ 1 - format.bias - bits, format_smallest(parts->type),
		                     highest - bits };
}

static inline int parts_unit_of(const struct parts_units *units, uint8_t klass)
{
	int unit = units->zero + klass;

	unit = unit < units->highest ? unit : units->highest;
	return unit > units->lowest ? unit : units->lowest;
}

struct parts_loops {
	/*
	 * The class of each sub-block: the exponent field of its largest magnitude, NaN and
	 * infinities included. Gives the bits of the largest of all.
	 */
	int32_t (*classify)(trib_type type, const void *elements, size_t blocks, uint8_t *classes);
	/* `first` is the number of the first sub-block, for its dither. */
	void (*encode)(const struct parts *parts, const void *elements, size_t first, size_t blocks,
	               const uint8_t *classes, void *words);
	void (*decode)(const struct parts *parts, const void *words, size_t blocks,
	               const uint8_t *classes, unsigned divisor, void *elements);
};

/* The dither of a sub-block. */
static inline uint32_t parts_seed(const struct parts *parts, size_t block)
{
	return parts->dither + (uint32_t)block * 0x632be5abu;
}

extern const struct parts_loops parts_loops_plain, parts_loops_avx2;

/* The best ones for this processor. */
const struct parts_loops *parts_loops_best(void);

/* As the functions of parts.h, with these loops. NULL: with none, element by element. */
bool parts_classify_by(const struct parts_loops *loops, trib_type type, const void *elements,
                       size_t n, uint8_t *classes);
void parts_encode_by(const struct parts_loops *loops, const struct parts *parts,
                     const void *elements, size_t n, const uint8_t *classes, void *words);
void parts_decode_by(const struct parts_loops *loops, const struct parts *parts, const void *words,
                     size_t n, const uint8_t *classes, bool average, void *elements);

#endif
