/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_wait.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

trib_status client_state(const trib_sparse *table)
{
	return table->failed == TRIB_OK ? TRIB_OK
	                                : status_fail(table->failed, "%s", table->sentence);
}

/* A shard that owes something: one that is not connected first. */
static const struct shard *shard_late(const trib_sparse *table)
{
	const struct shard *late = NULL;

	for (uint32_t s = 0; s < table->n_shards; s++) {
		const struct shard *shard = &table->shards[s];

		if (shard->state != SHARD_OPEN && shard->state != SHARD_LEFT)
			return shard;
		if (!late && shard->first)
			late = shard;
	}
	return late;
}

static void owed_describe(const struct shard *shard, char *out, size_t room)
{
	const struct outgoing *item = shard->first;

	if (!shard->was_open)
		snprintf(out, room, "did not welcome this worker");
	else if (!item)
		snprintf(out, room, "is not connected");
	else if (item->kind == MESSAGE_PUSH)
		snprintf(out, room, "did not acknowledge a push of %u rows", item->n);
	else
		snprintf(out, room, "did not answer a pull of %u rows", item->n);
}

static trib_status timeout_fail(const trib_sparse *table, uint64_t ns, const char *what)
{
	const struct shard *shard = shard_late(table);
	char owed[96];

	if (!shard)
		return status_fail(TRIB_ERR_TIMEOUT, "waited %g s %s", (double)ns / 1e9, what);
	owed_describe(shard, owed, sizeof(owed));
	return status_fail(TRIB_ERR_TIMEOUT, "waited %g s %s: shard %u (%s) %s%s%s",
	                   (double)ns / 1e9, what, shard->number, shard->address_text, owed,
	                   shard->trouble[0] ? ": " : "", shard->trouble);
}

trib_status client_wait(trib_sparse *table, wait_done *done, const void *context, uint64_t ns,
                        const char *what)
{
	struct timespec until = clock_span(clock_now() + ns);

	while (!done(table, context)) {
		if (table->failed != TRIB_OK)
			return client_state(table);
		if (pthread_cond_timedwait(&table->changed, &table->lock, &until) == ETIMEDOUT &&
		    !done(table, context))
			return table->failed != TRIB_OK ? client_state(table)
			                                : timeout_fail(table, ns, what);
	}
	return TRIB_OK;
}

trib_status client_keys_check(const trib_sparse *table, const char *call, const uint64_t *keys,
                              const void *rows, size_t n)
{
	if (!table || (n && (!keys || !rows)))
		return status_fail(TRIB_ERR_ARGUMENT, "%s got NULL", call);
	for (size_t i = 0; i < n; i++) {
		if (sparse_key_fits(&table->hello.table, keys[i]))
			continue;
		if (table->hello.table.parameters)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "%s: key %zu is %" PRIu64
			                   ", and the table has keys below %" PRIu64,
			                   call, i, keys[i], table->hello.table.parameters);
		return status_fail(TRIB_ERR_ARGUMENT, "%s: key %zu is 2^64 - 1, which no row has",
		                   call, i);
	}
	return TRIB_OK;
}
