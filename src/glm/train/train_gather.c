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

#define SCORE_ROWS 256u

trib_status trainer_score(struct trainer *t, const struct train_data *data, struct train_sums *sums)
{
	const struct train_rule *rule = &t->rule;
	uint32_t rows[SCORE_ROWS], n, columns = data->matrix.columns;
	int64_t *activation = malloc((size_t)SCORE_ROWS * rule->classes * sizeof(*activation));
	bool adds_bias = rule->bias && (rule->data_parallel || t->exchange.rank == 0);
	trib_status status = TRIB_OK;

	if (!activation)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to score");

	*sums = (struct train_sums){ 0 };
	for (uint32_t at = 0; status == TRIB_OK && at < data->matrix.rows; at += n) {
		n = data->matrix.rows - at < SCORE_ROWS ? data->matrix.rows - at : SCORE_ROWS;
		for (uint32_t k = 0; k < n; k++)
			rows[k] = at + k;
		for (uint32_t c = 0; c < rule->classes; c++) {
			int64_t same = adds_bias ? weights_fixed((double)t->bias[c].x) : 0;

			if (data->low)
				same += weights_constant(&t->weights[c], 0, columns);
			for (uint32_t k = 0; k < n; k++)
				activation[c * n + k] = same;
			kernel_forward(&data->matrix, &t->kernels[c], rows, n, 0, columns,
			               activation + (size_t)c * n);
		}
		status = rule->data_parallel ? TRIB_OK
		                             : exchange_sum(&t->exchange, activation,
		                                            (size_t)rule->classes * n);
		sums_add(rule, activation, data->targets, rows, n, sums);
	}
	free(activation);
	if (status == TRIB_OK && rule->data_parallel)
		status =
			exchange_sum(&t->exchange, &sums->loss, sizeof(*sums) / sizeof(sums->loss));
	return status;
}
