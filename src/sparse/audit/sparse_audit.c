/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/audit/sparse_audit.h"

#include "sparse/audit/audit_rows.h"
#include "sparse/log/log_replay.h"
#include "sparse/log/sparse_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FAULT_LINES 20u
#define WINDOW 256u

/* The life of an incarnation: (table, number). */
enum { LIFE_SEALED = 1 };
/* The life of a client. */
enum presence { CLIENT_UNKNOWN, CLIENT_KNOWN, CLIENT_LEFT };

struct auditor {
	FILE *out;
	struct sparse_audit *result;
	const struct sparse_log_visit *visit;
	struct audit_rows tables[SPARSE_TABLES_MAX];
	uint32_t n_tables;
	struct audit_set clients;  /* client: highest sequence number */
	struct audit_set presence; /* client: enum presence */
	struct audit_set pushes;   /* (client, sequence) that were applied */
	struct audit_set lives;    /* (table, incarnation): LIFE_SEALED */
	struct audit_set epochs;   /* (table, incarnation): of the last flush */
	struct audit_set children; /* (table, incarnation): number of children */
	struct audit_set lows;     /* of a child: every packet below was applied */
	struct audit_set packets;  /* of a child: packets that were applied, beside those */
	uint32_t last[SPARSE_TABLES_MAX];
	bool no_memory;
};

