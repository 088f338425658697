/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside number only: the loops of parts for four or eight integers in a word, written for SIMD
 * units. parts_loops.c is compiled once for each instruction set, and parts.c takes the best one
 * that the processor has. All give the same bits for finite elements; test_parts.c compares them
 * with fixed.c. NaN and infinities become any integer that fits, because the caller replaces their
 * sum.
 *
 * A call does sub-blocks up to the first one whose class is not for loops, and gives their number.
 * fixed.c does that one: where a scale is so small that denormals matter, or so large that 2^23
 * units overflow, and where results may be denormal.
 */
#ifndef TRIB_NUMBER_PARTS_LOOPS_H
#define TRIB_NUMBER_PARTS_LOOPS_H

#include "number/format.h"
#include "number/parts.h"

/*
 * The unit of a class is 2^(zero + class), but not below `lowest` nor above `highest`. Classes from
 * `first` to `last` are for loops.
 */
struct parts_units {
	int zero, lowest, highest;
	int first, last;
};

static inline int parts_unit_of(struct parts_units units, uint8_t klass)
{
	int unit = units.zero + klass;

	unit = unit < units.highest ? unit : units.highest;
	return unit > units.lowest ? unit : units.lowest;
}

struct parts_loops {
	/*
	 * The class of each sub-block: the exponent field of its largest magnitude, NaN and
	 * infinities included. Gives the bits of the largest of all.
	 */
	int32_t (*classify)(trib_type type, const void *elements, size_t n, uint8_t *classes);
	/* `first` is the number of the first sub-block, for its dither. */
	size_t (*encode)(const struct parts *parts, const struct parts_units *units,
	                 const void *elements, size_t n, size_t first, const uint8_t *classes,
	                 void *words);
	size_t (*decode)(const struct parts *parts, const struct parts_units *units,
	                 const void *words, size_t n, const uint8_t *classes, unsigned divisor,
	                 void *elements);
};

/* The dither of a sub-block. */
static inline uint32_t parts_seed(const struct parts *parts, size_t block)
{
	return parts->dither + (uint32_t)block * 0x632be5abu;
}

extern const struct parts_loops parts_loops_plain, parts_loops_avx2, parts_loops_bfcvt;

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
