/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/sparse_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 4096u
#define FLOATS_MAX (1u << 18)
#define CLIENTS_MAX 4096u
#define ENTRY_ROOM (4u * FLOATS_MAX + 12u * ROWS_MAX + 4096u)

_Static_assert(FLOATS_MAX > 4 * SPARSE_WIDTH_MAX, "a row has to fit");
_Static_assert(ENTRY_ROOM > CLIENTS_MAX * sizeof(struct sparse_client) + 4096, "clients fit");
_Static_assert(ENTRY_ROOM > SPARSE_RECORDS_MAX * sizeof(struct applied_set) + 4096, "records fit");

struct snapshot_room {
	uint64_t keys[ROWS_MAX];
	uint32_t heats[ROWS_MAX];
	float floats[FLOATS_MAX];
	uint64_t bytes[ENTRY_ROOM / 8];
};

struct snapshot_room *snapshot_room_make(void)
{
	return malloc(sizeof(struct snapshot_room));
}

void snapshot_room_free(struct snapshot_room *room)
{
	free(room);
}

/* ---- writing ---- */

struct writer {
	const struct log_folder *folder;
	struct snapshot_room *room;
	int fd;
	uint64_t place, offset;
	uint32_t entries;
};

static trib_status bytes_write(const struct writer *out, const uint8_t *bytes, size_t n)
{
	if (!log_bytes_write(out->fd, bytes, n, out->offset))
		return status_fail_errno("cannot write a snapshot in %s", out->folder->path);
	return TRIB_OK;
}

static trib_status entry_write(struct writer *out, const struct sparse_entry *entry)
{
	struct entry_place place = { out->place, out->offset, out->offset };
	uint8_t *bytes = (uint8_t *)out->room->bytes;
	size_t n = entry_bytes(entry);
	trib_status status;

	entry_encode(entry, bytes);
	entry_seal(bytes, &place);
	status = bytes_write(out, bytes, n);
	out->offset += n;
	out->entries++;
	return status;
}

static trib_status table_write(struct writer *out, const struct sparse_table *table,
                               uint32_t number)
{
	struct sparse_entry entry = {
		.kind = SPARSE_ENTRY_TABLE,
		.table = number,
		.options = table->options,
	};

	return entry_write(out, &entry);
}

static trib_status incarnations_write(struct writer *out, const struct sparse_table *table,
                                      uint32_t number)
{
	uint32_t kept = SPARSE_INCARNATIONS_KEPT;
	trib_status status = TRIB_OK;

	for (uint32_t i = table->last < kept ? 1 : table->last - kept + 1;
	     status == TRIB_OK && i && i <= table->last; i++) {
		const struct sparse_incarnation *from = sparse_table_incarnation(table, i);
		struct sparse_entry entry = {
			.kind = SPARSE_ENTRY_INCARNATION,
			.table = number,
			.incarnation = i,
		};

		if (!from)
			continue;
		entry.is_sealed = from->is_sealed;
		entry.epoch = from->epoch;
		entry.children = from->children;
		entry.records = from->records;
		status = entry_write(out, &entry);
	}
	return status;
}

static trib_status rows_write(struct writer *out, const struct sparse_table *table, uint32_t number)
{
	uint32_t width = sparse_store_floats_per_row(table->store);
	uint32_t most = FLOATS_MAX / width < ROWS_MAX ? FLOATS_MAX / width : ROWS_MAX;
	uint32_t rows = sparse_store_rows(table->store);
	struct snapshot_room *room = out->room;
	trib_status status = TRIB_OK;

	for (uint32_t first = 0, n; status == TRIB_OK && first < rows; first += n) {
		struct sparse_entry entry = {
			.kind = SPARSE_ENTRY_ROWS,
			.table = number,
			.width = width,
			.keys = room->keys,
			.heats = room->heats,
			.rows = room->floats,
		};

		n = rows - first < most ? rows - first : most;
		entry.n = n;
		for (uint32_t i = 0; i < n; i++) {
			room->keys[i] = sparse_store_key(table->store, first + i);
			room->heats[i] = sparse_store_heat(table->store, first + i);
			memcpy(&room->floats[(size_t)i * width],
			       sparse_store_floats(table->store, first + i), width * sizeof(float));
		}
		status = entry_write(out, &entry);
	}
	return status;
}

