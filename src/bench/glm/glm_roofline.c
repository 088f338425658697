/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/glm/glm_roofline.h"

#include "base/random_bits.h"
#include "base/clock.h"
#include "glm/data/large_memory.h"
#include "glm/kernel/glm_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct roofline {
	struct roofline_plan plan;
	uint64_t *words; /* random bits: codes of any width */
	size_t n;        /* words */
	bool is_float;   /* the words are floats from -1 to 1 */
};

/* Nanoseconds of CPU time of this thread: other programs on the machine do not count. */
static uint64_t time_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t roofline_cache_bytes(void)
{
	uint64_t largest = 0;

	for (int i = 0; i < 8; i++) {
		char path[96];
		unsigned long long kib = 0;
		FILE *in;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		in = fopen(path, "re");
		if (!in)
			break;
		if (fscanf(in, "%lluK", &kib) == 1 && kib * 1024 > largest)
			largest = kib * 1024;
		fclose(in);
	}
	return largest;
}

trib_status roofline_open(struct roofline **out, const struct roofline_plan *plan)
{
	struct roofline *roofline = calloc(1, sizeof(*roofline));

	if (!roofline)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory");
	roofline->plan = *plan;
	roofline->n = plan->bytes / 64 * 8;
	roofline->words = large_memory(roofline->n * 8);
	if (!roofline->words) {
		free(roofline);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %llu MiB of data",
		                   (unsigned long long)(plan->bytes >> 20));
	}
	for (size_t i = 0; i < roofline->n; i++) {
		uint64_t state = i;

		roofline->words[i] = random_next(&state);
	}
	*out = roofline;
	return TRIB_OK;
}

void roofline_close(struct roofline *roofline)
{
	if (!roofline)
		return;
	free(roofline->words);
	free(roofline);
}

/* Random bits as floats: a sign, an exponent that makes 0.5 to 1, and any fraction. */
static void words_as_floats(struct roofline *roofline)
{
	for (size_t i = 0; !roofline->is_float && i < roofline->n; i++)
		roofline->words[i] = (roofline->words[i] & 0x807fffff807fffff) | 0x3f0000003f000000;
	roofline->is_float = true;
}

double roofline_bandwidth(struct roofline *roofline)
{
	const uint64_t *words = roofline->words;
	uint64_t sums[8] = { 0 }, start = time_now(), passes = 0;
	double seconds;

	do {
		for (size_t i = 0; i + 8 <= roofline->n; i += 8)
			for (unsigned k = 0; k < 8; k++)
				sums[k] += words[i + k];
		passes++;
		seconds = (double)(time_now() - start) / NSEC_PER_SEC;
	} while (seconds < roofline->plan.seconds);
	/* The compiler must not leave the sums out. */
	__asm__ volatile("" : : "r"(sums) : "memory");
	return (double)passes * (double)roofline->n * 8 / seconds;
}

/* What training holds beside the data. */
struct bed {
	struct glm_matrix matrix;
	struct glm_weights weights;
	float *step, *scale_f;
	int32_t *scale_i;
	int64_t *g, *activation;
	uint32_t *order, *rows;
};

