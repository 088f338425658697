/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glm/data owns the way from rows to a worker's matrix: statistics, quantization, shards, layouts,
 * and synthetic data. It must not know losses, models or networks.
 *
 * glm_load: the two passes over a file. The scan gathers statistics. The load takes the columns and
 * rows of one worker. Memory is in proportion to the columns in the scan, and to the shard in the
 * load.
 */
#ifndef TRIB_GLM_LOAD_H
#define TRIB_GLM_LOAD_H

#include "glm/data/label_kinds.h"
#include "glm/kernel/glm_matrix.h"

/*
 * How the non-zero values of a column are spread: positive and negative ones apart, by magnitude,
 * two bins a power of two. `top` is the power of two of the largest magnitude, and belongs to the
 * last two bins. The first bin also has everything below it. The order of the rows has no
 * influence.
 */
#define GLM_SPREAD_BINS 20u
struct glm_spread {
	uint32_t positive[GLM_SPREAD_BINS], negative[GLM_SPREAD_BINS];
	int16_t top;
	bool whole; /* all values are integers */
};

struct glm_stats {
	uint64_t rows, nonzeros;
	uint32_t columns; /* up to the highest one that is written, also with a 0 */
	/* One a column. A written zero counts as absent; min and max are of non-zero values. */
	float *min, *max;
	uint32_t *count;
	struct glm_spread *spread; /* only if the rules say `quantized` */
	char **names;              /* of the columns, from the header of a CSV file; NULL: none */
	double label_min, label_max;
	uint64_t digest; /* of all labels, indices and values, in the order of the file */
	struct glm_labels labels;
	enum glm_format format;
	enum glm_base base; /* one or zero: found, or as the source says */
	bool once;          /* from standard input or a pipe */
};

/* First pass. The caller frees the statistics, also after an error. */
trib_status glm_scan(const struct glm_source *source, const struct glm_rules *rules,
                     struct glm_stats *stats, struct glm_problem *problem);
void glm_stats_free(struct glm_stats *stats);

/* What one worker holds. */
struct glm_shard {
	uint32_t first, count;  /* columns first .. first + count; others are ignored */
	uint32_t rank, workers; /* rows with row % workers == rank; workers 0 or 1: all rows */
	enum glm_layout layout;
	uint32_t bits;           /* 0: float */
	const float *low, *step; /* of the shard's columns; see quantize.h. NULL for floats */
};

/*
 * Second pass. `stats` are those of the same file: a file that has changed since is an error.
 * `labels` has one target a row, see labels_target; the kinds are those of the rules, or else those
 * of the statistics. The caller frees the matrix with matrix_free and the labels with free.
 */
trib_status glm_load(const struct glm_source *source, const struct glm_rules *rules,
                     const struct glm_stats *stats, const struct glm_shard *shard,
                     struct glm_matrix *matrix, float **labels, struct glm_problem *problem);

#endif