static trib_status clients_write(struct writer *out, const struct sparse_state *state)
{
	trib_status status = TRIB_OK;

	for (uint32_t first = 0, n; status == TRIB_OK && first < state->n_clients; first += n) {
		uint32_t left = state->n_clients - first;
		struct sparse_entry entry = {
			.kind = SPARSE_ENTRY_CLIENTS,
			.clients = &state->clients[first],
		};

		n = left < CLIENTS_MAX ? left : CLIENTS_MAX;
		entry.n = n;
		status = entry_write(out, &entry);
	}
	return status;
}

static trib_status state_write(struct writer *out, const struct sparse_state *state)
{
	struct sparse_entry end = { .kind = SPARSE_ENTRY_END };
	trib_status status = TRIB_OK;

	for (uint32_t i = 0; status == TRIB_OK && i < state->n_tables; i++) {
		status = table_write(out, state->tables[i], i);
		if (status == TRIB_OK)
			status = incarnations_write(out, state->tables[i], i);
		if (status == TRIB_OK)
			status = rows_write(out, state->tables[i], i);
	}
	if (status == TRIB_OK)
		status = clients_write(out, state);
	end.n = out->entries;
	return status == TRIB_OK ? entry_write(out, &end) : status;
}

static trib_status file_write(struct writer *out, const struct log_file_head *head,
                              const struct sparse_state *state)
{
	uint8_t bytes[LOG_HEAD_BYTES];
	trib_status status;

	log_head_encode(head, bytes);
	status = bytes_write(out, bytes, sizeof(bytes));
	out->offset = sizeof(bytes);
	if (status == TRIB_OK)
		status = state_write(out, state);
	if (status == TRIB_OK && fsync(out->fd) < 0)
		status = status_fail_errno("cannot write a snapshot in %s", out->folder->path);
	return status;
}

trib_status sparse_snapshot_write(const struct log_folder *folder, const struct log_file_head *head,
                                  const struct sparse_state *state, struct snapshot_room *room)
{
	struct writer out = { .folder = folder, .room = room, .place = log_head_place(head) };
	char beside[LOG_NAME_ROOM];
	trib_status status;

	log_folder_name(beside, true, head->number, ".new");
	out.fd = openat(folder->fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out.fd < 0)
		return status_fail_errno("cannot write %s/%s", folder->path, beside);
	status = file_write(&out, head, state);
	close(out.fd);
	if (status == TRIB_OK)
		return log_folder_publish(folder, true, head->number);
	unlinkat(folder->fd, beside, 0);
	return status;
}

/* ---- reading ---- */

static trib_status snapshot_fail(const struct log_reader *reader, trib_status status,
                                 const char *why)
{
	return status_fail(status, "%s at %" PRIu64 ": %s", reader->name, reader->at, why);
}

trib_status sparse_snapshot_read(struct log_reader *reader, struct sparse_state *state,
                                 uint64_t *rows)
{
	uint32_t entries = 0;

	for (;; entries++) {
		struct sparse_entry entry;
		enum log_read what;
		trib_status status = log_reader_next(reader, &entry, &what);

		if (status != TRIB_OK)
			return status;
		if (what != LOG_READ_ENTRY) {
			reader->at = reader->offset;
			return snapshot_fail(reader, TRIB_ERR_ARGUMENT,
			                     what == LOG_READ_END
			                             ? "the end of the snapshot is missing"
			                             : "the snapshot is damaged");
		}
		if (entry.kind == SPARSE_ENTRY_END)
			return entry.n == entries && reader->offset == reader->size
			               ? TRIB_OK
			               : snapshot_fail(reader, TRIB_ERR_ARGUMENT,
			                               "entries of the snapshot are missing");
		status = sparse_state_restore(state, &entry);
		if (status != TRIB_OK)
			return snapshot_fail(reader, status, trib_last_error());
		*rows += entry.kind == SPARSE_ENTRY_ROWS ? entry.n : 0;
	}
}