static void bed_close(struct bed *bed)
{
	void *all[] = { bed->weights.x, bed->weights.u,    bed->weights.limbs,
		        bed->step,      bed->scale_f,      bed->scale_i,
		        bed->g,         bed->activation,   bed->order,
		        bed->rows,      bed->matrix.start, bed->matrix.column };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

/* Columns of a sparse row: one of each stretch of equal length, so they are sorted. */
static bool sparse_fill(struct roofline *roofline, struct glm_matrix *matrix)
{
	const uint64_t entries = roofline->plan.nonzeros, features = matrix->columns;
	uint64_t state = 1;

	matrix->value = (float *)roofline->words;
	matrix->start = malloc(((size_t)matrix->rows + 1) * sizeof(*matrix->start));
	matrix->column = large_memory(matrix->rows * entries * sizeof(*matrix->column));
	if (!matrix->start || !matrix->column)
		return false;
	for (uint64_t r = 0; r <= matrix->rows; r++)
		matrix->start[r] = r * entries;
	for (uint64_t r = 0; r < matrix->rows; r++) {
		for (uint64_t i = 0; i < entries; i++) {
			uint64_t from = features * i / entries, to = features * (i + 1) / entries;

			matrix->column[r * entries + i] =
				(uint32_t)(from + random_next(&state) % (to - from));
		}
	}
	return true;
}

static bool matrix_fill(struct roofline *roofline, const struct roofline_case *what,
                        struct glm_matrix *matrix, double *row_bytes)
{
	const uint64_t bytes = roofline->n * 8;

	if (what->sparse) {
		/* Half of an entry is its column. */
		*row_bytes = roofline->plan.nonzeros * 8.;
		matrix->layout = GLM_SPARSE;
		matrix->rows = (uint32_t)(bytes / (roofline->plan.nonzeros * 8));
		return sparse_fill(roofline, matrix);
	}
	if (what->bits) {
		matrix->layout = GLM_WEAVED;
		matrix->bits = what->bits;
		matrix->weave = (uint8_t *)roofline->words;
		matrix->weave_stride = weave_row_bytes(matrix->columns, what->bits);
		matrix->rows = (uint32_t)(bytes / matrix->weave_stride);
		*row_bytes = (double)matrix->weave_stride;
		return true;
	}
	matrix->layout = GLM_DENSE;
	matrix->dense = (float *)roofline->words;
	matrix->stride = (matrix->columns + 15) / 16 * 16;
	matrix->rows = (uint32_t)(bytes / (matrix->stride * sizeof(float)));
	*row_bytes = matrix->columns * (double)sizeof(float);
	return true;
}

static bool bed_fill(struct roofline *roofline, struct bed *bed)
{
	const uint32_t features = bed->matrix.columns, batch = roofline->plan.batch;
	uint64_t state = 2;

	bed->weights.x = large_memory(features * sizeof(float));
	bed->weights.u = large_memory(features * sizeof(int32_t));
	bed->weights.limbs = large_memory(kernel_limb_bytes(features));
	bed->step = large_memory(features * sizeof(float));
	bed->g = large_memory(features * sizeof(int64_t));
	bed->scale_f = calloc(batch, sizeof(float));
	bed->scale_i = calloc(batch, sizeof(int32_t));
	bed->activation = calloc(batch, sizeof(int64_t));
	bed->rows = calloc(batch, sizeof(uint32_t));
	bed->order = calloc(bed->matrix.rows, sizeof(uint32_t));
	if (!bed->weights.x || !bed->weights.u || !bed->weights.limbs || !bed->step || !bed->g ||
	    !bed->scale_f || !bed->scale_i || !bed->activation || !bed->rows || !bed->order)
		return false;
	for (uint32_t j = 0; j < features; j++) {
		bed->weights.x[j] = (float)(int32_t)random_next(&state) * 0x1p-36f;
		bed->step[j] = 0x1p-8f;
	}
	for (uint32_t k = 0; k < batch; k++) {
		bed->scale_i[k] = (int32_t)(random_next(&state) & 0xffff) - 0x8000;
		bed->scale_f[k] = (float)bed->scale_i[k] * 0x1p-16f;
	}
	for (uint32_t r = 0; r < bed->matrix.rows; r++) {
		uint32_t other = (uint32_t)(random_next(&state) % (r + 1));

		bed->order[r] = bed->order[other];
		bed->order[other] = r;
	}
	return true;
}

/* One mini-batch. Its weights are prepared once. */
static void batch_run(const struct roofline_plan *plan, struct bed *bed, uint64_t *at)
{
	const struct glm_matrix *matrix = &bed->matrix;

	if (matrix->bits)
		kernel_prepare(matrix, bed->step, &bed->weights, 0, matrix->columns);
	for (uint32_t k = 0; k < plan->batch; k++, (*at)++)
		bed->rows[k] = bed->order[*at % matrix->rows];
	for (uint32_t k = 0; k < plan->batch; k += plan->micro_batch) {
		uint32_t n =
			plan->batch - k < plan->micro_batch ? plan->batch - k : plan->micro_batch;

		kernel_forward(matrix, &bed->weights, bed->rows + k, n, 0, matrix->columns,
		               bed->activation + k);
		kernel_backward(matrix, bed->rows + k, n, bed->scale_f + k, bed->scale_i + k, 0,
		                matrix->columns, bed->g);
	}
}

trib_status roofline_measure(struct roofline *roofline, const struct roofline_case *what,
                             uint32_t features, struct roofline_result *result)
{
	struct bed bed = { .matrix = { .columns = features } };
	uint64_t at = 0, start;
	double seconds = 0;

	if (!what->bits)
		words_as_floats(roofline);
	if (!matrix_fill(roofline, what, &bed.matrix, &result->row_bytes) || !bed.matrix.rows ||
	    !bed_fill(roofline, &bed)) {
		bed_close(&bed);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for rows of %u features",
		                   features);
	}
	batch_run(&roofline->plan, &bed, &at); /* maps what was allocated */
	at = 0;
	start = time_now();
	do {
		batch_run(&roofline->plan, &bed, &at);
		seconds = (double)(time_now() - start) / NSEC_PER_SEC;
	} while (seconds < roofline->plan.seconds);
	result->samples = (double)at / seconds;
	bed_close(&bed);
	return TRIB_OK;
}
