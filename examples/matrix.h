/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_MATRIX_H
#define EXAMPLES_MATRIX_H

#include <stddef.h>

/* Element (i, j) is at[i * row + j * column], so a transpose costs nothing. */
struct matrix {
	const float *at;
	size_t row, column;
};

/*
 * c = a * b. a is rows x depth, b is depth x columns, c is rows x columns. c is stored row by row
 * without gaps.
 */
void matrix_multiply(float *c, struct matrix a, struct matrix b, size_t rows, size_t columns,
                     size_t depth);

/* The sum of x[i] * y[i]. */
float vector_dot(const float *x, const float *y, size_t count);

#endif
