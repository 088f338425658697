/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_queue.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

struct trib_sparse_request *queue_request(trib_sparse *table, bool is_push, bool is_owned)
{
	struct trib_sparse_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->table = table;
	request->is_push = is_push;
	request->is_owned = is_owned;
	request->left = 1;
	if (!is_push)
		return request;
	request->ticket = ++table->tickets;
	request->previous = table->last_push;
	if (table->last_push)
		table->last_push->next = request;
	else
		table->pushes = request;
	table->last_push = request;
	return request;
}

static void push_unlink(struct trib_sparse_request *request)
{
	trib_sparse *table = request->table;

	if (request->previous)
		request->previous->next = request->next;
	else
		table->pushes = request->next;
	if (request->next)
		request->next->previous = request->previous;
	else
		table->last_push = request->previous;
	request->next = request->previous = NULL;
}

void queue_request_free(struct trib_sparse_request *request)
{
	free(request->copies);
	free(request);
}

/* Rows that have the same key as an earlier one get its values. */
static void copies_make(const struct trib_sparse_request *request)
{
	size_t width = request->table->width;

	for (size_t i = 0; request->rows && i < request->n_copies; i++)
		memcpy(request->rows + request->copies[i][0] * width,
		       request->rows + request->copies[i][1] * width, width * sizeof(float));
}

void queue_part_ended(struct trib_sparse_request *request)
{
	trib_sparse *table = request->table;

	if (--request->left)
		return;
	if (request->is_push)
		push_unlink(request);
	else
		copies_make(request);
	if (!request->is_owned)
		queue_request_free(request);
	pthread_cond_broadcast(&table->changed);
}

void queue_ready(struct trib_sparse_request *request)
{
	queue_part_ended(request);
}

/* ---- queues ---- */

static struct outgoing *item_new(struct trib_sparse_request *request, enum message_kind kind,
                                 uint32_t n)
{
	struct outgoing *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->request = request;
	item->kind = kind;
	item->n = n;
	return item;
}

static void item_free(struct outgoing *item)
{
	buffer_free(&item->bytes);
	free(item->places);
	free(item);
}

static trib_status item_fail(struct outgoing *item, uint32_t n)
{
	if (item)
		item_free(item);
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a message of %u rows", n);
}

static void item_append(struct shard *shard, struct outgoing *item)
{
	if (shard->last)
		shard->last->next = item;
	else
		shard->first = item;
	shard->last = item;
	if (!shard->unsent) {
		shard->unsent = item;
		shard->unsent_at = 0;
	}
	item->request->left++;
	shard->table->under_way += buffer_bytes(&item->bytes);
}

void queue_sent(struct shard *shard)
{
	shard->unsent->is_sent = true;
	do
		shard->unsent = shard->unsent->next;
	while (shard->unsent && shard->unsent->is_sent);
	shard->unsent_at = 0;
}

void queue_remove(struct shard *shard, struct outgoing *item)
{
	struct outgoing **link = &shard->first, *before = NULL;

	while (*link && *link != item) {
		before = *link;
		link = &(*link)->next;
	}
	*link = item->next;
	if (shard->last == item)
		shard->last = before;
	if (shard->unsent == item)
		queue_sent(shard);
	if (shard->table->under_way >= CLIENT_UNDER_WAY_MAX)
		pthread_cond_broadcast(&shard->table->changed);
	shard->table->under_way -= buffer_bytes(&item->bytes);
	queue_part_ended(item->request);
	item_free(item);
}

/* A message of up to a certain number of rows. */
static trib_status push_one(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const float *rows, uint32_t n)
{
	struct outgoing *item = item_new(request, MESSAGE_PUSH, n);
	unsigned flags = shard->table->is_half ? MESSAGE_F16 : 0;

	if (!item || !message_add_push(&item->bytes, shard->pushes + 1, flags, keys, rows, n,
	                               shard->table->width))
		return item_fail(item, n);
	item->number = ++shard->pushes;
	item_append(shard, item);
	return TRIB_OK;
}

trib_status queue_push_cold(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const float *rows, size_t n)
{
	size_t width = shard->table->width;
	uint32_t most = message_rows_fit(CLIENT_MESSAGE_BYTES, (uint32_t)width);
	trib_status status = TRIB_OK;

	for (size_t i = 0; status == TRIB_OK && i < n; i += most)
		status = push_one(shard, request, keys + i, rows + i * width,
		                  n - i < most ? (uint32_t)(n - i) : most);
	return status;
}

/* ---- pulls ---- */

static trib_status pull_one(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const size_t *places, const size_t *order,
                            uint32_t n)
{
	trib_sparse *table = shard->table;
	struct outgoing *item = item_new(request, MESSAGE_PULL, n);
	uint64_t *wanted = malloc(n * sizeof(*wanted));
	bool good = item && wanted && (item->places = malloc(n * sizeof(*places)));

	for (uint32_t i = 0; good && i < n; i++) {
		wanted[i] = keys[order[i]];
		item->places[i] = places[order[i]];
	}
	good = good && message_add_pull(&item->bytes, ++table->pulls,
	                                table->is_half ? MESSAGE_F16 : 0, wanted, n);
	free(wanted);
	if (!good)
		return item_fail(item, n);
	item->number = table->pulls;
	item_append(shard, item);
	return TRIB_OK;
}

trib_status queue_pull_some(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const size_t *places, const size_t *order,
                            size_t n)
{
	uint32_t most = message_rows_fit(CLIENT_MESSAGE_BYTES, shard->table->width);
	trib_status status = TRIB_OK;

	for (size_t i = 0; status == TRIB_OK && i < n; i += most)
		status = pull_one(shard, request, keys, places, order + i,
		                  n - i < most ? (uint32_t)(n - i) : most);
	return status;
}

trib_status queue_pull_cold(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const size_t *places, size_t n)
{
	size_t *order = malloc((n + 1) * sizeof(*order));
	trib_status status;

	if (!order)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu rows", n);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	status = queue_pull_some(shard, request, keys, places, order, n);
	free(order);
	return status;
}

/* ---- answers ---- */

bool queue_acknowledge(struct shard *shard, uint64_t number)
{
	struct outgoing *next;

	if (number > shard->pushes)
		return false;
	if (number > shard->acknowledged)
		shard->acknowledged = number;
	for (struct outgoing *item = shard->first; item; item = next) {
		next = item->next;
		if (item->kind != MESSAGE_PUSH)
			continue;
		if (item->number > number)
			break;
		if (!item->is_sent)
			return false;
		queue_remove(shard, item);
	}
	return true;
}

struct outgoing *queue_find_pull(struct shard *shard, uint64_t number)
{
	struct outgoing *item = shard->first;

	while (item && (item->kind != MESSAGE_PULL || item->number != number))
		item = item->next;
	return item;
}

void queue_rewind(struct shard *shard, uint64_t applied)
{
	shard->unsent = NULL;
	shard->unsent_at = 0;
	for (struct outgoing *item = shard->first; item; item = item->next) {
		item->is_sent = item->kind == MESSAGE_PUSH && item->number <= applied;
		if (!item->is_sent && !shard->unsent)
			shard->unsent = item;
	}
}
