/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/server/server_status.h"

#include "base/clock.h"
#include "base/log.h"
#include "options/json.h"
#include "sparse/server/server_hot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- JSON ---- */

static void table_print(const struct sparse_server *server, uint32_t number, FILE *out)
{
	const struct sparse_table *table = server->state->tables[number];
	const struct server_table *live = server_table_find(server, number);
	uint32_t slowest = 0;

	fprintf(out, "%s{\"name\":", number ? "," : "");
	json_print_text(out, table->options.name);
	fprintf(out,
	        ",\"width\":%u,\"optimizer\":\"%s\",\"rows\":%u,\"bytes\":%" PRIu64
	        ",\"incarnation\":%u,\"workers\":%u,\"connected\":%u,\"clock\":%" PRIu64
	        ",\"hot\":",
	        table->options.width, sparse_optimizer_name(table->options.optimizer),
	        sparse_store_rows(table->store), sparse_store_bytes(table->store), table->last,
	        live ? live->clocks.workers : 0, live ? live->clocks.present : 0,
	        live && live->clocks.present ? clocks_lowest(&live->clocks, &slowest) : 0);
	if (live)
		server_hot_describe(live, out);
	else
		fprintf(out, "null");
	fprintf(out, "}");
}

static void clients_print(const struct sparse_server *server, FILE *out)
{
	bool is_first = true;

	fprintf(out, "],\"clients\":[");
	for (uint32_t i = 0; i < server->n_connections; i++) {
		const struct connection *c = server->connections[i];

		if (c->state != CONNECTION_OPEN)
			continue;
		fprintf(out, "%s{\"table\":", is_first ? "" : ",");
		json_print_text(out, c->table->table->options.name);
		fprintf(out, ",\"rank\":%u,\"host\":", c->rank);
		json_print_text(out, c->host);
		fprintf(out, ",\"address\":\"%s\",\"pushes\":%" PRIu64 "}", c->peer, c->appended);
		is_first = false;
	}
	fprintf(out, "]");
}

static void json_print(const struct sparse_server *server, FILE *out, uint64_t now)
{
	const struct server_counts *counts = &server->counts;
	struct sparse_log_stats log;

	sparse_log_get_stats(server->log, &log);
	fprintf(out, "{\"shard\":%u,\"shards\":%u,\"uptime_s\":%.3f", server->options.shard,
	        server->options.shards, (double)clock_since(now, server->started) / 1e9);
	fprintf(out,
	        ",\"pushes\":%" PRIu64 ",\"pushed_rows\":%" PRIu64 ",\"repeats\":%" PRIu64
	        ",\"pulls\":%" PRIu64 ",\"pulled_rows\":%" PRIu64 ",\"refused\":%" PRIu64,
	        counts->pushes, counts->pushed_rows, counts->repeats, counts->pulls,
	        counts->pulled_rows, counts->refused);
	fprintf(out, ",\"pushes_per_s\":%.1f,\"pulls_per_s\":%.1f", server->pushes_per_s,
	        server->pulls_per_s);
	fprintf(out,
	        ",\"log\":{\"bytes\":%" PRIu64 ",\"commits\":%" PRIu64 ",\"entries\":%" PRIu64
	        ",\"snapshots\":%" PRIu64 ",\"replayed\":%" PRIu64 ",\"restored_rows\":%" PRIu64
	        ",\"trouble\":",
	        log.bytes, log.commits, log.entries, log.snapshots, log.replayed,
	        log.restored_rows);
	json_print_text(out, server->trouble[0] ? server->trouble : NULL);
	fprintf(out, "},\"tables\":[");
	for (uint32_t i = 0; i < server->state->n_tables; i++)
		table_print(server, i, out);
	clients_print(server, out);
	fprintf(out, "}");
}

/* ---- lines for people ---- */

static void table_tell(const struct sparse_server *server, uint32_t number, FILE *out)
{
	const struct sparse_table *table = server->state->tables[number];
	const struct server_table *live = server_table_find(server, number);
	uint32_t slowest = 0;

	fprintf(out, "\n  table %s: %u rows of width %u, %s, %.1f MB, incarnation %u",
	        table->options.name, sparse_store_rows(table->store), table->options.width,
	        sparse_optimizer_name(table->options.optimizer),
	        (double)sparse_store_bytes(table->store) / 1e6, table->last);
	if (!live || !live->clocks.present) {
		fprintf(out, ", no workers");
		return;
	}
	fprintf(out, ", %u of %u workers, all have ended step %" PRIu64 ", ", live->clocks.present,
	        live->clocks.workers, clocks_lowest(&live->clocks, &slowest));
	server_hot_print(live, out);
}

static void lines_print(const struct sparse_server *server, FILE *out, uint64_t now)
{
	const struct server_counts *counts = &server->counts;
	struct sparse_log_stats log;

	sparse_log_get_stats(server->log, &log);
	fprintf(out,
	        "shard %u of %u: up %.0f s, %" PRIu64 " pushes (%.1f a second), %" PRIu64
	        " pulls (%.1f a second)\n  log: %.1f MB, %" PRIu64 " commits, %" PRIu64
	        " snapshots%s%s",
	        server->options.shard, server->options.shards,
	        (double)clock_since(now, server->started) / 1e9, counts->pushes,
	        server->pushes_per_s, counts->pulls, server->pulls_per_s, (double)log.bytes / 1e6,
	        log.commits, log.snapshots, server->trouble[0] ? "\n  trouble: " : "",
	        server->trouble);
	for (uint32_t i = 0; i < server->state->n_tables; i++)
		table_tell(server, i, out);
	for (uint32_t i = 0; i < server->n_connections; i++) {
		const struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN)
			fprintf(out, "\n  rank %u of %s on %s (%s): %" PRIu64 " pushes", c->rank,
			        c->table->table->options.name, c->host, c->peer, c->appended);
	}
}

char *server_status_text(const struct sparse_server *server, bool plain, uint64_t now)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	if (plain)
		lines_print(server, out, now);
	else
		json_print(server, out, now);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

void server_rates_update(struct sparse_server *server, uint64_t now)
{
	double seconds = (double)clock_since(now, server->rates_at) / 1e9;

	if (seconds < 1)
		return;
	server->pushes_per_s =
		(double)(server->counts.pushes - server->counts_before.pushes) / seconds;
	server->pulls_per_s =
		(double)(server->counts.pulls - server->counts_before.pulls) / seconds;
	server->counts_before = server->counts;
	server->rates_at = now;
}

void server_status_write(const struct sparse_server *server, uint64_t now)
{
	const char *path = server->options.status_file;
	char *text = server_status_text(server, false, now), beside[4096];
	bool good = text != NULL, straight;
	struct stat about;
	FILE *file;

	/* A device or a pipe is written to as it is: a rename would replace it. */
	straight = !stat(path, &about) && !S_ISREG(about.st_mode);
	snprintf(beside, sizeof(beside), straight ? "%s" : "%s.new", path);
	file = good ? fopen(beside, "we") : NULL;
	good = file && fprintf(file, "%s\n", text) > 0;
	if (file)
		good = fclose(file) == 0 && good;
	/* Readers see the old file or the new one, never a part. */
	if (!good || (!straight && rename(beside, path)))
		log_warn("cannot write %s: %s", path, strerror(errno));
	free(text);
}
