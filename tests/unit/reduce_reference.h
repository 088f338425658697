/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reduction must give, bit for bit: inputs of every type from a seed,
 * and their sum, average, minimum or maximum worked out element by element.
 */
#ifndef TRIB_TESTS_REDUCE_REFERENCE_H
#define TRIB_TESTS_REDUCE_REFERENCE_H

#include "tributary.h"

#include <stdbool.h>

enum reduce_values {
	REDUCE_FINITE,  /* floats of wild sizes, a few zeros */
	REDUCE_SPECIAL, /* and NaN and infinities among them */
};

/* `count` elements for one rank. */
void reduce_fill(trib_type type, enum reduce_values values, uint64_t seed, void *out, size_t count);

/*
 * The result of `ranks` inputs. Floats are summed by the number module in
 * blocks of `block` elements: what it does to them is for test_number.c, that
 * the network does nothing else is for here.
 */
void reduce_expect(trib_type type, trib_op op, const void *const *in, unsigned ranks, size_t count,
                   size_t block, void *out);

/* Is a float sum within the bound of docs/numbers.md, by exact addition? */
bool reduce_in_bound(trib_type type, const void *const *in, unsigned ranks, size_t count,
                     size_t block, const void *result);

#endif