static void fault(struct auditor *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fault(struct auditor *a, const char *format, ...)
{
	va_list list;

	if (a->result->faults++ >= FAULT_LINES || !a->out)
		return;
	if (a->visit)
		fprintf(a->out, "%s at %" PRIu64 ": ", a->visit->file, a->visit->offset);
	va_start(list, format);
	vfprintf(a->out, format, list);
	va_end(list);
	fputc('\n', a->out);
}

/* The value of a key, which is made with 0. A value that is no good is the end: see no_memory. */
static uint64_t *value_of(struct auditor *a, struct audit_set *set, uint64_t x, uint64_t y)
{
	static uint64_t nothing;
	bool was;
	uint64_t *value = audit_set_add(set, (struct audit_key){ x, y }, 0, &was);

	if (value)
		return value;
	a->no_memory = true;
	nothing = 0;
	return &nothing;
}

/* ---- packets of children ---- */

static uint64_t child_key(uint32_t table, uint32_t incarnation, uint32_t child)
{
	return (uint64_t)table << 40 | (uint64_t)child << 32 | incarnation;
}

static bool packet_was(struct auditor *a, uint64_t child, uint64_t packet)
{
	return packet < *value_of(a, &a->lows, child, 0) ||
	       audit_set_find(&a->packets, (struct audit_key){ child, packet });
}

static bool record_has(const struct applied_set *record, uint64_t packet)
{
	uint64_t i = packet - record->low;

	return packet < record->low || (i < WINDOW && (record->seen[i / 64] >> i % 64 & 1));
}

/* How many packets were applied, as the record says. */
static uint64_t record_count(const struct applied_set *record)
{
	uint64_t n = record->low;

	for (unsigned i = 0; i < 4; i++)
		n += (uint64_t)__builtin_popcountll(record->seen[i]);
	return n;
}

/* All packets that were applied before are in the record. `*n`: how many these are. */
static bool record_goes_on(struct auditor *a, uint64_t child, const struct applied_set *record,
                           uint64_t *n)
{
	uint64_t low = *value_of(a, &a->lows, child, 0);

	*n = low;
	for (uint64_t p = low; p < low + WINDOW; p++) {
		if (!packet_was(a, child, p))
			continue;
		++*n;
		if (!record_has(record, p))
			return false;
	}
	return record->low >= low;
}

static void record_note(struct auditor *a, uint64_t child, const struct applied_set *record)
{
	*value_of(a, &a->lows, child, 0) = record->low;
	for (uint64_t i = 0; i < WINDOW; i++) {
		if (record_has(record, record->low + i))
			value_of(a, &a->packets, child, record->low + i);
	}
}

/* ---- entries ---- */

static void rows_note(struct auditor *a, const struct sparse_entry *entry)
{
	for (uint32_t i = 0; i < entry->n; i++)
		a->no_memory |= !audit_rows_apply(&a->tables[entry->table], entry->keys[i],
		                                  entry->rows + (size_t)i * entry->width);
}

static void client_note(struct auditor *a, const struct sparse_entry *entry)
{
	uint64_t *presence = value_of(a, &a->presence, entry->client, 0);

	if (*presence == (entry->has_left ? CLIENT_KNOWN : CLIENT_UNKNOWN))
		++*presence;
}

static void push_note(struct auditor *a, const struct sparse_entry *entry)
{
	uint64_t *highest;

	if (*value_of(a, &a->presence, entry->client, 0) != CLIENT_KNOWN)
		return;
	highest = value_of(a, &a->clients, entry->client, 0);
	if (audit_set_find(&a->pushes, (struct audit_key){ entry->client, entry->sequence })) {
		a->result->repeats++;
		return;
	}
	if (entry->sequence < *highest) {
		fault(a,
		      "push %" PRIu64 " of client %" PRIx64 " comes after push %" PRIu64
		      ", so it was not applied",
		      entry->sequence, entry->client, *highest);
		return;
	}
	*highest = entry->sequence;
	value_of(a, &a->pushes, entry->client, entry->sequence);
	a->result->pushes++;
	rows_note(a, entry);
}

static void flush_note(struct auditor *a, const struct sparse_entry *entry)
{
	uint64_t *epoch = value_of(a, &a->epochs, entry->table, entry->incarnation);
	uint64_t counts[SPARSE_RECORDS_MAX];
	bool good = entry->children == *value_of(a, &a->children, entry->table, entry->incarnation);

	if (*value_of(a, &a->lives, entry->table, entry->incarnation) == LIFE_SEALED)
		return;
	if (entry->epoch <= *epoch) {
		a->result->repeats++;
		return;
	}
	for (uint32_t i = 0; good && i < entry->children; i++)
		good = record_goes_on(a, child_key(entry->table, entry->incarnation, i),
		                      &entry->records[i], &counts[i]);
	if (!good)
		return;
	*epoch = entry->epoch;
	for (uint32_t i = 0; i < entry->children; i++) {
		record_note(a, child_key(entry->table, entry->incarnation, i), &entry->records[i]);
		a->result->packets += record_count(&entry->records[i]) - counts[i];
	}
	a->result->flushes++;
	rows_note(a, entry);
}

static void open_note(struct auditor *a, const struct sparse_entry *entry)
{
	uint32_t *last = &a->last[entry->table];

	if (entry->incarnation <= *last)
		return;
	if (*last)
		*value_of(a, &a->lives, entry->table, *last) = LIFE_SEALED;
	*last = entry->incarnation;
	*value_of(a, &a->children, entry->table, *last) = entry->children;
}

/* What the log has to have, whatever the server did: otherwise the audit cannot go on. */
static bool entry_fits(const struct auditor *a, const struct sparse_entry *entry)
{
	switch (entry->kind) {
	case SPARSE_ENTRY_TABLE:
		return entry->table <= a->n_tables && entry->table < SPARSE_TABLES_MAX;
	case SPARSE_ENTRY_CLIENT:
		return true;
	case SPARSE_ENTRY_PUSH:
	case SPARSE_ENTRY_FLUSH:
		return entry->table < a->n_tables &&
		       entry->width == a->tables[entry->table].options.width;
	default:
		return entry->table < a->n_tables;
	}
}

static void entry_note(struct auditor *a, const struct sparse_entry *entry)
{
	switch (entry->kind) {
	case SPARSE_ENTRY_TABLE:
		if (entry->table == a->n_tables)
			audit_rows_begin(&a->tables[a->n_tables++], &entry->options);
		break;
	case SPARSE_ENTRY_CLIENT:
		client_note(a, entry);
		break;
	case SPARSE_ENTRY_PUSH:
		push_note(a, entry);
		break;
	case SPARSE_ENTRY_FLUSH:
		flush_note(a, entry);
		break;
	case SPARSE_ENTRY_OPEN:
		open_note(a, entry);
		break;
	default:
		*value_of(a, &a->lives, entry->table, entry->incarnation) = LIFE_SEALED;
	}
}

static trib_status entry_audit(void *context, const struct sparse_log_visit *visit)
{
	struct auditor *a = context;

	a->result->entries++;
	if (!entry_fits(a, visit->entry))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "%s at %" PRIu64 ": a %s does not fit its table %u", visit->file,
		                   visit->offset, sparse_entry_name(visit->entry->kind),
		                   visit->entry->table);
	a->visit = visit;
	entry_note(a, visit->entry);
	a->visit = NULL;
	return a->no_memory ? status_fail(TRIB_ERR_NO_MEMORY, "no memory for the audit") : TRIB_OK;
}

