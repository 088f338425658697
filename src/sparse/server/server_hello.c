/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/server/server_hello.h"

#include "base/log.h"
#include "sparse/server/server_connection.h"
#include "sparse/server/server_hot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- may this client come in? ---- */

static trib_status job_check(const struct sparse_server *server, const struct message_hello *hello)
{
	const struct sparse_server_options *o = &server->options;

	if (o->cookie && hello->cookie != o->cookie)
		return status_fail(TRIB_ERR_REFUSED,
		                   "the cookie differs: set the same TRIB_COOKIE for workers and "
		                   "servers");
	if (hello->shards != o->shards || hello->shard != o->shard)
		return status_fail(TRIB_ERR_REFUSED,
		                   "this server is shard %u of %u, and the worker takes it for "
		                   "shard %u of %u: name all servers, in their order",
		                   o->shard, o->shards, hello->shard, hello->shards);
	return TRIB_OK;
}

/* The first option that differs. */
static trib_status options_compare(const struct sparse_table_options *has,
                                   const struct sparse_table_options *asks, const char *name)
{
	const struct {
		const char *what;
		double has, asks;
	} numbers[] = {
		{ "width", has->width, asks->width },
		{ "rate", has->rate, asks->rate },
		{ "momentum", has->momentum, asks->momentum },
		{ "beta1", has->beta1, asks->beta1 },
		{ "beta2", has->beta2, asks->beta2 },
		{ "epsilon", has->epsilon, asks->epsilon },
		{ "init", has->init, asks->init },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i].has != numbers[i].asks)
			return status_fail(TRIB_ERR_MISMATCH,
			                   "table '%s' has %s %g at the server, this worker asks "
			                   "for %g",
			                   name, numbers[i].what, numbers[i].has, numbers[i].asks);
	if (has->optimizer != asks->optimizer)
		return status_fail(
			TRIB_ERR_MISMATCH,
			"table '%s' has the optimizer %s at the server, this worker asks "
			"for %s",
			name, sparse_optimizer_name(has->optimizer),
			sparse_optimizer_name(asks->optimizer));
	if (has->parameters != asks->parameters)
		return status_fail(TRIB_ERR_MISMATCH,
		                   "table '%s' has %" PRIu64
		                   " parameters at the server, this worker asks for %" PRIu64,
		                   name, has->parameters, asks->parameters);
	if (has->seed != asks->seed)
		return status_fail(TRIB_ERR_MISMATCH,
		                   "table '%s' has the seed %" PRIu64
		                   " at the server, this worker asks for %" PRIu64,
		                   name, has->seed, asks->seed);
	return TRIB_OK;
}

/* Options that may differ from run to run, but not among the workers of one. */
static trib_status run_compare(const struct message_hello *run, const struct message_hello *asks)
{
	const struct {
		const char *what;
		double has, asks;
	} numbers[] = {
		{ "workers", run->workers, asks->workers },
		{ "is_bounded", run->is_bounded, asks->is_bounded },
		{ "staleness", run->staleness, asks->staleness },
		{ "sums", run->sums, asks->sums },
		{ "largest", run->largest, asks->largest },
		{ "path", run->path, asks->path },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i].has != numbers[i].asks)
			return status_fail(TRIB_ERR_MISMATCH,
			                   "%s is %g for rank %u of table '%s', and %g for rank %u",
			                   numbers[i].what, numbers[i].asks, asks->rank,
			                   asks->table.name, numbers[i].has, run->rank);
	return TRIB_OK;
}

/* A server that once acknowledged a push must know of it. */
static trib_status memory_check(const struct sparse_server *server, uint64_t client,
                                const struct message_hello *hello)
{
	const struct sparse_client *known = sparse_state_client(server->state, client);
	uint64_t applied = known ? known->applied : 0;

	if (applied >= hello->acknowledged)
		return TRIB_OK;
	return status_fail(TRIB_ERR_REFUSED,
	                   "this server has lost data: it has acknowledged push %" PRIu64
	                   " of rank %u, and its log ends with push %" PRIu64
	                   ": was it started on another folder?",
	                   hello->acknowledged, hello->rank, applied);
}

/* ---- tables ---- */

static struct server_table *table_add(struct sparse_server *server, uint32_t number,
                                      const char *name)
{
	struct server_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->number = number;
	table->table = sparse_state_table(server->state, number);
	snprintf(table->name, sizeof(table->name), "%s", name);
	server->tables[server->n_tables++] = table;
	return table;
}

