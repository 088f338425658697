/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and pulls of <tributary/sparse.h>, and waiting for them. */
#include "sparse/client/client_hot.h"
#include "sparse/client/client_queue.h"
#include "sparse/client/client_route.h"
#include "sparse/client/client_wait.h"
#include "sparse/client/key_groups.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static bool has_room(const trib_sparse *table, const void *context)
{
	(void)context;
	for (uint32_t s = 0; s < table->n_shards; s++)
		if (!client_hot_has_room(&table->shards[s]))
			return false;
	return table->under_way < CLIENT_UNDER_WAY_MAX;
}

static bool request_ended(const trib_sparse *table, const void *context)
{
	const struct trib_sparse_request *request = context;

	(void)table;
	return request->left == 0;
}

/* Adds a request that the user may wait for. The lock is held. */
static trib_status request_post(trib_sparse *table, bool is_push, bool is_owned,
                                struct trib_sparse_request **out)
{
	trib_status status = client_state(table);

	if (status == TRIB_OK)
		status = client_wait(table, has_room, NULL, table->timeout_ns,
		                     "for room for another request");
	if (status != TRIB_OK)
		return status;
	*out = queue_request(table, is_push, is_owned);
	return *out ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for a request");
}

/* All of it is in the queues. A part that could not be added breaks the table: it may be split. */
static trib_status request_posted(struct trib_sparse_request *request, trib_status status,
                                  trib_sparse_request **out)
{
	trib_sparse *table = request->table;

	if (out)
		*out = request;
	if (status != TRIB_OK)
		client_fail(table, status, "%s", trib_last_error());
	queue_ready(request);
	client_wake(table);
	return status;
}

/*
 * The user gives the request up: it has ended, or the table has failed, or nobody waits any more.
 * Messages in queues may still refer to it. It is freed with the last of them.
 */
static void request_release(trib_sparse_request **request)
{
	struct trib_sparse_request *released = *request;

	*request = NULL;
	released->rows = NULL;
	released->is_owned = false;
	if (!released->left)
		queue_request_free(released);
}

/* The lock is held. */
static trib_status request_wait(trib_sparse_request **request, uint64_t ns)
{
	trib_sparse *table = (*request)->table;
	trib_status status;

	if ((*request)->is_push && (*request)->left)
		client_hurry(table);
	status = client_wait(table, request_ended, *request, ns,
	                     (*request)->is_push ? "for a push" : "for rows");
	if (status == TRIB_OK || table->failed != TRIB_OK)
		request_release(request);
	return status;
}

/* ---- push ---- */

/* Rows of equal keys are added up, in the order of the call. */
struct sums {
	struct key_groups groups;
	uint64_t *keys;
	float *rows;
};

static void sums_free(struct sums *sums)
{
	key_groups_free(&sums->groups);
	free(sums->keys);
	free(sums->rows);
}

static void row_add(float *sum, const float *row, size_t width)
{
	for (size_t i = 0; i < width; i++)
		sum[i] += row[i];
}

static trib_status sums_make(struct sums *sums, const uint64_t *keys, const float *rows, size_t n,
                             size_t width)
{
	struct key_groups *groups = &sums->groups;

	if (!key_groups_find(groups, keys, n))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu keys", n);
	sums->keys = malloc((groups->n + 1) * sizeof(*keys));
	if (groups->n != n)
		sums->rows = malloc((groups->n * width + 1) * sizeof(*rows));
	if (!sums->keys || (groups->n != n && !sums->rows))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu rows", groups->n);
	for (size_t i = 0; i < n; i++) {
		size_t g = groups->of[i];
		bool is_first = groups->first[g] == i;

		sums->keys[g] = keys[i];
		if (sums->rows && is_first)
			memcpy(sums->rows + g * width, rows + i * width, width * sizeof(*rows));
		else if (sums->rows)
			row_add(sums->rows + g * width, rows + i * width, width);
	}
	return TRIB_OK;
}