/* ---- comparison ---- */

static void table_compare(struct auditor *a, const struct audit_rows *rows,
                          const struct sparse_table *table)
{
	const struct sparse_store *store = table->store;

	if (rows->floats != sparse_store_floats_per_row(store)) {
		fault(a, "table %s has other options in the snapshot", rows->options.name);
		return;
	}
	if (rows->index.n != sparse_store_rows(store))
		fault(a, "table %s has %u rows, and the log makes %" PRIu64, rows->options.name,
		      sparse_store_rows(store), rows->index.n);
	for (uint32_t i = 0; i < sparse_store_rows(store); i++) {
		uint64_t key = sparse_store_key(store, i);
		const float *row = audit_rows_find(rows, key);

		a->result->rows++;
		if (!row ||
		    memcmp(row, sparse_store_floats(store, i), rows->floats * sizeof(float)) != 0)
			fault(a, "row %" PRIu64 " of table %s %s", key, rows->options.name,
			      row ? "has other bits than the log makes" : "is not in the log");
	}
}

static trib_status state_compare(struct auditor *a, const struct log_folder *folder)
{
	struct sparse_state state;
	struct log_replay replay;
	trib_status status;

	sparse_state_begin(&state);
	status = log_replay(folder, 0, 0, LOG_REPAIR_NOTHING, &state, &replay);
	if (status == TRIB_OK && state.n_tables != a->n_tables)
		fault(a, "there are %u tables, and the log makes %u", state.n_tables, a->n_tables);
	for (uint32_t i = 0; status == TRIB_OK && i < state.n_tables && i < a->n_tables; i++)
		table_compare(a, &a->tables[i], state.tables[i]);
	sparse_state_end(&state);
	return status;
}

static void auditor_end(struct auditor *a)
{
	for (uint32_t i = 0; i < a->n_tables; i++)
		audit_rows_end(&a->tables[i]);
	audit_set_free(&a->clients);
	audit_set_free(&a->presence);
	audit_set_free(&a->pushes);
	audit_set_free(&a->lives);
	audit_set_free(&a->epochs);
	audit_set_free(&a->children);
	audit_set_free(&a->lows);
	audit_set_free(&a->packets);
	free(a);
}

static trib_status first_check(const struct log_folder *folder)
{
	struct log_folder_files files;
	trib_status status = log_folder_list(folder, &files);

	if (status == TRIB_OK && files.n_logs && files.logs[0] != 1)
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "the first log has number %" PRIu64
		                     ": older ones were removed, and an audit needs all (trib "
		                     "sparse serve --keep-logs)",
		                     files.logs[0]);
	log_folder_files_free(&files);
	return status;
}

trib_status sparse_audit(const char *path, FILE *out, struct sparse_audit *audit)
{
	struct auditor *a = calloc(1, sizeof(*a));
	struct log_folder folder;
	trib_status status;

	*audit = (struct sparse_audit){ .torn = UINT64_MAX };
	if (!a)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the audit");
	a->out = out;
	a->result = audit;
	status = log_folder_view(&folder, path);
	if (status == TRIB_OK)
		status = log_folder_share(&folder);
	if (status == TRIB_OK)
		status = first_check(&folder);
	if (status == TRIB_OK)
		status = sparse_log_visit(path, entry_audit, a, &audit->torn);
	if (status == TRIB_OK)
		status = state_compare(a, &folder);
	log_folder_close(&folder);
	auditor_end(a);
	return status;
}
