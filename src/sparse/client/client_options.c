/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_options.h"

#include "base/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVER_PORT 7800   /* of a parameter server */
#define NAME_MAX_LENGTH 57 /* the servers put the job's number before it */
#define TIMEOUT_MAX 1e9

static trib_status place_take(trib_sparse *table, const trib_sparse_options *given)
{
	uint64_t workers = 1, rank = 0;
	trib_status status = TRIB_OK;

	if (given->workers) {
		if (given->workers < 0 || given->rank < 0)
			return status_fail(TRIB_ERR_ARGUMENT, "rank %d of %d workers", given->rank,
			                   given->workers);
		workers = (uint64_t)given->workers;
		rank = (uint64_t)given->rank;
	} else if (setting_text(SETTING_SIZE, NULL)) {
		status = setting_count(SETTING_SIZE, &workers);
		if (status == TRIB_OK && setting_text(SETTING_RANK, NULL))
			status = setting_count(SETTING_RANK, &rank);
	}
	if (status != TRIB_OK)
		return status;
	if (!workers || workers > MESSAGE_WORKERS_MAX || rank >= workers)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "rank %" PRIu64 " of %" PRIu64 " workers: ranks are below the "
		                   "number of workers, which is at most %u",
		                   rank, workers, MESSAGE_WORKERS_MAX);
	table->hello.workers = (uint32_t)workers;
	table->hello.rank = (uint32_t)rank;
	return TRIB_OK;
}

static trib_status words_take(trib_sparse *table, const trib_sparse_options *given)
{
	const char *wire = given->wire ? given->wire : "f32",
		   *sums = given->sums ? given->sums : "fixed";
	const char *path = given->path ? given->path : "auto";

	if (strcmp(wire, "f32") && strcmp(wire, "f16"))
		return status_fail(TRIB_ERR_ARGUMENT, "wire is f32 or f16, and not \"%.40s\"",
		                   wire);
	if (strcmp(sums, "fixed") && strcmp(sums, "table"))
		return status_fail(TRIB_ERR_ARGUMENT, "sums is fixed or table, and not \"%.40s\"",
		                   sums);
	if (strcmp(path, "auto") && strcmp(path, "servers"))
		return status_fail(TRIB_ERR_ARGUMENT, "path is auto or servers, and not \"%.40s\"",
		                   path);
	table->is_half = !strcmp(wire, "f16");
	table->hello.sums = strcmp(sums, "fixed") ? MESSAGE_SUMS_TABLE : MESSAGE_SUMS_FIXED;
	table->hello.path = strcmp(path, "auto") ? MESSAGE_PATH_SERVERS : MESSAGE_PATH_AUTO;
	return TRIB_OK;
}

static trib_status limits_take(trib_sparse *table, const trib_sparse_options *given)
{
	double timeout = given->timeout_s;
	trib_status status = TRIB_OK;

	if (timeout == 0)
		status = setting_seconds(SETTING_TIMEOUT, &timeout);
	if (status != TRIB_OK)
		return status;
	if (!(timeout > 0 && timeout <= TIMEOUT_MAX))
		return status_fail(TRIB_ERR_ARGUMENT, "timeout_s is %g, and has to be above 0",
		                   timeout);
	table->hello.timeout_s = timeout;
	table->timeout_ns = (uint64_t)(timeout * 1e9);
	table->hello.largest = given->largest != 0 ? given->largest : 1;
	if (!(table->hello.largest > 0) || !isfinite(table->hello.largest))
		return status_fail(TRIB_ERR_ARGUMENT, "largest is %g, and has to be above 0",
		                   given->largest);
	if (given->staleness < 0)
		return status_fail(TRIB_ERR_ARGUMENT, "staleness is %d: at least 0",
		                   given->staleness);
	table->is_bounded = given->is_bounded != 0;
	table->hello.is_bounded = table->is_bounded;
	table->hello.staleness = table->is_bounded ? (uint32_t)given->staleness : 0;
	table->staleness = table->hello.staleness;
	return TRIB_OK;
}

/* One address of the list; `n` characters. */
static trib_status server_add(trib_sparse *table, const char *text, size_t n)
{
	struct shard *shard = &table->shards[table->n_shards];

	if (!n || n >= sizeof(shard->address_text))
		return status_fail(TRIB_ERR_CONFIG, "server %u has no address of HOST:PORT",
		                   table->n_shards);
	memcpy(shard->address_text, text, n);
	shard->table = table;
	shard->number = table->n_shards++;
	shard->fd = -1;
	return udp_resolve(shard->address_text, SERVER_PORT, &shard->address);
}

static trib_status servers_take(trib_sparse *table, const char *list)
{
	trib_status status = TRIB_OK;
	size_t most = 1;

	if (!list)
		list = setting_text(SETTING_SPARSE_SERVERS, NULL);
	if (!list || !*list)
		return status_fail(
			TRIB_ERR_CONFIG,
			"TRIB_SPARSE_SERVERS is not set and options.servers is NULL: "
			"start parameter servers with trib sparse serve, or the job with "
			"trib run --servers");
	for (const char *p = list; *p; p++)
		most += *p == ',';
	if (most > MESSAGE_SHARDS_MAX)
		return status_fail(TRIB_ERR_CONFIG, "%zu servers, and at most %u are possible",
		                   most, MESSAGE_SHARDS_MAX);
	table->shards = calloc(most, sizeof(*table->shards));
	if (!table->shards)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu servers", most);
	for (const char *p = list; status == TRIB_OK && p; p = strchr(p, ',')) {
		p += *p == ',' && p != list;
		status = server_add(table, p, strcspn(p, ","));
	}
	return status;
}

trib_status client_options_take(trib_sparse *table, const trib_sparse_options *given)
{
	trib_sparse_options options = { 0 };
	size_t known = given->struct_size < sizeof(options) ? given->struct_size : sizeof(options);
	uint64_t job;
	trib_status status;

	if (given->struct_size < sizeof(size_t))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "initialize the options with TRIB_SPARSE_OPTIONS_INIT");
	memcpy(&options, given, known);
	if (options.name && strlen(options.name) > NAME_MAX_LENGTH)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the name of a table has at most %d letters: \"%.80s\"",
		                   NAME_MAX_LENGTH, options.name);
	if ((status = sparse_table_options_take(&options, &table->hello.table)) ||
	    (status = place_take(table, &options)) || (status = words_take(table, &options)) ||
	    (status = limits_take(table, &options)) ||
	    (status = setting_count(SETTING_JOB, &job)) ||
	    (status = setting_count(SETTING_COOKIE, &table->hello.cookie)) ||
	    (status = servers_take(table, options.servers)))
		return status;
	table->hello.job = (uint32_t)job;
	table->hello.shards = table->n_shards;
	table->width = table->hello.table.width;
	if (gethostname(table->hello.host, sizeof(table->hello.host) - 1))
		snprintf(table->hello.host, sizeof(table->hello.host), "unknown");
	return TRIB_OK;
}
