/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of <tributary/sparse.h>; pushes and pulls are in client_requests.c. */
#include "base/clock.h"
#include "sparse/client/client_options.h"
#include "sparse/client/client_shard.h"
#include "sparse/client/client_thread.h"
#include "sparse/client/client_wait.h"
#include "sparse/wire/shard_of.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BYE_NS (2 * NSEC_PER_SEC) /* 2 s: longest wait for answers to BYE */

/* ---- open and close ---- */

static void table_free(trib_sparse *table)
{
	client_thread_end(table);
	for (uint32_t s = 0; table->shards && s < table->n_shards; s++)
		shard_free(&table->shards[s]);
	free(table->shards);
	pthread_cond_destroy(&table->changed);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static trib_sparse *table_new(void)
{
	trib_sparse *table = calloc(1, sizeof(*table));
	pthread_condattr_t attributes;

	if (!table)
		return NULL;
	table->wake_fd = -1;
	pthread_mutex_init(&table->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&table->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return table;
}

static bool all_open(const trib_sparse *table, const void *context)
{
	(void)context;
	for (uint32_t s = 0; s < table->n_shards; s++)
		if (!table->shards[s].was_open)
			return false;
	return true;
}

static trib_status table_connect(trib_sparse *table)
{
	trib_status status;

	if (getrandom(&table->client, sizeof(table->client), 0) < 0)
		return status_fail_errno("cannot draw a random number");
	table->client |= !table->client;
	status = client_thread_start(table);
	if (status != TRIB_OK)
		return status;
	pthread_mutex_lock(&table->lock);
	status = client_wait(table, all_open, NULL, table->timeout_ns, "to open the table");
	pthread_mutex_unlock(&table->lock);
	return status;
}

trib_status trib_sparse_open(trib_sparse **out, const trib_sparse_options *options)
{
	trib_sparse *table;
	trib_status status;

	if (!out || !options)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_open got NULL");
	*out = NULL;
	table = table_new();
	if (!table)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a table");
	status = client_options_take(table, options);
	if (status == TRIB_OK)
		status = table_connect(table);
	if (status == TRIB_OK)
		*out = table;
	else
		table_free(table);
	return status;
}

static bool all_left(const trib_sparse *table, const void *context)
{
	(void)context;
	for (uint32_t s = 0; s < table->n_shards; s++) {
		enum shard_state state = table->shards[s].state;

		if (state == SHARD_OPEN || (state != SHARD_LEFT && client_is_awaited(table)))
			return false;
	}
	return true;
}

/*
 * Servers that cannot be reached forget this worker by themselves. But with a bound they would make
 * the other workers wait for it after a restart, so it waits for such servers.
 */
static void say_bye(trib_sparse *table)
{
	uint64_t patience = table->timeout_ns;

	if (patience > BYE_NS && !client_is_awaited(table))
		patience = BYE_NS;
	table->is_leaving = true;
	for (uint32_t s = 0; s < table->n_shards; s++) {
		if (table->shards[s].state == SHARD_OPEN)
			shard_leave(&table->shards[s]);
	}
	client_wake(table);
	client_wait(table, all_left, NULL, patience, "to leave");
}

trib_status trib_sparse_close(trib_sparse *table)
{
	char sentence[CLIENT_SENTENCE];
	trib_status status;

	if (!table)
		return TRIB_OK;
	status = trib_sparse_flush(table);
	if (status == TRIB_OK) {
		pthread_mutex_lock(&table->lock);
		say_bye(table);
		pthread_mutex_unlock(&table->lock);
	} else {
		snprintf(sentence, sizeof(sentence), "%s", trib_last_error());
	}
	table_free(table);
	return status == TRIB_OK ? TRIB_OK : status_fail(status, "%s", sentence);
}

/* ---- flush ---- */

static bool all_flushed(const trib_sparse *table, const void *context)
{
	(void)context;
	return !table->pushes;
}

trib_status trib_sparse_flush(trib_sparse *table)
{
	trib_status status;

	if (!table)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_flush got NULL");
	pthread_mutex_lock(&table->lock);
	if (table->pushes)
		client_hurry(table);
	status = client_wait(table, all_flushed, NULL, table->timeout_ns, "for pushes to end");
	if (status == TRIB_OK)
		status = client_state(table);
	pthread_mutex_unlock(&table->lock);
	return status;
}

/* ---- steps ---- */

static bool clock_reached(const trib_sparse *table, const void *context)
{
	uint64_t wanted = *(const uint64_t *)context;

	for (uint32_t s = 0; s < table->n_shards; s++)
		if (table->shards[s].lowest_clock < wanted)
			return false;
	return true;
}

static void step_add(trib_sparse *table)
{
	uint32_t at = table->n_steps < CLIENT_STEPS ? table->n_steps++ : CLIENT_STEPS - 1;

	table->steps[at] = (struct client_step){ ++table->clock, table->tickets };
	client_wake(table);
}

/* Which rank is behind, by what the servers said. */
static trib_status step_late(const trib_sparse *table, uint64_t wanted)
{
	for (uint32_t s = 0; s < table->n_shards; s++) {
		const struct shard *shard = &table->shards[s];

		if (shard->state == SHARD_OPEN && !shard->first && shard->lowest_clock < wanted)
			return status_fail(TRIB_ERR_TIMEOUT,
			                   "waited %g s for step %" PRIu64
			                   " of all workers: rank %u has ended %" PRIu64
			                   ", says shard %u (%s)",
			                   (double)table->timeout_ns / 1e9, wanted, shard->slowest,
			                   shard->lowest_clock, s, shard->address_text);
	}
	return TRIB_ERR_TIMEOUT;
}

trib_status trib_sparse_step(trib_sparse *table)
{
	trib_status status;

	if (!table)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_step got NULL");
	pthread_mutex_lock(&table->lock);
	status = client_state(table);
	if (status == TRIB_OK)
		step_add(table);
	if (status == TRIB_OK && table->is_bounded && table->clock > table->staleness) {
		uint64_t wanted = table->clock - table->staleness;

		client_hurry(table);
		status = client_wait(table, clock_reached, &wanted, table->timeout_ns,
		                     "for the steps of other workers");
		if (status == TRIB_ERR_TIMEOUT)
			status = step_late(table, wanted);
	}
	pthread_mutex_unlock(&table->lock);
	return status;
}

/* ---- heat and statistics ---- */

/* Sends the counts of the keys of one shard. Counts are a hint: if the connection is lost, so are
 * they. */
static bool heat_add(struct shard *shard, const uint64_t *keys, const uint64_t *counts, size_t n)
{
	const size_t most = MESSAGE_MAX / 4 / (2 * sizeof(uint64_t));
	uint64_t *own = malloc(2 * most * sizeof(*own));
	size_t held = 0;
	bool good = own != NULL;

	for (size_t i = 0; good && i < n; i++) {
		if (shard_of(keys[i], shard->table->n_shards) == shard->number) {
			own[held] = keys[i];
			own[most + held++] = counts[i];
		}
		if (held == most || (held && i + 1 == n)) {
			good = message_add_heat(&shard->control, own, own + most, (uint32_t)held);
			held = 0;
		}
	}
	free(own);
	return good;
}

trib_status trib_sparse_heat(trib_sparse *table, const uint64_t *keys, const uint64_t *counts,
                             size_t n)
{
	trib_status status = client_keys_check(table, "trib_sparse_heat", keys, counts, n);

	if (status != TRIB_OK)
		return status;
	pthread_mutex_lock(&table->lock);
	status = client_state(table);
	for (uint32_t s = 0; status == TRIB_OK && s < table->n_shards; s++) {
		struct shard *shard = &table->shards[s];

		if (shard->state == SHARD_OPEN && !heat_add(shard, keys, counts, n))
			status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu counts", n);
	}
	client_wake(table);
	pthread_mutex_unlock(&table->lock);
	return status;
}

trib_status trib_sparse_get_stats(trib_sparse *table, trib_sparse_stats *stats)
{
	size_t size;

	if (!table || !stats)
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_get_stats got NULL");
	size = stats->struct_size;
	if (size < sizeof(size_t) || size > sizeof(*stats))
		return status_fail(TRIB_ERR_ARGUMENT, "trib_sparse_get_stats: set struct_size to "
		                                      "sizeof(trib_sparse_stats)");
	pthread_mutex_lock(&table->lock);
	memcpy(stats, &table->stats, size);
	pthread_mutex_unlock(&table->lock);
	stats->struct_size = size;
	return TRIB_OK;
}
