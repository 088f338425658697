/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_route.h"

#include "sparse/client/client_hot.h"
#include "sparse/client/client_queue.h"
#include "sparse/wire/shard_of.h"

#include <stdlib.h>
#include <string.h>

/* Rows sorted by shard: `starts` has the first of each shard, and the end. */
struct sorted_rows {
	size_t *starts, *order;
};

static bool sort_by_shard(struct sorted_rows *out, const uint64_t *keys, size_t n, uint32_t shards)
{
	size_t at = 0;

	out->starts = calloc(shards + 1, sizeof(*out->starts));
	out->order = calloc(n + 1, sizeof(*out->order));
	if (!out->starts || !out->order)
		return false;
	for (size_t i = 0; i < n; i++)
		out->starts[shard_of(keys[i], shards)]++;
	for (uint32_t s = 0; s <= shards; s++) {
		size_t count = out->starts[s];

		out->starts[s] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		out->order[out->starts[shard_of(keys[i], shards)]++] = i;
	/* The loop has moved each start to its end. */
	memmove(out->starts + 1, out->starts, shards * sizeof(*out->starts));
	out->starts[0] = 0;
	return true;
}

static void sorted_free(struct sorted_rows *rows)
{
	free(rows->starts);
	free(rows->order);
}

/* The cold rows of one shard, gathered. */
static trib_status push_shard(struct shard *shard, struct trib_sparse_request *request,
                              const uint64_t *keys, const float *rows, const size_t *order,
                              size_t n)
{
	size_t width = shard->table->width, cold = 0;
	uint64_t *cold_keys = malloc((n + 1) * sizeof(*cold_keys));
	float *cold_rows = malloc((n * width + 1) * sizeof(*cold_rows));
	trib_status status;

	if (!cold_keys || !cold_rows) {
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu rows", n);
	} else {
		for (size_t i = 0; i < n; i++) {
			const float *row = rows + order[i] * width;

			if (client_hot_take(shard, keys[order[i]], row))
				continue;
			cold_keys[cold] = keys[order[i]];
			memcpy(cold_rows + cold++ * width, row, width * sizeof(*row));
		}
		client_hot_post(shard, request);
		status = queue_push_cold(shard, request, cold_keys, cold_rows, cold);
		client_hot_pushed(shard);
	}
	free(cold_keys);
	free(cold_rows);
	return status;
}

trib_status route_push(struct trib_sparse_request *request, const uint64_t *keys, const float *rows,
                       size_t n)
{
	trib_sparse *table = request->table;
	struct sorted_rows sorted = { 0 };
	trib_status status = TRIB_OK;

	if (!sort_by_shard(&sorted, keys, n, table->n_shards))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu rows", n);
	for (uint32_t s = 0; status == TRIB_OK && s < table->n_shards; s++)
		status = push_shard(&table->shards[s], request, keys, rows,
		                    sorted.order + sorted.starts[s],
		                    sorted.starts[s + 1] - sorted.starts[s]);
	sorted_free(&sorted);
	table->stats.pushed_rows += n;
	return status;
}

trib_status route_pull(struct trib_sparse_request *request, const uint64_t *keys,
                       const size_t *places, size_t n)
{
	trib_sparse *table = request->table;
	struct sorted_rows sorted = { 0 };
	trib_status status = TRIB_OK;

	if (!sort_by_shard(&sorted, keys, n, table->n_shards))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu rows", n);
	for (uint32_t s = 0; status == TRIB_OK && s < table->n_shards; s++) {
		size_t *order = sorted.order + sorted.starts[s];
		size_t cold = client_hot_pull(&table->shards[s], request, keys, places, order,
		                              sorted.starts[s + 1] - sorted.starts[s]);

		status = queue_pull_some(&table->shards[s], request, keys, places, order, cold);
	}
	sorted_free(&sorted);
	table->stats.pulled_rows += n;
	return status;
}
