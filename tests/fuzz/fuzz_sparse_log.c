/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs and snapshots of a shard. Each entry is applied, or refused with a sentence. The checksums
 * would keep most inputs from the parsers, so the entries get right ones if the first byte is odd.
 * Its second bit makes a snapshot of the input, and its third bit gives the head to the fuzzer too.
 */
#include "fuzz.h"
#include "sparse/log/sparse_log.h"
#include "sparse/log/sparse_snapshot.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEALS = 1, SNAPSHOT = 2, WITH_HEAD = 4 };

static FILE *nowhere;

/* Right checksums for entries as far as their lengths are right. */
static void entries_seal(uint8_t *bytes, size_t n, const struct log_file_head *head)
{
	struct entry_place place = { .file = log_head_place(head), .offset = LOG_HEAD_BYTES };

	while (n - place.offset >= ENTRY_HEAD_BYTES) {
		struct entry_head about = entry_head_read(bytes + place.offset, place.offset);

		if (!about.ok || about.bytes > n - place.offset)
			return;
		place.batch = about.batch;
		entry_seal(bytes + place.offset, &place);
		place.offset += about.bytes;
	}
}

/* Whatever was applied: the state can be read. */
static void state_demand(const struct sparse_state *state)
{
	demand(state->n_tables <= SPARSE_TABLES_MAX);
	for (uint32_t i = 0; i < state->n_tables; i++) {
		const struct sparse_store *store = state->tables[i]->store;

		for (uint32_t j = 0; j < sparse_store_rows(store); j++)
			demand(sparse_store_find(store, sparse_store_key(store, j)) == j);
	}
	for (uint32_t i = 1; i < state->n_clients; i++)
		demand(state->clients[i - 1].client < state->clients[i].client);
}

static void log_try(struct log_reader *reader, struct sparse_state *state)
{
	struct sparse_entry entry;
	enum sparse_outcome outcome;
	enum log_read what;

	for (;;) {
		struct sparse_log_visit visit = { reader->name, 1, reader->at, &entry };
		uint64_t before = reader->offset;

		demand(log_reader_next(reader, &entry, &what) == TRIB_OK);
		if (what != LOG_READ_ENTRY)
			break;
		demand(reader->offset > before && reader->offset <= reader->size);
		sparse_log_print(nowhere, &visit, true);
		if (sparse_state_apply(state, &entry, &outcome) != TRIB_OK)
			demand(*trib_last_error());
	}
	demand(what != LOG_READ_DAMAGED || strstr(trib_last_error(), "file"));
}

static void file_try(int fd)
{
	struct log_reader reader;
	struct sparse_state state;
	uint64_t rows = 0;

	sparse_state_begin(&state);
	if (log_reader_open(&reader, fd, "file") != TRIB_OK)
		demand(strstr(trib_last_error(), "file"));
	else if (!reader.head.is_snapshot)
		log_try(&reader, &state);
	else if (sparse_snapshot_read(&reader, &state, &rows) != TRIB_OK)
		demand(strstr(trib_last_error(), "file"));
	state_demand(&state);
	sparse_state_end(&state);
	log_reader_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log_file_head head = { .shards = 1, .number = 1, .identity = 1 };
	size_t from = LOG_HEAD_BYTES, n;
	uint8_t *bytes;
	int fd;

	if (!size)
		return 0;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	head.is_snapshot = data[0] & SNAPSHOT;
	if (data[0] & WITH_HEAD)
		from = 0;
	n = from + size - 1;
	bytes = malloc(n + LOG_HEAD_BYTES);
	demand(bytes && nowhere);
	log_head_encode(&head, bytes);
	memcpy(bytes + from, data + 1, size - 1);
	if (data[0] & SEALS && n >= LOG_HEAD_BYTES && !(data[0] & WITH_HEAD))
		entries_seal(bytes, n, &head);
	fd = memfd_create("log", MFD_CLOEXEC);
	demand(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	free(bytes);
	file_try(fd);
	return 0;
}
