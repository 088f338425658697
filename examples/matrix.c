/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix.h"

#include <string.h>

/*
 * Blocked multiplication: a tile of c stays in registers during the loop over the depth. The strip
 * of b for it is copied once into a narrow panel, which stays in the L1 cache for all tiles that
 * need it.
 */
typedef float vector __attribute__((vector_size(16), aligned(4), may_alias));

enum {
	LANES = 4,
	TILE_ROWS = 4,
#if defined(__aarch64__)
	TILE_VECTORS = 4, /* for 32 vector registers */
#else
	TILE_VECTORS = 2, /* for 16 vector registers */
#endif
	TILE_COLUMNS = LANES * TILE_VECTORS,
	PANEL_DEPTH = 256,
};

struct tile {
	vector v[TILE_ROWS][TILE_VECTORS];
};

static void panel_fill(float *panel, struct matrix b, size_t columns, size_t depth)
{
	for (size_t k = 0; k < depth; k++) {
		const float *from = b.at + k * b.row;

		if (b.column == 1)
			memcpy(panel + k * TILE_COLUMNS, from, columns * sizeof(*from));
		else
			for (size_t j = 0; j < columns; j++)
				panel[k * TILE_COLUMNS + j] = from[j * b.column];
		for (size_t j = columns; j < TILE_COLUMNS; j++)
			panel[k * TILE_COLUMNS + j] = 0;
	}
}

/* Rows beyond the last repeat the last row. Their results are not used. */
static inline struct tile tile_multiply(struct matrix a, size_t rows, const float *panel,
                                        size_t depth)
{
	struct tile sum = { 0 };
	const float *from[TILE_ROWS];

	for (size_t i = 0; i < TILE_ROWS; i++)
		from[i] = a.at + (i < rows ? i : rows - 1) * a.row;
	for (size_t k = 0; k < depth; k++) {
		const vector *b = (const vector *)(panel + k * TILE_COLUMNS);

		for (size_t i = 0; i < TILE_ROWS; i++)
			for (size_t j = 0; j < TILE_VECTORS; j++)
				sum.v[i][j] += from[i][k * a.column] * b[j];
	}
	return sum;
}

static void tile_store(float *c, size_t stride, const struct tile *sum, size_t rows, size_t columns,
                       int add)
{
	const float(*from)[TILE_COLUMNS] = (const float(*)[TILE_COLUMNS])sum->v;

	if (columns == TILE_COLUMNS) {
		for (size_t i = 0; i < rows; i++)
			for (size_t j = 0; j < TILE_VECTORS; j++) {
				vector *to = (vector *)(c + i * stride) + j;

				if (add)
					*to += sum->v[i][j];
				else
					*to = sum->v[i][j];
			}
		return;
	}
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			c[i * stride + j] = from[i][j] + (add ? c[i * stride + j] : 0);
}

void matrix_multiply(float *c, struct matrix a, struct matrix b, size_t rows, size_t columns,
                     size_t depth)
{
	float panel[PANEL_DEPTH * TILE_COLUMNS];

	if (depth == 0)
		memset(c, 0, rows * columns * sizeof(*c));
	for (size_t k = 0; k < depth; k += PANEL_DEPTH) {
		size_t deep = depth - k < PANEL_DEPTH ? depth - k : PANEL_DEPTH;

		for (size_t j = 0; j < columns; j += TILE_COLUMNS) {
			size_t wide = columns - j < TILE_COLUMNS ? columns - j : TILE_COLUMNS;

			struct matrix strip = { b.at + k * b.row + j * b.column, b.row, b.column };

			panel_fill(panel, strip, wide, deep);
			for (size_t i = 0; i < rows; i += TILE_ROWS) {
				size_t high = rows - i < TILE_ROWS ? rows - i : TILE_ROWS;
				struct matrix part = { a.at + i * a.row + k * a.column, a.row,
					               a.column };
				struct tile sum = tile_multiply(part, high, panel, deep);

				tile_store(c + i * columns + j, columns, &sum, high, wide, k > 0);
			}
		}
	}
}

float vector_dot(const float *x, const float *y, size_t count)
{
	float part[4 * LANES] = { 0 }, sum = 0;
	size_t i = 0;

	for (; i + 4 * LANES <= count; i += 4 * LANES)
		for (size_t j = 0; j < 4 * LANES; j++)
			part[j] += x[i + j] * y[i + j];
	for (; i < count; i++)
		sum += x[i] * y[i];
	for (size_t j = 0; j < 4 * LANES; j++)
		sum += part[j];
	return sum;
}
