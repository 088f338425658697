/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls of hot rows from an aggregator's cache. What it lacks is asked for at the server. */
#include "sparse/client/client_hot_state.h"
#include "sparse/client/client_queue.h"
#include "sparse/hot/hot_order.h"

#include <stdlib.h>
#include <string.h>

/* A question to the aggregator. */
struct hot_pull_item {
	struct trib_sparse_request *request;
	uint32_t n;
	uint64_t *keys;
	size_t *places;
	uint16_t numbers[];
};

void client_pull_bar(struct shard *shard, uint64_t push)
{
	struct client_hot *hot = shard->hot;

	hot->barrier = push;
	hot->is_acked = shard->acknowledged >= push;
	hot->safe_epoch = hot->ack_epoch;
}

void client_hot_acked(struct shard *shard, uint64_t push, uint32_t epoch)
{
	struct client_hot *hot = shard->hot;

	if (!hot)
		return;
	hot->ack_epoch = epoch;
	if (hot->is_acked || push < hot->barrier)
		return;
	hot->is_acked = true;
	hot->safe_epoch = epoch;
}

/* The last ACK came just before, and names the round that shows the pushes of all others. */
void client_hot_clock(struct shard *shard)
{
	struct client_hot *hot = shard->hot;

	if (hot && (int32_t)(hot->ack_epoch - hot->safe_epoch) > 0)
		hot->safe_epoch = hot->ack_epoch;
}

static bool is_usable(const struct client_hot *hot)
{
	return client_hot_map(hot) && hot->about.layout & SPARSE_VALUES && hot->is_acked &&
	       (int32_t)(hot->epoch - hot->safe_epoch) >= 0;
}

/* ---- asking ---- */

static void item_free(struct hot_pull_item *item)
{
	free(item->keys);
	free(item->places);
	free(item);
}

static struct hot_pull_item *item_new(struct trib_sparse_request *request, uint32_t n)
{
	struct hot_pull_item *item = malloc(sizeof(*item) + n * sizeof(item->numbers[0]));

	if (!item)
		return NULL;
	*item = (struct hot_pull_item){ .request = request, .n = n };
	item->keys = malloc(((size_t)n + 1) * sizeof(*item->keys));
	item->places = malloc(((size_t)n + 1) * sizeof(*item->places));
	if (item->keys && item->places)
		return item;
	item_free(item);
	return NULL;
}

/* Asks for the rows order[from] to order[from + n - 1]. False: the server has to be asked. */
static bool ask(struct client_hot *hot, struct trib_sparse_request *request,
                const struct hot_map *map, const size_t *places, uint32_t from, uint32_t n)
{
	struct hot_pull_item *item = item_new(request, n);

	if (!item)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		item->numbers[i] = hot_order_row(hot->order[from + i]);
		item->keys[i] = map->keys[item->numbers[i]];
		item->places[i] = places[hot->places[hot_order_place(hot->order[from + i])]];
	}
	if (!hot_puller_ask(&hot->puller, (uintptr_t)item, (uint16_t)map->generation, item->numbers,
	                    n)) {
		item_free(item);
		return false;
	}
	request->left++;
	return true;
}

size_t client_hot_pull(struct shard *shard, struct trib_sparse_request *request,
                       const uint64_t *keys, const size_t *places, size_t *order, size_t n)
{
	struct client_hot *hot = shard->hot;
	const struct hot_map *map = is_usable(hot) ? client_hot_map(hot) : NULL;
	uint32_t taken = 0;
	size_t cold = 0;

	if (!map)
		return n;
	for (size_t i = 0; i < n; i++) {
		uint32_t row = hot_map_row(map, keys[order[i]]);

		if (row < hot->rows && taken < hot->rows) {
			hot->order[taken] = hot_order_entry(row, taken);
			hot->places[taken++] = order[i];
		} else {
			order[cold++] = order[i];
		}
	}
	hot_order_sort(hot->order, taken);
	for (uint32_t from = 0, k; from < taken; from += k) {
		uint32_t left = taken - from;

		k = left < hot->puller.per_packet ? left : hot->puller.per_packet;
		if (ask(hot, request, map, places, from, k))
			continue;
		for (uint32_t i = from; i < from + k; i++)
			order[cold++] = hot->places[hot_order_place(hot->order[i])];
	}
	return cold;
}

/* ---- answers ---- */

void client_pull_values(void *context, uint64_t tag, const struct hot_rows *rows)
{
	struct shard *shard = context;
	struct hot_pull_item *item = (void *)(uintptr_t)tag;
	struct trib_sparse_request *request = item->request;
	size_t width = shard->table->width;
	uint32_t k = 0, missing = 0;

	for (uint32_t i = 0; i < item->n; i++) {
		if (k < rows->n && rows->numbers[k] == item->numbers[i]) {
			if (request->rows)
				memcpy(request->rows + item->places[i] * width,
				       rows->values + k * width, width * sizeof(float));
			k++;
		} else {
			item->keys[missing] = item->keys[i];
			item->places[missing++] = item->places[i];
		}
	}
	shard->table->stats.hot_pulled_rows += k;
	if (missing &&
	    queue_pull_cold(shard, request, item->keys, item->places, missing) != TRIB_OK)
		client_fail(shard->table, TRIB_ERR_NO_MEMORY, "%s", trib_last_error());
	queue_part_ended(request);
	item_free(item);
}
