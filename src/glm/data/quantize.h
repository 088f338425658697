/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantize: values as codes of 1 to 8 bits, value = low + code * step, with one map a column. Pure.
 *
 * low is 0 if the column has values of one sign only and is absent from some rows, so absent
 * features keep the code 0. The step is negative if all values are. A column with both signs that
 * is absent from some rows has 0 as one of its values. A column that is in all rows may begin at
 * its minimum. Among the candidates, the map with the least absolute error wins: integers one by
 * one, the whole range, and shorter ranges that clip the largest values.
 */
#ifndef TRIB_GLM_QUANTIZE_H
#define TRIB_GLM_QUANTIZE_H

#include "glm/data/glm_load.h"

struct quantize_map {
	float low, step;
};

/* What is known of a column. */
struct quantize_column {
	float min, max; /* of non-zero values */
	uint64_t count; /* non-zero values */
	uint64_t rows;
	const struct glm_spread *spread; /* NULL: unknown, so the whole range is used */
};

/* `bits`: 1 to 8. */
struct quantize_map quantize_choose(const struct quantize_column *column, uint32_t bits);

uint8_t quantize_code(float value, struct quantize_map map, uint32_t bits);

/* Maps of the columns first .. first + count. */
void quantize_plan(const struct glm_stats *stats, uint32_t first, uint32_t count, uint32_t bits,
                   float *low, float *step);

/*
 * The entries that a sparse matrix of these columns has at most. If 0 is not code 0 in a column,
 * then each row has an entry there.
 */
uint64_t quantize_entries(const struct glm_stats *stats, uint32_t first, uint32_t count,
                          uint32_t bits, const float *low, const float *step);

#endif
