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

#define PARTS_RUN 32u /* sub-blocks in a call, at most */

struct parts_loops {
	/* The bits of the largest magnitude of each sub-block, NaN and infinities included. */
	void (*largest)(trib_type type, const void *elements, size_t blocks, int32_t *out);
	/* `first` is the number of the first sub-block, for its dither. */
	void (*encode)(const struct parts *parts, const void *elements, size_t first, size_t blocks,
	               const int *units, void *words);
	void (*decode)(const struct parts *parts, const void *words, size_t blocks,
	               const int *units, unsigned divisor, void *elements);
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
