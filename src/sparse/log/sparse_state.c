/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/sparse_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_FAR 16u /* rows ahead */
#define EXPECT_NEAR 8u

void sparse_state_begin(struct sparse_state *state)
{
	*state = (struct sparse_state){ 0 };
}

void sparse_state_end(struct sparse_state *state)
{
	for (uint32_t i = 0; i < state->n_tables; i++) {
		sparse_store_close(state->tables[i]->store);
		free(state->tables[i]);
	}
	free(state->clients);
	sparse_state_begin(state);
}

/* ---- tables ---- */

struct sparse_table *sparse_state_table(const struct sparse_state *state, uint32_t table)
{
	return table < state->n_tables ? state->tables[table] : NULL;
}

bool sparse_state_table_find(const struct sparse_state *state, const char *name, uint32_t *table)
{
	for (uint32_t i = 0; i < state->n_tables; i++) {
		if (!strncmp(state->tables[i]->options.name, name, SPARSE_NAME_ROOM)) {
			*table = i;
			return true;
		}
	}
	return false;
}

/* Makes table number `n_tables`. */
static trib_status sparse_state_table_make(struct sparse_state *state,
                                           const struct sparse_table_options *options)
{
	struct sparse_table *table = calloc(1, sizeof(*table));
	trib_status status;

	if (!table)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for table %s", options->name);
	table->options = *options;
	status = sparse_store_open(options, &table->store);
	if (status != TRIB_OK) {
		free(table);
		return status;
	}
	state->tables[state->n_tables++] = table;
	return TRIB_OK;
}

static trib_status table_check(const struct sparse_state *state, const struct sparse_entry *entry)
{
	const struct sparse_table_options *options = &entry->options;
	const struct sparse_table *table = sparse_state_table(state, entry->table);
	trib_status status = sparse_table_options_check(options);
	uint32_t other;

	if (status != TRIB_OK)
		return status;
	if (table && sparse_table_options_equal(&table->options, options))
		return TRIB_OK;
	if (sparse_state_table_find(state, options->name, &other))
		return status_fail(TRIB_ERR_MISMATCH,
		                   "there is a table %s already, with other options or another "
		                   "number",
		                   options->name);
	if (entry->table != state->n_tables || state->n_tables == SPARSE_TABLES_MAX)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "table %s cannot have number %u: there are %u tables, and at "
		                   "most %u",
		                   options->name, entry->table, state->n_tables, SPARSE_TABLES_MAX);
	return TRIB_OK;
}

/* ---- clients ---- */

/* The first client that is not below. */
static uint32_t client_place(const struct sparse_state *state, uint64_t client)
{
	uint32_t low = 0, high = state->n_clients;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (state->clients[middle].client < client)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct sparse_client *client_find(const struct sparse_state *state, uint64_t client)
{
	uint32_t i = client_place(state, client);

	return i < state->n_clients && state->clients[i].client == client ? &state->clients[i]
	                                                                  : NULL;
}

const struct sparse_client *sparse_state_client(const struct sparse_state *state, uint64_t client)
{
	return client_find(state, client);
}

struct sparse_client *sparse_state_client_make(struct sparse_state *state, uint64_t client)
{
	uint32_t i = client_place(state, client);

	if (i < state->n_clients && state->clients[i].client == client)
		return &state->clients[i];
	if (state->n_clients == state->client_room) {
		uint32_t room = state->client_room ? 2 * state->client_room : 16;
		struct sparse_client *clients = realloc(state->clients, room * sizeof(*clients));

		if (!clients)
			return NULL;
		state->clients = clients;
		state->client_room = room;
	}
	memmove(&state->clients[i + 1], &state->clients[i],
	        (state->n_clients - i) * sizeof(*state->clients));
	state->clients[i] = (struct sparse_client){ .client = client };
	state->n_clients++;
	return &state->clients[i];
}

/*
 * Clients that have left are kept, so that a server that starts again does not wait for their
 * ranks. A new client of the same rank takes their place, and a new run forgets all of them.
 */
static void left_forget(struct sparse_state *state, const struct sparse_entry *entry)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state->n_clients; i++) {
		const struct sparse_client *client = &state->clients[i];

		if (!client->has_left || client->table != entry->table ||
		    (!entry->begins_run && client->rank != entry->rank))
			state->clients[kept++] = *client;
	}
	state->n_clients = kept;
}

