/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/trainer.h"

#include "base/status.h"
#include "glm/train/train_epoch.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 32768u /* columns that are gathered at once; even */

/*
 * A column's bits are a 32-bit half of an integer, and 0 on all workers but its owner. So the sum
 * of the integers is what the owner has.
 */
static trib_status floats_gather(struct trainer *t, const float *mine, float *all, int64_t *chunk)
{
	uint32_t first = t->first_column, count = t->data.matrix.columns;
	trib_status status = TRIB_OK;

	for (uint32_t at = 0; status == TRIB_OK && at < t->rule.columns; at += CHUNK) {
		uint32_t n = t->rule.columns - at < CHUNK ? t->rule.columns - at : CHUNK;
		uint32_t from = first > at ? first : at;
		uint32_t to = first + count < at + n ? first + count : at + n;

		memset(chunk, 0, CHUNK * sizeof(float));
		if (from < to)
			memcpy((float *)(void *)chunk + (from - at), mine + (from - first),
			       (to - from) * sizeof(float));
		status = exchange_sum(&t->exchange, chunk, (n + 1) / 2);
		memcpy(all + at, chunk, n * sizeof(float));
	}
	return status;
}

trib_status trainer_gather(struct trainer *t, float *x, float *h)
{
	int64_t *chunk = malloc(CHUNK / 2 * sizeof(*chunk));
	trib_status status = TRIB_OK;

	if (!chunk)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to gather");

	for (uint32_t c = 0; status == TRIB_OK && c < t->rule.classes; c++) {
		size_t at = (size_t)c * t->rule.columns, bytes = t->rule.columns * sizeof(float);

		if (t->rule.data_parallel) {
			memcpy(x + at, t->weights[c].x, bytes);
			if (h)
				memcpy(h + at, t->weights[c].h, bytes);
			continue;
		}
		status = floats_gather(t, t->weights[c].x, x + at, chunk);
		if (status == TRIB_OK && h)
			status = floats_gather(t, t->weights[c].h, h + at, chunk);
	}
	free(chunk);
	return status;
}

trib_status floats_spread(struct exchange *x, float *floats, size_t n)
{
	int64_t *chunk = malloc(CHUNK / 2 * sizeof(*chunk));
	trib_status status = TRIB_OK;

	if (!chunk)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to spread");

	for (size_t at = 0; status == TRIB_OK && at < n; at += CHUNK) {
		size_t now = n - at < CHUNK ? n - at : CHUNK;

		memset(chunk, 0, CHUNK * sizeof(float));
		if (x->rank == 0)
			memcpy(chunk, floats + at, now * sizeof(float));
		status = exchange_sum(x, chunk, (now + 1) / 2);
		memcpy(floats + at, chunk, now * sizeof(float));
	}
	free(chunk);
	return status;
}

void trainer_scatter(struct trainer *t, const float *x, const float *h)
{
	for (uint32_t c = 0; c < t->rule.classes; c++) {
		size_t at = (size_t)c * t->rule.columns + t->first_column;
		size_t bytes = t->data.matrix.columns * sizeof(float);

		memcpy(t->weights[c].x, x + at, bytes);
		if (h)
			memcpy(t->weights[c].h, h + at, bytes);
	}
	for (uint32_t i = 0; i < t->rule.threads; i++)
		thread_prepare(&t->team[i]);
}

/* ---- scoring ---- */

#define SCORE_ROWS 1024u /* rows whose activations are summed at once */

/* A thread's part of `n` rows from `at` on: their activations on this worker. */
static void part_forward(struct train_thread *self, const uint32_t *rows, uint32_t first,
                         uint32_t count, uint32_t n)
{
	struct trainer *t = self->trainer;
	const struct train_rule *rule = &t->rule;
	const struct train_data *data = t->scored;
	uint32_t columns = data->matrix.columns;
	bool adds_bias = rule->bias && (rule->data_parallel || t->exchange.rank == 0);

	for (uint32_t c = 0; c < rule->classes; c++) {
		int64_t *activation = t->scores + (size_t)c * n + first;
		int64_t same = adds_bias ? weights_fixed((double)t->bias[c].x) : 0;

		if (data->low)
			same += weights_constant(&t->weights[c], 0, columns);
		for (uint32_t k = 0; k < count; k++)
			activation[k] = same;
		kernel_forward(&data->matrix, &t->kernels[c], rows, count, 0, columns, activation);
	}
}

/* The first thread sums over the workers, when all threads have done their part. */
static void scores_sum(struct train_thread *self, uint32_t n)
{
	struct trainer *t = self->trainer;

	if (t->rule.data_parallel)
		return; /* each worker has rows of its own */
	threads_meet(t);
	if (self->number == 0) {
		trib_status status =
			exchange_sum(&t->exchange, t->scores, (size_t)t->rule.classes * n);

		if (status != TRIB_OK)
			threads_fail(t, status);
	}
	threads_meet(t);
}

void thread_score(struct train_thread *self)
{
	struct trainer *t = self->trainer;
	const struct train_data *data = t->scored;
	uint32_t rows[SCORE_ROWS], n, threads = t->rule.threads;

	self->sums = (struct train_sums){ 0 };
	for (uint32_t at = 0; at < data->matrix.rows && !t->failed; at += n) {
		uint32_t first, count;

		n = data->matrix.rows - at < SCORE_ROWS ? data->matrix.rows - at : SCORE_ROWS;
		first = n * self->number / threads;
		count = n * (self->number + 1) / threads - first;
		for (uint32_t k = 0; k < count; k++)
			rows[k] = at + first + k;
		/* The sums of fewer rows stand elsewhere: where others may still read. */
		if (at && n < SCORE_ROWS)
			threads_meet(t);
		part_forward(self, rows, first, count, n);
		scores_sum(self, n);
		losses_add(self, &(struct train_losses){ .activation = t->scores + first,
		                                         .stride = n,
		                                         .targets = data->targets,
		                                         .rows = rows,
		                                         .n = count });
	}
}

trib_status trainer_score(struct trainer *t, const struct train_data *data, struct train_sums *sums)
{
	t->scores = malloc((size_t)SCORE_ROWS * t->rule.classes * sizeof(*t->scores));
	if (!t->scores)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to score");

	t->scored = data;
	threads_meet(t);
	thread_score(&t->team[0]);
	threads_meet(t);
	t->scored = NULL;
	free(t->scores);
	t->scores = NULL;
	if (t->failed)
		return status_fail((trib_status)t->failed, "%s", t->error);
	return trainer_sums(t, sums);
}
