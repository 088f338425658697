/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/log_file.h"

#include "sparse/log/crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION 2u
#define WINDOW_BYTES (1u << 20)

static const char log_magic[8] = "TRIBSPL\n";
static const char snapshot_magic[8] = "TRIBSPS\n";

struct head_body {
	char magic[8];
	uint32_t version, shard, shards, unused;
	uint64_t number, identity;
	uint32_t reserved[5];
	uint32_t sum;
};

_Static_assert(sizeof(struct head_body) == LOG_HEAD_BYTES, "the layout is that of the file");

/* ---- heads ---- */

void log_head_encode(const struct log_file_head *head, uint8_t bytes[LOG_HEAD_BYTES])
{
	struct head_body body = {
		.version = VERSION,
		.shard = head->shard,
		.shards = head->shards,
		.number = head->number,
		.identity = head->identity,
	};

	memcpy(body.magic, head->is_snapshot ? snapshot_magic : log_magic, sizeof(body.magic));
	body.sum = crc32c(0, &body, offsetof(struct head_body, sum));
	memcpy(bytes, &body, sizeof(body));
}

static trib_status log_head_parse(const uint8_t *bytes, size_t n, struct log_file_head *head)
{
	struct head_body body;
	bool is_log, is_snapshot;

	*head = (struct log_file_head){ 0 };
	if (n < sizeof(body))
		return status_fail(TRIB_ERR_ARGUMENT, "it has no head");
	memcpy(&body, bytes, sizeof(body));
	is_log = !memcmp(body.magic, log_magic, sizeof(body.magic));
	is_snapshot = !memcmp(body.magic, snapshot_magic, sizeof(body.magic));
	if (!is_log && !is_snapshot)
		return status_fail(TRIB_ERR_ARGUMENT, "it is no log or snapshot of a shard");
	if (body.version != VERSION)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "it has version %u, and this program knows version %u",
		                   body.version, VERSION);
	if (body.sum != crc32c(0, &body, offsetof(struct head_body, sum)))
		return status_fail(TRIB_ERR_ARGUMENT, "its head is damaged");
	*head = (struct log_file_head){
		.is_snapshot = is_snapshot,
		.shard = body.shard,
		.shards = body.shards,
		.number = body.number,
		.identity = body.identity,
	};
	return TRIB_OK;
}

uint64_t log_head_place(const struct log_file_head *head)
{
	return head->identity + 2 * head->number + head->is_snapshot;
}

/* ---- reading ---- */

static trib_status bytes_read(const struct log_reader *reader, uint8_t *to, size_t n, uint64_t from)
{
	while (n) {
		ssize_t got = pread(reader->fd, to, n, (off_t)from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return status_fail_errno("cannot read %s at %" PRIu64, reader->name, from);
		if (!got)
			return status_fail(TRIB_ERR_SYSTEM, "%s became shorter while it was read",
			                   reader->name);
		to += got;
		from += (uint64_t)got;
		n -= (size_t)got;
	}
	return TRIB_OK;
}

bool log_bytes_write(int fd, const uint8_t *bytes, size_t n, uint64_t offset)
{
	for (size_t at = 0; at < n;) {
		ssize_t written = pwrite(fd, bytes + at, n - at, (off_t)(offset + at));

		if (written < 0 && errno == EINTR)
			continue;
		if (!written)
			errno = ENOSPC;
		if (written <= 0)
			return false;
		at += (size_t)written;
	}
	return true;
}

static trib_status window_grow(struct log_reader *reader, size_t n)
{
	uint8_t *window;

	if (reader->window && n <= reader->window_room)
		return TRIB_OK;
	n = n < WINDOW_BYTES ? WINDOW_BYTES : n;
	window = malloc(n);
	if (!window)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to read %s", reader->name);
	free(reader->window);
	reader->window = window;
	reader->window_room = n;
	reader->window_bytes = 0;
	return TRIB_OK;
}

/* The file's `n` bytes from `from` on, which it has. `from` and the address are multiples of 8. */
static trib_status window_get(struct log_reader *reader, uint64_t from, size_t n,
                              const uint8_t **bytes)
{
	uint64_t left = reader->size - from;
	trib_status status = window_grow(reader, n);

	if (status != TRIB_OK)
		return status;
	if (from < reader->window_at || n > reader->window_bytes ||
	    from - reader->window_at > reader->window_bytes - n) {
		reader->window_at = from;
		reader->window_bytes = left < reader->window_room ? left : reader->window_room;
		status = bytes_read(reader, reader->window, reader->window_bytes, from);
		if (status != TRIB_OK)
			reader->window_bytes = 0;
	}
	*bytes = reader->window + (from - reader->window_at);
	return status;
}

static trib_status head_read(struct log_reader *reader)
{
	const uint8_t *bytes = NULL;
	size_t n = reader->size < LOG_HEAD_BYTES ? reader->size : LOG_HEAD_BYTES;
	trib_status status = window_get(reader, 0, n, &bytes);

	if (status != TRIB_OK || log_head_parse(bytes, n, &reader->head) == TRIB_OK)
		return status;
	return status_fail(TRIB_ERR_ARGUMENT, "%s: %s", reader->name, trib_last_error());
}

trib_status log_reader_open(struct log_reader *reader, int fd, const char *name)
{
	struct stat about;

	*reader = (struct log_reader){ .fd = fd, .offset = LOG_HEAD_BYTES };
	snprintf(reader->name, sizeof(reader->name), "%s", name);
	if (fstat(fd, &about) < 0)
		return status_fail_errno("cannot read %s", name);
	reader->size = (uint64_t)about.st_size;
	return head_read(reader);
}

void log_reader_close(struct log_reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->window);
	*reader = (struct log_reader){ .fd = -1 };
}