static trib_status client_apply(struct sparse_state *state, const struct sparse_entry *entry,
                                enum sparse_outcome *outcome)
{
	struct sparse_client *client = client_find(state, entry->client);

	if (entry->has_left ? !client || client->has_left : client != NULL) {
		*outcome = SPARSE_REPEATED;
		return TRIB_OK;
	}
	if (entry->has_left) {
		client->has_left = 1;
		return TRIB_OK;
	}
	left_forget(state, entry);
	client = sparse_state_client_make(state, entry->client);
	if (!client)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for client %" PRIx64,
		                   entry->client);
	client->table = entry->table;
	client->rank = entry->rank;
	return TRIB_OK;
}

/* ---- gradients ---- */

/* PUSH and FLUSH: the table and its rows. */
static trib_status rows_check(const struct sparse_state *state, const struct sparse_entry *entry)
{
	const struct sparse_table *table = sparse_state_table(state, entry->table);

	if (!table)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a %s names table %u, and there are %u tables",
		                   sparse_entry_name(entry->kind), entry->table, state->n_tables);
	if (entry->width != table->options.width)
		return status_fail(TRIB_ERR_MISMATCH,
		                   "a %s has rows of width %u, and those of table %s have %u",
		                   sparse_entry_name(entry->kind), entry->width,
		                   table->options.name, table->options.width);
	for (uint32_t i = 0; i < entry->n; i++) {
		if (!sparse_key_fits(&table->options, entry->keys[i]))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "a %s has the key %" PRIu64
			                   ", and keys of table %s are below %" PRIu64,
			                   sparse_entry_name(entry->kind), entry->keys[i],
			                   table->options.name,
			                   table->options.parameters ? table->options.parameters
			                                             : SPARSE_KEY_NONE);
	}
	return TRIB_OK;
}

/* Row i is next: memory fetches what comes behind it. */
static void rows_expect(const struct sparse_store *store, const struct sparse_entry *entry,
                        uint32_t i)
{
	if (entry->n - i > EXPECT_FAR)
		sparse_store_expect(store, entry->keys[i + EXPECT_FAR]);
	if (entry->n - i > EXPECT_NEAR)
		sparse_store_expect_soon(store, entry->keys[i + EXPECT_NEAR]);
}

static trib_status rows_apply(struct sparse_table *table, const struct sparse_entry *entry,
                              uint32_t heat)
{
	for (uint32_t i = 0; i < entry->n; i++) {
		const float *gradient = entry->rows + (size_t)i * entry->width;
		uint32_t row;

		rows_expect(table->store, entry, i);
		row = sparse_store_apply(table->store, entry->keys[i], gradient);
		if (row == SPARSE_ROW_NONE)
			return status_fail(TRIB_ERR_NO_MEMORY,
			                   "no memory for another row of table %s, which has %u",
			                   table->options.name, sparse_store_rows(table->store));
		sparse_store_heat_add(table->store, row, heat);
	}
	return TRIB_OK;
}

struct sparse_incarnation *sparse_table_incarnation(const struct sparse_table *table,
                                                    uint32_t number)
{
	const struct sparse_incarnation *found =
		&table->incarnations[number % SPARSE_INCARNATIONS_KEPT];

	/* Numbers may be left out. A snapshot has the last ones, so no older one counts. */
	if (!number || table->last - number >= SPARSE_INCARNATIONS_KEPT)
		return NULL;
	return found->number == number ? (struct sparse_incarnation *)found : NULL;
}

/* Reasons that stay. */
static trib_status number_check(const struct sparse_state *state, const struct sparse_entry *entry,
                                uint32_t number)
{
	const struct sparse_table *table = sparse_state_table(state, entry->table);

	if (!table)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a %s names table %u, and there are %u tables",
		                   sparse_entry_name(entry->kind), entry->table, state->n_tables);
	if (number > table->last)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a %s of table %s names incarnation %u, and the last one is %u",
		                   sparse_entry_name(entry->kind), table->options.name, number,
		                   table->last);
	return TRIB_OK;
}

