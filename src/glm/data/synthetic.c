/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/synthetic.h"

#include "base/random_bits.h"

#include <math.h>
#include <stdlib.h>

/* Dense rows: as many columns have an influence on the label, so that labels are quick to make. */
#define INFLUENCE 256u
#define PER_DRAW 4u /* values of 16 bits in a draw */

/* What a draw is for. Draws for different things have nothing to do with each other. */
enum draw { DRAW_VALUE, DRAW_COLUMN, DRAW_WEIGHT, DRAW_NOISE };

/* The part of a draw that is the same in a row. */
static uint64_t draw_row(const struct synthetic *synthetic, enum draw what, uint64_t a)
{
	return bits_mix(bits_mix(synthetic->seed * 8 + (uint64_t)what) + a * RANDOM_STEP);
}

static uint64_t draw(uint64_t row, uint64_t b)
{
	return bits_mix(row + (b + 1) * RANDOM_STEP);
}

static double unit(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

trib_status synthetic_check(const struct synthetic *synthetic)
{
	if (!synthetic->rows || !synthetic->columns)
		return status_fail(TRIB_ERR_CONFIG,
		                   "synthetic data need at least a row and a column");
	if (synthetic->columns > GLM_COLUMNS_MAX)
		return status_fail(TRIB_ERR_CONFIG,
		                   "synthetic data have at most %u columns, not %u",
		                   GLM_COLUMNS_MAX, synthetic->columns);
	if (!(synthetic->density > 0 && synthetic->density <= 1))
		return status_fail(TRIB_ERR_CONFIG, "a density is above 0 and at most 1, not %g",
		                   synthetic->density);
	if (synthetic->classes == 1 || synthetic->classes > SYNTHETIC_CLASSES_MAX)
		return status_fail(TRIB_ERR_CONFIG,
		                   "synthetic data have 0 (regression) or 2 to %u classes, not %u",
		                   SYNTHETIC_CLASSES_MAX, synthetic->classes);
	if (synthetic->skew > 4)
		return status_fail(TRIB_ERR_CONFIG, "a skew is at most 4, not %u", synthetic->skew);
	if (!(synthetic->noise >= 0) || (synthetic->classes && synthetic->noise > 1))
		return status_fail(TRIB_ERR_CONFIG, "a noise of %g is out of range",
		                   synthetic->noise);
	return TRIB_OK;
}

uint32_t synthetic_entries(const struct synthetic *synthetic)
{
	double entries = rint(synthetic->density * synthetic->columns);

	return entries < 1 ? 1 : (uint32_t)entries;
}

void synthetic_dense(const struct synthetic *synthetic, uint32_t row, uint32_t first,
                     uint32_t count, uint32_t *value)
{
	uint64_t base = draw_row(synthetic, DRAW_VALUE, row), bits = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t column = first + i;

		if (!i || column % PER_DRAW == 0)
			bits = draw(base, column / PER_DRAW);
		value[i] = (uint32_t)(bits >> 16 * (column % PER_DRAW) & 0xffff) + 1;
	}
}

/* One value in each of equal parts of the columns, so that columns ascend. */
static uint32_t row_sparse(const struct synthetic *synthetic, uint32_t row, uint32_t *column,
                           float *value)
{
	uint64_t base = draw_row(synthetic, DRAW_COLUMN, row);
	uint32_t entries = synthetic_entries(synthetic), n = 0, i, s;

	for (i = 0; i < entries; i++) {
		uint64_t bits = draw(base, i);
		double at = (i + unit(bits)) / entries, skewed = at;
		uint32_t j;

		for (s = 1; s < synthetic->skew; s++)
			skewed *= at;
		j = (uint32_t)(skewed * synthetic->columns);
		j = j < synthetic->columns ? j : synthetic->columns - 1;
		/* Low columns may be drawn again if they are more likely. */
		if (n && column[n - 1] >= j)
			continue;
		column[n] = j;
		value[n++] = (float)((bits & 0x3ff) + 1) * 0x1p-10f;
	}
	return n;
}