/* Finds the table at the log, or makes it there. */
static trib_status table_get(struct sparse_server *server, const struct message_hello *hello,
                             uint64_t now, struct server_table **out)
{
	struct sparse_table_options options = hello->table;
	trib_status status = TRIB_OK;
	uint32_t number;

	memset(options.name, 0, sizeof(options.name));
	/* Jobs have tables of their own. */
	if ((size_t)snprintf(options.name, sizeof(options.name), "%u.%s", hello->job,
	                     hello->table.name) >= sizeof(options.name))
		return status_fail(TRIB_ERR_ARGUMENT, "the name of table '%s' is too long",
		                   hello->table.name);
	if (sparse_state_table_find(server->state, options.name, &number))
		status = options_compare(&sparse_state_table(server->state, number)->options,
		                         &options, hello->table.name);
	else
		status = sparse_log_table(server->log, &options, now, &number);
	if (status != TRIB_OK)
		return status;
	*out = server_table_find(server, number);
	if (!*out)
		*out = table_add(server, number, hello->table.name);
	return *out ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for a table");
}

static struct connection *rank_connection(const struct sparse_server *server,
                                          const struct server_table *table, uint32_t rank)
{
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->table == table && c->rank == rank)
			return c;
	}
	return NULL;
}

/* ---- admission ---- */

/* The run goes on after a restart of this server: nobody waits for workers that have left. */
static void run_resume(const struct sparse_server *server, struct server_table *table, uint64_t now)
{
	const struct sparse_state *state = server->state;

	for (uint32_t i = 0; i < state->n_clients; i++) {
		const struct sparse_client *client = &state->clients[i];

		if (client->has_left && client->table == table->number &&
		    client->rank < table->clocks.workers)
			clocks_leave(&table->clocks, client->rank, true, now);
	}
}

/* A new run begins if no worker of the last one is there. *begins: it does. */
static trib_status run_join(struct sparse_server *server, struct server_table *table,
                            const struct message *message, uint64_t now, bool *begins)
{
	const struct message_hello *hello = &message->u.hello;
	bool is_known = sparse_state_client(server->state, message->number) != NULL;

	*begins = !is_known && !table->clocks.present;
	if (table->clocks.workers && !*begins)
		return run_compare(&table->run, hello);
	table->run = *hello;
	if (!clocks_begin(&table->clocks, hello->workers))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u workers", hello->workers);
	if (is_known)
		run_resume(server, table, now);
	return TRIB_OK;
}

static trib_status client_make(struct sparse_server *server, const struct server_table *table,
                               const struct message *message, bool begins, uint64_t now)
{
	const struct sparse_entry entry = { .kind = SPARSE_ENTRY_CLIENT,
		                            .client = message->number,
		                            .table = table->number,
		                            .rank = message->u.hello.rank,
		                            .begins_run = begins };
	trib_status status = TRIB_OK;

	if (sparse_state_client(server->state, message->number))
		return TRIB_OK;
	status = sparse_log_append(server->log, &entry);
	return status == TRIB_OK ? sparse_log_commit(server->log, now) : status;
}

/* Another client has this rank: the same worker on an older connection, or another process. */
static trib_status rank_take(struct sparse_server *server, struct server_table *table,
                             const struct message *message, uint64_t now)
{
	struct connection *other = rank_connection(server, table, message->u.hello.rank);

	if (!other)
		return TRIB_OK;
	if (other->client != message->number)
		return status_fail(TRIB_ERR_REFUSED,
		                   "rank %u of table '%s' is connected already, from %s (%s)",
		                   other->rank, table->name, other->host, other->peer);
	hello_undo(server, other, now);
	other->state = CONNECTION_DEAD;
	return TRIB_OK;
}

static void welcome(struct sparse_server *server, struct connection *c,
                    const struct message *message)
{
	const struct sparse_client *known = sparse_state_client(server->state, c->client);
	const struct message_welcome about = { .table = c->table->number,
		                               .has_aggregators =
		                                       server->options.aggregators != NULL,
		                               .server = server->random };

	c->rank = message->u.hello.rank;
	snprintf(c->host, sizeof(c->host), "%s", message->u.hello.host);
	c->state = CONNECTION_OPEN;
	c->appended = known ? known->applied : 0;
	c->waits_for_ack = server->acks_due = true;
	clocks_join(&c->table->clocks, c->rank, c->client, message->u.hello.clock, c->host);
	if (!message_add_welcome(&c->out, c->appended, &about))
		connection_drop(c);
	if (!clock_tell(server, c->table))
		clock_answer(c);
	server_hot_joined(server, c);
}

