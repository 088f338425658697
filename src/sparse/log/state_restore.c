/* SPDX-License-Identifier: Apache-2.0 */
/* From the entries of a snapshot to a state. */
#include "sparse/log/sparse_state.h"

#include <string.h>

static trib_status rows_restore(struct sparse_table *table, const struct sparse_entry *entry)
{
	struct sparse_store *store = table->store;

	if (entry->width != sparse_store_floats_per_row(store))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "rows of table %s have %u floats in the snapshot, and not %u",
		                   table->options.name, entry->width,
		                   sparse_store_floats_per_row(store));
	for (uint32_t i = 0; i < entry->n; i++) {
		uint32_t before = sparse_store_rows(store), row;

		if (!sparse_key_fits(&table->options, entry->keys[i]))
			return status_fail(TRIB_ERR_ARGUMENT, "a row of table %s has a wrong key",
			                   table->options.name);
		row = sparse_store_row(store, entry->keys[i]);
		if (row == SPARSE_ROW_NONE)
			return status_fail(TRIB_ERR_NO_MEMORY,
			                   "no memory for another row of table %s, which has %u",
			                   table->options.name, before);
		if (row != before)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "a row of table %s is twice in the snapshot",
			                   table->options.name);
		memcpy(sparse_store_floats(store, row), entry->rows + (size_t)i * entry->width,
		       entry->width * sizeof(float));
		sparse_store_heat_set(store, row, entry->heats[i]);
	}
	return TRIB_OK;
}

static trib_status clients_restore(struct sparse_state *state, const struct sparse_entry *entry)
{
	for (uint32_t i = 0; i < entry->n; i++) {
		struct sparse_client *client =
			sparse_state_client_make(state, entry->clients[i].client);

		if (!client)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u clients",
			                   entry->n);
		*client = entry->clients[i];
	}
	return TRIB_OK;
}

static trib_status incarnation_restore(struct sparse_table *table, const struct sparse_entry *entry)
{
	struct sparse_incarnation *to =
		&table->incarnations[entry->incarnation % SPARSE_INCARNATIONS_KEPT];

	if (!entry->incarnation || entry->incarnation <= table->last)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "incarnation %u of table %s is out of order in the snapshot",
		                   entry->incarnation, table->options.name);
	*to = (struct sparse_incarnation){
		.number = entry->incarnation,
		.epoch = entry->epoch,
		.children = entry->children,
		.is_sealed = entry->is_sealed,
	};
	memcpy(to->records, entry->records, entry->children * sizeof(*to->records));
	table->last = entry->incarnation;
	return TRIB_OK;
}

trib_status sparse_state_restore(struct sparse_state *state, const struct sparse_entry *entry)
{
	struct sparse_table *table = sparse_state_table(state, entry->table);
	enum sparse_outcome outcome;

	if (entry->kind == SPARSE_ENTRY_TABLE)
		return sparse_state_apply(state, entry, &outcome);
	if (entry->kind == SPARSE_ENTRY_CLIENTS)
		return clients_restore(state, entry);
	if (entry->kind != SPARSE_ENTRY_ROWS && entry->kind != SPARSE_ENTRY_INCARNATION)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "an entry of kind %s is not one of a snapshot",
		                   sparse_entry_name(entry->kind));
	if (!table)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the snapshot names table %u before it has it", entry->table);
	return entry->kind == SPARSE_ENTRY_ROWS ? rows_restore(table, entry)
	                                        : incarnation_restore(table, entry);
}
