/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/server/server_requests.h"

#include "sparse/server/server_connection.h"
#include "sparse/server/server_hello.h"
#include "sparse/server/server_hot.h"
#include "sparse/server/server_status.h"
#include "sparse/wire/shard_of.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sparse_table_options *table_options(const struct connection *c)
{
	return &c->table->table->options;
}

/* ---- keys and rows ---- */

static trib_status keys_check(const struct sparse_server *server, const struct connection *c,
                              const struct message *message)
{
	const struct sparse_server_options *o = &server->options;

	for (uint32_t i = 0; i < message->count; i++) {
		uint64_t key = message->keys[i];

		if (!sparse_key_fits(table_options(c), key))
			return status_fail(TRIB_ERR_REFUSED,
			                   "table '%s' has no key %" PRIu64 ", which a %s of rank "
			                   "%u names",
			                   c->table->name, key, message_name(message->kind),
			                   c->rank);
		if (shard_of(key, o->shards) != o->shard)
			return status_fail(TRIB_ERR_REFUSED,
			                   "key %" PRIu64 " belongs to shard %u of %u, and this is "
			                   "shard %u",
			                   key, shard_of(key, o->shards), o->shards, o->shard);
	}
	return TRIB_OK;
}

/* Room for the values of `n` rows; NULL: no memory. */
static float *scratch_get(struct sparse_server *server, size_t values)
{
	float *grown;

	if (values <= server->scratch_room)
		return server->scratch;
	grown = realloc(server->scratch, values * sizeof(*grown));
	if (!grown)
		return NULL;
	server->scratch = grown;
	server->scratch_room = values;
	return grown;
}

/* ---- messages of clients ---- */

static trib_status push_append(struct sparse_server *server, struct connection *c,
                               const struct message *message)
{
	size_t values = (size_t)message->count * message->width;
	float *rows = scratch_get(server, values + 1);
	struct sparse_entry entry = {
		.kind = SPARSE_ENTRY_PUSH,
		.table = c->table->number,
		.client = c->client,
		.sequence = message->number,
		.n = message->count,
		.width = message->width,
		.keys = message->keys,
		.rows = rows,
	};

	if (!rows)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u rows", message->count);
	message_values(message, rows, 0, values);
	return sparse_log_append(server->log, &entry);
}

static trib_status push_take(struct sparse_server *server, struct connection *c,
                             const struct message *message)
{
	trib_status status = keys_check(server, c, message);

	c->waits_for_ack = server->acks_due = true;
	if (status != TRIB_OK)
		return status;
	if (message->width != table_options(c)->width)
		return status_fail(TRIB_ERR_REFUSED,
		                   "rank %u pushes rows of width %u to table '%s', which has %u",
		                   c->rank, message->width, c->table->name,
		                   table_options(c)->width);
	if (message->number <= c->appended) {
		server->counts.repeats++;
		return TRIB_OK;
	}
	if (message->number != c->appended + 1)
		return status_fail(TRIB_ERR_REFUSED,
		                   "rank %u sends push %" PRIu64 " after push %" PRIu64, c->rank,
		                   message->number, c->appended);
	status = push_append(server, c, message);
	if (status != TRIB_OK)
		return status;
	c->appended = message->number;
	server->counts.pushes++;
	server->counts.pushed_rows += message->count;
	server_hot_pushed(server, c->table, message->keys, NULL, message->count);
	return TRIB_OK;
}

static trib_status pull_take(struct sparse_server *server, struct connection *c,
                             const struct message *message)
{
	size_t width = table_options(c)->width, values = message->count * width;
	trib_status status = keys_check(server, c, message);
	float *rows;

	if (status != TRIB_OK)
		return status;
	if (values * sizeof(float) + 8 > MESSAGE_MAX)
		return status_fail(TRIB_ERR_REFUSED,
		                   "rank %u pulls %u rows at once, which no message holds", c->rank,
		                   message->count);
	rows = scratch_get(server, values + 1);
	if (!rows)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u rows", message->count);
	for (uint32_t i = 0; i < message->count; i++)
		sparse_store_read(c->table->table->store, message->keys[i], rows + i * width);
	if (!message_add_rows(&c->out, message->number, message->flags, rows, message->count,
	                      (uint32_t)width))
		connection_drop(c);
	server_hot_pulled(server, c->table);
	server->counts.pulls++;
	server->counts.pulled_rows += message->count;
	return TRIB_OK;
}

/* Counts that workers give. A row is not made by being counted. */
static trib_status heat_take(struct sparse_server *server, struct connection *c,
                             const struct message *message)
{
	struct sparse_store *store = c->table->table->store;
	trib_status status = keys_check(server, c, message);

	for (uint32_t i = 0; status == TRIB_OK && i < message->count; i++) {
		uint32_t row = sparse_store_find(store, message->keys[i]);
		uint64_t count = message->counts[i];

		if (row != SPARSE_ROW_NONE)
			sparse_store_heat_add(store, row,
			                      count < UINT32_MAX ? (uint32_t)count : UINT32_MAX);
	}
	if (status == TRIB_OK)
		server_hot_pushed(server, c->table, message->keys, message->counts, message->count);
	return status;
}