trib_status trib_sparse_push(trib_sparse *table, const uint64_t *keys, const float *rows, size_t n,
                             trib_sparse_request **out)
{
	struct trib_sparse_request *request = NULL;
	struct sums sums = { 0 };
	trib_status status = client_keys_check(table, "trib_sparse_push", keys, rows, n);

	if (out)
		*out = NULL;
	if (status == TRIB_OK)
		status = sums_make(&sums, keys, rows, n, table->width);
	if (status == TRIB_OK) {
		pthread_mutex_lock(&table->lock);
		status = request_post(table, true, out != NULL, &request);
		if (status == TRIB_OK) {
			status = route_push(request, sums.keys, sums.rows ? sums.rows : rows,
			                    sums.groups.n);
			status = request_posted(request, status, out);
			if (out && status != TRIB_OK)
				request_release(out);
		}
		pthread_mutex_unlock(&table->lock);
	}
	sums_free(&sums);
	return status;
}

/* ---- pull ---- */

/* Each key is asked for once. Rows that have the key of an earlier row are copied from it. */
static bool copies_plan(struct trib_sparse_request *request, const struct key_groups *groups,
                        size_t n)
{
	if (groups->n == n)
		return true;
	request->copies = malloc((n - groups->n) * sizeof(*request->copies));
	if (!request->copies)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t first = groups->first[groups->of[i]];

		if (first == i)
			continue;
		request->copies[request->n_copies][0] = i;
		request->copies[request->n_copies++][1] = first;
	}
	return true;
}

static trib_status pull_queue(struct trib_sparse_request *request, const uint64_t *keys,
                              const struct key_groups *groups, size_t n)
{
	uint64_t *wanted = malloc((groups->n + 1) * sizeof(*wanted));
	trib_status status;

	if (!wanted || !copies_plan(request, groups, n)) {
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu keys", n);
	} else {
		for (size_t g = 0; g < groups->n; g++)
			wanted[g] = keys[groups->first[g]];
		status = route_pull(request, wanted, groups->first, groups->n);
	}
	free(wanted);
	return status;
}

static trib_status pull_post(trib_sparse *table, const uint64_t *keys, float *rows, size_t n,
                             const struct key_groups *groups, trib_sparse_request **out)
{
	struct trib_sparse_request *request = NULL;
	trib_status status;

	pthread_mutex_lock(&table->lock);
	status = request_post(table, false, true, &request);
	if (status == TRIB_OK) {
		request->rows = rows;
		status = pull_queue(request, keys, groups, n);
		status = request_posted(request, status, &request);
	}
	/* Rows of a pull that nobody waits for any more must not change. */
	if (status == TRIB_OK && !out) {
		status = request_wait(&request, table->timeout_ns);
		if (request)
			request_release(&request);
	} else if (request && status != TRIB_OK) {
		request_release(&request);
	}
	if (out)
		*out = request;
	pthread_mutex_unlock(&table->lock);
	return status;
}

trib_status trib_sparse_pull(trib_sparse *table, const uint64_t *keys, float *rows, size_t n,
                             trib_sparse_request **out)
{
	struct key_groups groups = { 0 };
	trib_status status = client_keys_check(table, "trib_sparse_pull", keys, rows, n);

	if (out)
		*out = NULL;
	if (status == TRIB_OK && !key_groups_find(&groups, keys, n))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu keys", n);
	if (status == TRIB_OK)
		status = pull_post(table, keys, rows, n, &groups, out);
	key_groups_free(&groups);
	return status;
}

/* ---- waiting ---- */

trib_status trib_sparse_test(trib_sparse_request **request)
{
	trib_sparse *table;
	trib_status status;

	if (!request || !*request)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_test: no request");
	table = (*request)->table;
	pthread_mutex_lock(&table->lock);
	status = (*request)->left ? client_state(table) : TRIB_OK;
	if ((*request)->left && status == TRIB_OK)
		status = TRIB_IN_PROGRESS;
	else
		request_release(request);
	pthread_mutex_unlock(&table->lock);
	return status;
}

trib_status trib_sparse_wait(trib_sparse_request **request, double seconds)
{
	trib_sparse *table;
	trib_status status;
	uint64_t ns;

	if (!request || !*request)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_wait: no request");
	table = (*request)->table;
	ns = seconds < 0 ? table->timeout_ns : (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9);
	pthread_mutex_lock(&table->lock);
	status = request_wait(request, ns);
	pthread_mutex_unlock(&table->lock);
	return status;
}
