/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact result of a reduction: generates inputs of every type from a seed, and computes their
 * sum, average, minimum or maximum element by element.
 */
#ifndef TRIB_TESTS_REDUCE_REFERENCE_H
#define TRIB_TESTS_REDUCE_REFERENCE_H

#include "tributary.h"

#include <stdbool.h>

enum reduce_values {
	REDUCE_FINITE,  /* floats of very different sizes, a few zeros */
	REDUCE_SPECIAL, /* the same, with NaN and infinities */
	REDUCE_RARE,    /* the same, and most blocks have none of them */
};

/* Fills in `count` elements for one rank. */
void reduce_fill(trib_type type, enum reduce_values values, uint64_t seed, void *out, size_t count);

/*
 * The result of `ranks` inputs that travel with this payload and TRIB_WIRE (`bits`; 0: auto). The
 * number module sums floats in blocks of what fits a packet: test_number.c and test_parts.c test
 * that module, and this one tests that the network changes nothing.
 */
void reduce_expect(trib_type type, trib_op op, const void *const *in, unsigned ranks, size_t count,
                   unsigned payload, unsigned bits, void *out);

/*
 * What rounding to `bits` takes from the sum of f32 vectors, all ranks together, and the sum of its
 * magnitudes.
 */
void reduce_lost(const void *const *in, unsigned ranks, size_t count, unsigned payload,
                 unsigned bits, float *lost, float *sizes);

/*
 * With TRIB_WIRE=8 a sum may be rounded by chance: is it here, and is a result within the bound?
 */
bool reduce_is_by_chance(trib_type type, trib_op op, size_t count, unsigned ranks, unsigned bits);
bool reduce_chance_in_bound(trib_type type, trib_op op, const void *const *in, unsigned ranks,
                            size_t count, unsigned payload, unsigned bits, const void *result);

/*
 * Is a float sum within the bound of docs/numbers.md? Compared with exact addition. Only for
 * vectors with one class a block.
 */
bool reduce_in_bound(trib_type type, const void *const *in, unsigned ranks, size_t count,
                     size_t block, const void *result);

#endif