/* ---- pushes ---- */

static trib_status push_check(const struct sparse_state *state, const struct sparse_entry *entry)
{
	trib_status status = rows_check(state, entry);

	if (status == TRIB_OK && !entry->sequence)
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "a push of client %" PRIx64
		                     " has number 0, and they begin with 1",
		                     entry->client);
	return status;
}

static trib_status push_apply(struct sparse_state *state, const struct sparse_entry *entry,
                              enum sparse_outcome *outcome)
{
	struct sparse_table *table = state->tables[entry->table];
	struct sparse_client *client = client_find(state, entry->client);
	bool is_known = client && !client->has_left;

	*outcome = is_known ? SPARSE_REPEATED : SPARSE_STALE;
	if (!is_known || entry->sequence <= client->applied)
		return TRIB_OK;
	*outcome = SPARSE_APPLIED;
	client->applied = entry->sequence;
	return rows_apply(table, entry, 1);
}

/* ---- incarnations ---- */

static trib_status flush_check(const struct sparse_state *state, const struct sparse_entry *entry)
{
	trib_status status = rows_check(state, entry);

	if (status == TRIB_OK)
		status = number_check(state, entry, entry->incarnation);
	if (status == TRIB_OK && (!entry->incarnation || !entry->epoch))
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "a flush has incarnation %u and epoch %u, and both begin "
		                     "with 1",
		                     entry->incarnation, entry->epoch);
	return status;
}

static bool records_cover(const struct sparse_incarnation *incarnation,
                          const struct sparse_entry *entry)
{
	if (entry->children != incarnation->children)
		return false;
	for (uint32_t i = 0; i < entry->children; i++) {
		if (!applied_covers(&entry->records[i], &incarnation->records[i]))
			return false;
	}
	return true;
}

static trib_status flush_apply(struct sparse_state *state, const struct sparse_entry *entry,
                               enum sparse_outcome *outcome)
{
	struct sparse_table *table = state->tables[entry->table];
	struct sparse_incarnation *incarnation =
		sparse_table_incarnation(table, entry->incarnation);

	*outcome = SPARSE_STALE;
	if (!incarnation || incarnation->is_sealed)
		return TRIB_OK;
	if (entry->epoch <= incarnation->epoch)
		*outcome = SPARSE_REPEATED;
	else if (records_cover(incarnation, entry))
		*outcome = SPARSE_APPLIED;
	if (*outcome != SPARSE_APPLIED)
		return TRIB_OK;
	incarnation->epoch = entry->epoch;
	memcpy(incarnation->records, entry->records, entry->children * sizeof(*entry->records));
	return rows_apply(table, entry, entry->heat);
}

static trib_status open_check(const struct sparse_state *state, const struct sparse_entry *entry)
{
	trib_status status = number_check(state, entry, 0);

	if (status == TRIB_OK && (!entry->incarnation || !entry->children))
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "incarnation %u of table %u has %u children; neither may be 0",
		                     entry->incarnation, entry->table, entry->children);
	return status;
}

static void incarnation_seal(struct sparse_table *table, uint32_t number)
{
	struct sparse_incarnation *incarnation = sparse_table_incarnation(table, number);

	if (incarnation)
		incarnation->is_sealed = true;
}

static void open_apply(struct sparse_state *state, const struct sparse_entry *entry,
                       enum sparse_outcome *outcome)
{
	struct sparse_table *table = state->tables[entry->table];

	if (entry->incarnation <= table->last) {
		*outcome = entry->incarnation == table->last ? SPARSE_REPEATED : SPARSE_STALE;
		return;
	}
	incarnation_seal(table, table->last);
	table->last = entry->incarnation;
	table->incarnations[table->last % SPARSE_INCARNATIONS_KEPT] = (struct sparse_incarnation){
		.number = entry->incarnation,
		.children = entry->children,
	};
}

static void seal_apply(struct sparse_state *state, const struct sparse_entry *entry,
                       enum sparse_outcome *outcome)
{
	struct sparse_table *table = state->tables[entry->table];
	const struct sparse_incarnation *incarnation =
		sparse_table_incarnation(table, entry->incarnation);

