/* SPDX-License-Identifier: Apache-2.0 */
#include "shard_rig.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A helper that fails is a fault of the test, which cannot go on. */
static void demand(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

/* ---- entries ---- */

static uint64_t draw(unsigned i, unsigned j)
{
	uint64_t x = (i * 64ull + j + 1) * 0x9e3779b97f4a7c15ull;

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull >> 20;
}

static void rows_draw(struct rig_script *script, struct sparse_entry *entry)
{
	entry->table = draw(script->i, 50) % 2;
	entry->width = entry->table ? 5 : 3;
	entry->n = (uint32_t)(draw(script->i, 51) % 5);
	entry->keys = script->keys;
	entry->rows = script->rows;
	for (unsigned i = 0; i < 4; i++)
		script->keys[i] = draw(script->i, i) % 40;
	for (unsigned i = 0; i < 20; i++)
		script->rows[i] = (float)(draw(script->i, i + 4) % 2001) / 1000 - 1;
}

static void push_make(struct rig_script *script, struct sparse_entry *entry, bool repeated)
{
	unsigned client = draw(script->i, 60) % RIG_CLIENTS;

	entry->kind = SPARSE_ENTRY_PUSH;
	rows_draw(script, entry);
	entry->client = 0x100 + client;
	if (!repeated || !script->sequence[client])
		script->sequence[client] += 1 + draw(script->i, 61) % 2;
	entry->sequence = script->sequence[client];
}

void rig_packet_add(struct applied_set *set, uint64_t packet)
{
	if (packet >= set->low)
		set->seen[(packet - set->low) / 64] |= 1ull << (packet - set->low) % 64;
	for (; set->seen[0] & 1; set->low++)
		for (unsigned i = 0; i < 4; i++)
			set->seen[i] = set->seen[i] >> 1 | (i < 3 ? set->seen[i + 1] << 63 : 0);
}

static void flush_make(struct rig_script *script, struct sparse_entry *entry)
{
	entry->kind = SPARSE_ENTRY_FLUSH;
	rows_draw(script, entry);
	entry->table = 0;
	entry->width = 3;
	entry->incarnation = script->incarnation;
	entry->epoch = ++script->epoch;
	entry->heat = 3;
	entry->children = 2;
	entry->records = script->records;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t low = script->records[i].low;

		for (unsigned j = 0; j < 4; j++)
			rig_packet_add(&script->records[i],
			               low + draw(script->i, 70 + i * 8 + j) % 6);
	}
}

static void incarnation_make(struct rig_script *script, struct sparse_entry *entry, bool opens)
{
	entry->kind = opens ? SPARSE_ENTRY_OPEN : SPARSE_ENTRY_SEAL;
	if (opens) {
		script->incarnation++;
		script->epoch = 0;
		memset(script->records, 0, sizeof(script->records));
		entry->children = 2;
	}
	entry->incarnation = script->incarnation;
}

static void first_make(struct rig_script *script, struct sparse_entry *entry)
{
	if (script->i < 2) {
		trib_sparse_options given = TRIB_SPARSE_OPTIONS_INIT;

		given.name = script->i ? "second" : "first";
		given.width = script->i ? 5 : 3;
		given.optimizer = script->i ? "momentum" : "adam";
		given.init = 0.25;
		demand(sparse_table_options_take(&given, &entry->options) == TRIB_OK, "options");
		entry->kind = SPARSE_ENTRY_TABLE;
		entry->table = script->i;
	} else if (script->i < 2 + RIG_CLIENTS) {
		entry->kind = SPARSE_ENTRY_CLIENT;
		entry->client = 0x100 + script->i - 2;
	} else {
		incarnation_make(script, entry, true);
	}
}

void rig_script_next(struct rig_script *script, struct sparse_entry *entry)
{
	*entry = (struct sparse_entry){ 0 };
	if (script->i < 3 + RIG_CLIENTS)
		first_make(script, entry);
	else if (script->i % 20 == 16)
		incarnation_make(script, entry, false);
	else if (script->i % 20 == 17 || script->i % 20 == 18)
		push_make(script, entry, false);
	else if (script->i % 20 == 19)
		incarnation_make(script, entry, true);
	else if (script->i % 3 == 0)
		flush_make(script, entry);
	else
		push_make(script, entry, script->i % 10 == 5);
	script->i++;
}