static trib_status step_take(struct sparse_server *server, struct connection *c,
                             const struct message *message)
{
	if (message->number == CLOCK_FINISHED)
		return status_fail(TRIB_ERR_REFUSED, "rank %u ends a step that does not exist",
		                   c->rank);
	clocks_step(&c->table->clocks, c->rank, message->number);
	if (!clock_tell(server, c->table))
		clock_answer(c);
	return TRIB_OK;
}

/* The client hears it when it is in the log. */
static trib_status bye_take(struct sparse_server *server, struct connection *c, uint64_t now)
{
	const struct sparse_entry entry = { .kind = SPARSE_ENTRY_CLIENT,
		                            .table = c->table->number,
		                            .client = c->client,
		                            .rank = c->rank,
		                            .has_left = true };
	trib_status status = sparse_log_append(server->log, &entry);

	if (status != TRIB_OK)
		return status;
	c->has_said_bye = c->waits_for_bye = server->acks_due = true;
	hello_undo(server, c, now);
	connection_end(c);
	return TRIB_OK;
}

static void status_answer(struct sparse_server *server, struct connection *c, bool plain,
                          uint64_t now)
{
	char *text = server_status_text(server, plain, now);

	if (!text || !message_add_text(&c->out, MESSAGE_STATUS, 0, text))
		connection_drop(c);
	free(text);
}

static trib_status open_take(struct sparse_server *server, struct connection *c,
                             const struct message *message, uint64_t now)
{
	switch (message->kind) {
	case MESSAGE_PUSH:
		return push_take(server, c, message);
	case MESSAGE_PULL:
		return pull_take(server, c, message);
	case MESSAGE_STEP:
		return step_take(server, c, message);
	case MESSAGE_HEAT:
		return heat_take(server, c, message);
	case MESSAGE_COUNTS:
		server_hot_counted(c->table, message);
		return TRIB_OK;
	case MESSAGE_LOST:
		return server_hot_lost(server, c, message);
	case MESSAGE_BYE:
		return bye_take(server, c, now);
	default:
		return status_fail(TRIB_ERR_REFUSED, "an unexpected %s message",
		                   message_name(message->kind));
	}
}

static void message_take(struct sparse_server *server, struct connection *c,
                         const struct message *message, uint64_t now)
{
	trib_status status = TRIB_OK;

	if (message->kind == MESSAGE_STATUS)
		status_answer(server, c, message->flags & MESSAGE_PLAIN, now);
	else if (c->state == CONNECTION_NEW && message->kind == MESSAGE_HELLO)
		hello_take(server, c, message, now);
	else if (c->state == CONNECTION_OPEN)
		status = open_take(server, c, message, now);
	else
		status = status_fail(TRIB_ERR_REFUSED, "a %s message before HELLO",
		                     message_name(message->kind));
	if (status == TRIB_OK)
		return;
	server->counts.refused++;
	hello_undo(server, c, now);
	connection_refuse(c, 0, trib_last_error());
}

bool requests_allowed(const struct sparse_server *server, const struct connection *c)
{
	if (c->state == CONNECTION_CLOSING)
		return true;
	return buffer_bytes(&c->out) < OUTPUT_MAX && !(server->trouble[0] && c->waits_for_ack);
}

bool requests_take(struct sparse_server *server, struct connection *c, uint64_t now)
{
	while (c->state < CONNECTION_CLOSING && buffer_bytes(&c->in) >= MESSAGE_HEADER) {
		struct message_header header;
		struct message message;
		trib_status status = message_header_read(buffer_front(&c->in), &header);

		if (status == TRIB_OK && buffer_bytes(&c->in) < MESSAGE_HEADER + header.bytes)
			return false;
		if (!requests_allowed(server, c))
			return true;
		if (status == TRIB_OK)
			status = message_parse(&header, buffer_front(&c->in) + MESSAGE_HEADER,
			                       &message);
		if (status != TRIB_OK) {
			server->counts.refused++;
			hello_undo(server, c, now);
			connection_refuse(c, 0, trib_last_error());
			return false;
		}
		message_take(server, c, &message, now);
		buffer_consume(&c->in, MESSAGE_HEADER + header.bytes);
	}
	return false;
}

void acks_add(struct sparse_server *server)
{
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];
		const struct sparse_client *known;
		bool good = true;

		if (c->waits_for_bye && c->state == CONNECTION_CLOSING)
			good = message_add_short(&c->out, MESSAGE_BYE, 0, 0);
		c->waits_for_bye = false;
		if (c->waits_for_ack && c->state == CONNECTION_OPEN) {
			known = sparse_state_client(server->state, c->client);
			good = message_add_short(&c->out, MESSAGE_ACK, known ? known->applied : 0,
			                         server_hot_round(c->table));
		}
		c->waits_for_ack = false;
		if (!good)
			connection_drop(c);
	}
	server->acks_due = false;
}