uint32_t synthetic_row(const struct synthetic *synthetic, uint32_t row, uint32_t *column,
                       float *value)
{
	uint32_t piece[1024], at, i;

	if (synthetic->density < 1)
		return row_sparse(synthetic, row, column, value);
	for (at = 0; at < synthetic->columns; at += i) {
		uint32_t n = synthetic->columns - at;

		n = n < 1024 ? n : 1024;
		synthetic_dense(synthetic, row, at, n, piece);
		for (i = 0; i < n; i++) {
			column[at + i] = at + i;
			value[at + i] = (float)piece[i] * 0x1p-16f;
		}
	}
	return synthetic->columns;
}

/* The hidden model, from -1 to 1. */
static double weight(const struct synthetic *synthetic, uint32_t class, uint32_t column)
{
	return 2 * unit(draw(draw_row(synthetic, DRAW_WEIGHT, class), column)) - 1;
}

static double score_dense(const struct synthetic *synthetic, uint32_t row, uint32_t class)
{
	uint32_t every = synthetic->columns / INFLUENCE + 1, j, value;
	double score = 0;

	for (j = 0; j < synthetic->columns; j += every) {
		synthetic_dense(synthetic, row, j, 1, &value);
		score += weight(synthetic, class, j) * (value * 0x1p-16 - 0.5);
	}
	return score;
}

static double score_sparse(const struct synthetic *synthetic, uint32_t class,
                           const uint32_t *column, const float *value, uint32_t n)
{
	double score = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		score += weight(synthetic, class, column[i]) * value[i];
	return score;
}

float synthetic_label(const struct synthetic *synthetic, uint32_t row, const uint32_t *column,
                      const float *value, uint32_t n)
{
	uint64_t base = draw_row(synthetic, DRAW_NOISE, row);
	uint32_t vectors = synthetic->classes > 2 ? synthetic->classes : 1, class, best = 0;
	double scores[SYNTHETIC_CLASSES_MAX];

	for (class = 0; class < vectors; class ++) {
		scores[class] = synthetic->density < 1
		                        ? score_sparse(synthetic, class, column, value, n)
		                        : score_dense(synthetic, row, class);
		if (scores[class] > scores[best])
			best = class;
	}
	if (!synthetic->classes)
		return (float)(scores[0] + synthetic->noise *
		                                   (unit(draw(base, 0)) + unit(draw(base, 1)) +
		                                    unit(draw(base, 2)) - 1.5) *
		                                   2);
	if (synthetic->classes == 2)
		best = scores[0] > 0;
	if (unit(draw(base, 0)) < synthetic->noise)
		best = (uint32_t)(unit(draw(base, 1)) * synthetic->classes);
	return synthetic->classes == 2 ? (best ? 1.0f : -1.0f) : (float)(best + 1);
}

trib_status synthetic_write(const struct synthetic *synthetic, FILE *file, const char *path)
{
	uint32_t entries = synthetic_entries(synthetic), row, i, n;
	uint32_t *column = malloc(entries * sizeof(*column));
	float *value = malloc(entries * sizeof(*value));
	trib_status status = TRIB_OK;

	if (!column || !value)
		status = status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for a row", path);
	for (row = 0; row < synthetic->rows && status == TRIB_OK; row++) {
		n = synthetic_row(synthetic, row, column, value);
		fprintf(file, "%.9g", (double)synthetic_label(synthetic, row, column, value, n));
		for (i = 0; i < n; i++)
			fprintf(file, " %u:%.9g", column[i] + 1, (double)value[i]);
		if (fputc('\n', file) == EOF)
			status = status_fail_errno("%s", path);
	}
	if (status == TRIB_OK && fflush(file))
		status = status_fail_errno("%s", path);
	free(column);
	free(value);
	return status;
}
