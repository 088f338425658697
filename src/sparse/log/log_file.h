/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a shard's folder, a log or a snapshot: its head, and reading its entries. */
#ifndef TRIB_SPARSE_LOG_FILE_H
#define TRIB_SPARSE_LOG_FILE_H

#include "sparse/log/log_entry.h"

#define LOG_HEAD_BYTES 64u

struct log_file_head {
	bool is_snapshot;
	uint32_t shard, shards;
	uint64_t number;
	uint64_t identity; /* of the folder: a random number */
};

void log_head_encode(const struct log_file_head *head, uint8_t bytes[LOG_HEAD_BYTES]);
/* Writes all bytes at the offset. False: errno says why; some of them may be written. */
bool log_bytes_write(int fd, const uint8_t *bytes, size_t n, uint64_t offset);
/* For struct entry_place. */
uint64_t log_head_place(const struct log_file_head *head);

struct log_reader {
	struct log_file_head head;
	int fd;
	char name[64];
	uint64_t size;
	uint64_t offset; /* of the next entry */
	uint64_t at;     /* of the entry that was read last */
	uint8_t *window; /* a part of the file */
	size_t window_room, window_bytes;
	uint64_t window_at;
};

enum log_read {
	LOG_READ_ENTRY,
	LOG_READ_END,
	LOG_READ_TORN,    /* `offset`: the last write was not completed */
	LOG_READ_DAMAGED, /* `offset`: damage before entries that were completed later */
};

/* Reads the head. The reader owns the descriptor, also after an error. */
trib_status log_reader_open(struct log_reader *reader, int fd, const char *name);
void log_reader_close(struct log_reader *reader);

/*
 * The next entry; it is valid until the next call. An error means that the file cannot be read.
 * After LOG_READ_DAMAGED the last error's sentence names file, offset and damage.
 */
trib_status log_reader_next(struct log_reader *reader, struct sparse_entry *entry,
                            enum log_read *result);

#endif