void hello_take(struct sparse_server *server, struct connection *c, const struct message *message,
                uint64_t now)
{
	const struct message_hello *hello = &message->u.hello;
	trib_status status = job_check(server, hello);
	unsigned flags = 0;
	bool begins = false;

	if (status == TRIB_OK)
		status = memory_check(server, message->number, hello);
	/* A log that cannot be written takes no new names. */
	if (status == TRIB_OK && server->trouble[0]) {
		status = status_fail(TRIB_ERR_SYSTEM, "%s", server->trouble);
		flags = MESSAGE_FOR_NOW;
	}
	if (status == TRIB_OK)
		status = table_get(server, hello, now, &c->table);
	if (status == TRIB_OK) {
		status = rank_take(server, c->table, message, now);
		flags = status == TRIB_OK ? 0 : MESSAGE_FOR_NOW;
	}
	if (status == TRIB_OK)
		status = run_join(server, c->table, message, now, &begins);
	if (status == TRIB_OK)
		status = client_make(server, c->table, message, begins, now);
	c->client = message->number;
	if (status == TRIB_OK) {
		welcome(server, c, message);
		return;
	}
	if (status == TRIB_ERR_SYSTEM)
		flags = MESSAGE_FOR_NOW;
	server->counts.refused++;
	connection_refuse(c, flags, trib_last_error());
}

/* ---- leaving ---- */

void hello_undo(struct sparse_server *server, struct connection *c, uint64_t now)
{
	struct server_table *table = c->table;

	if (c->state != CONNECTION_OPEN || !table)
		return;
	connection_end(c);
	clocks_leave(&table->clocks, c->rank, c->has_said_bye, now);
	if (!c->has_said_bye)
		log_notice("rank %u on %s (%s) has left table '%s' without closing it", c->rank,
		           c->host, c->peer, table->name);
	clock_tell(server, table);
	server_hot_left(server, table);
}

void clock_answer(struct connection *c)
{
	uint32_t rank;

	clocks_lowest(&c->table->clocks, &rank);
	if (!message_add_short(&c->out, MESSAGE_CLOCK, c->table->clocks.told, rank))
		connection_drop(c);
}

/* An ACK tells a worker the round that shows it what the others have pushed. */
static bool round_tell(const struct sparse_server *server, struct connection *c)
{
	const struct sparse_client *known = sparse_state_client(server->state, c->client);
	uint32_t round = server_hot_round(c->table);

	return !round || message_add_short(&c->out, MESSAGE_ACK, known ? known->applied : 0, round);
}

bool clock_tell(struct sparse_server *server, struct server_table *table)
{
	uint32_t rank;
	uint64_t lowest = clocks_lowest(&table->clocks, &rank);

	if (lowest <= table->clocks.told)
		return false;
	table->clocks.told = lowest;
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->table == table &&
		    (!round_tell(server, c) ||
		     !message_add_short(&c->out, MESSAGE_CLOCK, lowest, rank)))
			connection_drop(c);
	}
	return true;
}

static void lost_worker_tell(struct sparse_server *server, struct server_table *table,
                             uint32_t rank)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence),
	         "rank %u on %s has left table '%s' without closing it, and has not come back, "
	         "says shard %u",
	         rank, table->clocks.ranks[rank].host, table->name, server->options.shard);
	log_notice("%s", sentence);
	for (uint32_t i = 0; table->run.is_bounded && i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->table == table &&
		    !message_add_text(&c->out, MESSAGE_NOTICE, MESSAGE_FATAL, sentence))
			connection_drop(c);
	}
}

void lost_workers_tell(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	/* Half the time that the others wait: they hear a reason before they give up. */
	uint64_t patience = (uint64_t)(table->run.timeout_s * 0.5e9);
	uint32_t rank = clocks_overdue(&table->clocks, now, patience);

	while (rank != UINT32_MAX) {
		lost_worker_tell(server, table, rank);
		rank = clocks_overdue(&table->clocks, now, patience);
	}
}