/* ---- states ---- */

void rig_state(struct sparse_state *state, unsigned n)
{
	struct rig_script script = { 0 };

	sparse_state_begin(state);
	for (unsigned i = 0; i < n; i++) {
		struct sparse_entry entry;
		enum sparse_outcome outcome;

		rig_script_next(&script, &entry);
		demand(sparse_state_apply(state, &entry, &outcome) == TRIB_OK, trib_last_error());
	}
}

static bool tables_equal(const struct sparse_table *a, const struct sparse_table *b)
{
	uint32_t rows = sparse_store_rows(a->store);

	if (!sparse_table_options_equal(&a->options, &b->options) || a->last != b->last ||
	    rows != sparse_store_rows(b->store))
		return false;
	for (uint32_t i = 0; i < rows; i++) {
		if (sparse_store_key(a->store, i) != sparse_store_key(b->store, i) ||
		    sparse_store_heat(a->store, i) != sparse_store_heat(b->store, i) ||
		    memcmp(sparse_store_floats(a->store, i), sparse_store_floats(b->store, i),
		           4 * (size_t)sparse_store_floats_per_row(a->store)) != 0)
			return false;
	}
	for (uint32_t i = 1; i <= a->last; i++) {
		const struct sparse_incarnation *x = sparse_table_incarnation(a, i);
		const struct sparse_incarnation *y = sparse_table_incarnation(b, i);

		if (!x != !y)
			return false;
		if (x && (x->epoch != y->epoch || x->children != y->children ||
		          x->is_sealed != y->is_sealed ||
		          memcmp(x->records, y->records, sizeof(x->records)) != 0))
			return false;
	}
	return true;
}

bool rig_states_equal(const struct sparse_state *a, const struct sparse_state *b)
{
	if (a->n_tables != b->n_tables || a->n_clients != b->n_clients)
		return false;
	for (uint32_t i = 0; i < a->n_tables; i++) {
		if (!tables_equal(a->tables[i], b->tables[i]))
			return false;
	}
	return !a->n_clients || !memcmp(a->clients, b->clients, a->n_clients * sizeof(*a->clients));
}

/* ---- folders ---- */

char *rig_folder(void)
{
	char *path = strdup("/tmp/trib_shard_XXXXXX");

	demand(path && mkdtemp(path), "mkdtemp");
	return path;
}

void rig_folder_remove(char *path)
{
	DIR *names = opendir(path);
	const struct dirent *name;
	char file[512];

	demand(names != NULL, path);
	while ((name = readdir(names))) {
		snprintf(file, sizeof(file), "%s/%s", path, name->d_name);
		if (name->d_name[0] != '.')
			demand(!unlink(file), file);
	}
	closedir(names);
	demand(!rmdir(path), path);
	free(path);
}

struct sparse_log_options rig_options(const char *folder)
{
	return (struct sparse_log_options){
		.folder = folder,
		.shards = 1,
		.sync = SPARSE_SYNC_NONE,
	};
}

static FILE *file_open(const char *folder, const char *name, const char *how)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, how);
	demand(file != NULL, path);
	return file;
}

uint8_t *rig_file_read(const char *folder, const char *name, size_t *n)
{
	FILE *file = file_open(folder, name, "rb");
	uint8_t *bytes;
	long end;

	demand(!fseek(file, 0, SEEK_END), name);
	end = ftell(file);
	rewind(file);
	bytes = malloc((size_t)end + 1);
	demand(bytes && fread(bytes, 1, (size_t)end, file) == (size_t)end, name);
	fclose(file);
	*n = (size_t)end;
	return bytes;
}

void rig_file_write(const char *folder, const char *name, const uint8_t *bytes, size_t n)
{
	FILE *file = file_open(folder, name, "wb");

	demand(fwrite(bytes, 1, n, file) == n && !fclose(file), name);
}

bool rig_file_exists(const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}
