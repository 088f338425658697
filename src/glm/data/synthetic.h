/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic: random data whose labels come from a hidden linear model. A value depends on seed, row
 * and column only, so each worker can make its own shard, and all agree. Values are multiples of
 * 2^-16 above 0 and up to 1.
 */
#ifndef TRIB_GLM_SYNTHETIC_H
#define TRIB_GLM_SYNTHETIC_H

#include "glm/data/glm_load.h"

#include <stdio.h>

struct synthetic {
	uint32_t rows, columns;
	double density; /* share of values that are not 0; 1: dense */
	uint32_t skew;  /* sparse only. 0 or 1: columns equally likely; 2 to 4: low ones more likely
	                 */
	uint32_t classes; /* 0: regression; 2: labels -1 and 1; more: labels 1 .. classes */
	double noise;     /* classes: share of random labels; regression: deviation of the noise */
	uint64_t seed;
};

#define SYNTHETIC_CLASSES_MAX 64u

/* The error says which number is out of range. */
trib_status synthetic_check(const struct synthetic *synthetic);

/* Non-zero values of a row, at most. */
uint32_t synthetic_entries(const struct synthetic *synthetic);

/* One row. `column` and `value` have room for synthetic_entries. Returns their number. */
uint32_t synthetic_row(const struct synthetic *synthetic, uint32_t row, uint32_t *column,
                       float *value);

/* The values of columns first .. first + count of a dense row, each in 2^-16, from 1 to 65536. */
void synthetic_dense(const struct synthetic *synthetic, uint32_t row, uint32_t first,
                     uint32_t count, uint32_t *value);

/* The label of a row that synthetic_row gave. A dense row needs no columns and values: NULL and 0.
 */
float synthetic_label(const struct synthetic *synthetic, uint32_t row, const uint32_t *column,
                      const float *value, uint32_t n);

/* libsvm text, with indices from 1. */
trib_status synthetic_write(const struct synthetic *synthetic, FILE *file, const char *path);

/* low and step of every column: all values lie between 0 and 1. */
void synthetic_maps(uint32_t count, uint32_t bits, float *low, float *step);

/*
 * A worker's shard, as glm_load would give it, without a file. Labels are targets of the task: -1
 * and 1, or a class from 0. `low` and `step` of the shard are those of synthetic_maps.
 */
trib_status synthetic_fill(const struct synthetic *synthetic, const struct glm_shard *shard,
                           struct glm_matrix *matrix, float **labels);

#endif