	if (!incarnation || incarnation->is_sealed)
		*outcome = SPARSE_REPEATED;
	else
		incarnation_seal(table, entry->incarnation);
}

/* ---- all kinds ---- */

/* Reasons that stay. */
static trib_status entry_check_alone(const struct sparse_state *state,
                                     const struct sparse_entry *entry)
{
	switch (entry->kind) {
	case SPARSE_ENTRY_TABLE:
		return table_check(state, entry);
	case SPARSE_ENTRY_CLIENT:
		return number_check(state, entry, 0);
	case SPARSE_ENTRY_PUSH:
		return push_check(state, entry);
	case SPARSE_ENTRY_OPEN:
		return open_check(state, entry);
	case SPARSE_ENTRY_FLUSH:
		return flush_check(state, entry);
	case SPARSE_ENTRY_SEAL:
		return number_check(state, entry, entry->incarnation);
	default:
		return status_fail(TRIB_ERR_ARGUMENT, "an entry of kind %s is not one of a log",
		                   sparse_entry_name(entry->kind));
	}
}

static trib_status push_check_late(const struct sparse_state *state,
                                   const struct sparse_entry *entry)
{
	const struct sparse_client *client = client_find(state, entry->client);

	if (!client || client->has_left)
		return status_fail(TRIB_ERR_REFUSED, "client %" PRIx64 " is not known, or has left",
		                   entry->client);
	return TRIB_OK;
}

static trib_status flush_check_late(const struct sparse_state *state,
                                    const struct sparse_entry *entry)
{
	const struct sparse_table *table = state->tables[entry->table];
	const struct sparse_incarnation *incarnation =
		sparse_table_incarnation(table, entry->incarnation);

	if (!incarnation || incarnation->is_sealed)
		return status_fail(TRIB_ERR_REFUSED, "incarnation %u of table %s was sealed",
		                   entry->incarnation, table->options.name);
	if (entry->epoch > incarnation->epoch && !records_cover(incarnation, entry))
		return status_fail(TRIB_ERR_REFUSED,
		                   "the records of epoch %u of incarnation %u of table %s lack "
		                   "packets that epoch %u had",
		                   entry->epoch, entry->incarnation, table->options.name,
		                   incarnation->epoch);
	return TRIB_OK;
}

trib_status sparse_state_check(const struct sparse_state *state, const struct sparse_entry *entry)
{
	trib_status status = entry_check_alone(state, entry);

	if (status == TRIB_OK && entry->kind == SPARSE_ENTRY_PUSH)
		status = push_check_late(state, entry);
	if (status == TRIB_OK && entry->kind == SPARSE_ENTRY_FLUSH)
		status = flush_check_late(state, entry);
	return status;
}

static trib_status entry_apply(struct sparse_state *state, const struct sparse_entry *entry,
                               enum sparse_outcome *outcome)
{
	switch (entry->kind) {
	case SPARSE_ENTRY_TABLE:
		if (entry->table == state->n_tables)
			return sparse_state_table_make(state, &entry->options);
		*outcome = SPARSE_REPEATED;
		return TRIB_OK;
	case SPARSE_ENTRY_CLIENT:
		return client_apply(state, entry, outcome);
	case SPARSE_ENTRY_PUSH:
		return push_apply(state, entry, outcome);
	case SPARSE_ENTRY_FLUSH:
		return flush_apply(state, entry, outcome);
	case SPARSE_ENTRY_OPEN:
		open_apply(state, entry, outcome);
		return TRIB_OK;
	default:
		seal_apply(state, entry, outcome);
		return TRIB_OK;
	}
}

trib_status sparse_state_apply(struct sparse_state *state, const struct sparse_entry *entry,
                               enum sparse_outcome *outcome)
{
	trib_status status = entry_check_alone(state, entry);

	*outcome = SPARSE_APPLIED;
	if (status == TRIB_OK)
		status = entry_apply(state, entry, outcome);
	if (status == TRIB_OK)
		*(*outcome == SPARSE_APPLIED ? &state->applied : &state->repeated) += 1;
	return status;
}