/*
 * The bytes of a valid entry at `offset`. *bytes is NULL: there is none. With `after`, only entries
 * of a batch that begins behind it are looked for.
 */
static trib_status entry_look(struct log_reader *reader, uint64_t offset, uint64_t after,
                              const uint8_t **bytes, struct entry_head *head)
{
	struct entry_place place = { .file = log_head_place(&reader->head), .offset = offset };
	trib_status status;

	*bytes = NULL;
	*head = (struct entry_head){ 0 };
	if (reader->size - offset < ENTRY_HEAD_BYTES)
		return TRIB_OK;
	status = window_get(reader, offset, ENTRY_HEAD_BYTES, bytes);
	if (status != TRIB_OK)
		return status;
	*head = entry_head_read(*bytes, offset);
	head->ok &= head->bytes <= reader->size - offset && head->batch >= after;
	if (!head->ok) {
		*bytes = NULL;
		return TRIB_OK;
	}
	status = window_get(reader, offset, head->bytes, bytes);
	if (status == TRIB_OK && !entry_check(*bytes, head, &place))
		*bytes = NULL;
	return status;
}

/*
 * Bytes at `offset` are no entry. A crash leaves such bytes in the last batch only. So if there is
 * an entry of a later batch, the file was damaged. The search has an end also in a file that was
 * made to look like entries everywhere: then it says "damaged", and nothing is cut off.
 */
static trib_status tail_judge(struct log_reader *reader, enum log_read *result)
{
	uint64_t work = 0, limit = 4 * (reader->size - reader->offset) + WINDOW_BYTES;

	*result = LOG_READ_TORN;
	for (uint64_t at = reader->offset + 8; at < reader->size; at += 8) {
		struct entry_head head;
		const uint8_t *bytes;
		trib_status status = entry_look(reader, at, reader->offset + 8, &bytes, &head);

		if (status != TRIB_OK)
			return status;
		work += head.ok ? head.bytes : 0;
		if (bytes || work > limit) {
			*result = LOG_READ_DAMAGED;
			status_fail(TRIB_ERR_ARGUMENT,
			            "%s is damaged at %" PRIu64
			            ": the checksum there is wrong, and there are entries behind",
			            reader->name, reader->offset);
			return TRIB_OK;
		}
	}
	return TRIB_OK;
}

trib_status log_reader_next(struct log_reader *reader, struct sparse_entry *entry,
                            enum log_read *result)
{
	struct entry_head head;
	const uint8_t *bytes;
	trib_status status;

	*result = LOG_READ_END;
	if (reader->offset >= reader->size)
		return TRIB_OK;
	status = entry_look(reader, reader->offset, 0, &bytes, &head);
	if (status != TRIB_OK)
		return status;
	if (!bytes)
		return tail_judge(reader, result);
	if (entry_parse(bytes, head.bytes, entry) != TRIB_OK) {
		status_fail(TRIB_ERR_ARGUMENT, "%s at %" PRIu64 ": %s", reader->name,
		            reader->offset, trib_last_error());
		*result = LOG_READ_DAMAGED;
		return TRIB_OK;
	}
	*result = LOG_READ_ENTRY;
	reader->at = reader->offset;
	reader->offset += head.bytes;
	return TRIB_OK;
}
