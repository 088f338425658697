/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/data owns the way from a data set to the updates that training on it causes: which rows
 * each record touches. It reads files through glm/text. It must not know servers or workers.
 *
 *  - update_data.h: records and counts; a file is read, plain or compressed with gzip or xz.
 *  - update_text.h: one line of text.
 *  - hot_study.h: what the updates say about hot rows.
 *
 * Keys: a user is its number, an item is 2^32 + its number, a word is a hash of its letters.
 */
#ifndef TRIB_SPARSE_UPDATE_DATA_H
#define TRIB_SPARSE_UPDATE_DATA_H

#include "base/status.h"
#include "sparse/heat/heat.h"
#include "sparse/heat/key_index.h"

enum update_format {
	UPDATES_AUTO,
	UPDATES_LISTS,  /* "user item item ..." */
	UPDATES_PAIRS,  /* "user item", and what may follow is ignored */
	UPDATES_TEXT,   /* words */
	UPDATES_COUNTS, /* "word count" */
};

/* Which rows of a pair of user and item count. */
enum update_rows { UPDATES_BOTH, UPDATES_ITEMS, UPDATES_USERS };

/* Begin with zeros, but for format and rows. */
struct update_data {
	enum update_format format;
	enum update_rows rows;
	struct key_index index;
	uint64_t *counts; /* [number of the key] */
	uint32_t counts_room;
	uint64_t total;       /* of all counts */
	unsigned per_record;  /* updates of a record: 2 for user and item, else 1 */
	uint32_t *updates;    /* numbers of keys, by record; none with UPDATES_COUNTS */
	uint32_t *groups;     /* [record]: its line of text, or its user */
	size_t records, room; /* a pair, or a word */
	uint64_t lines;       /* that were read */
};

/*
 * Adds the records of a file; "-" is standard input. With UPDATES_AUTO the first file decides the
 * format. The error names file and line.
 */
trib_status update_data_read(struct update_data *data, const char *path);
void update_data_free(struct update_data *data);

/* All keys with their counts, ranked; the caller frees them. NULL: no memory. */
struct heat_key *update_data_rank(const struct update_data *data, const uint64_t *counts,
                                  size_t *n);

/* ---- for update_text.c ---- */

/* A record: two keys, or one. */
trib_status update_data_record(struct update_data *data, const uint64_t *keys, unsigned n,
                               uint32_t group);
trib_status update_data_count(struct update_data *data, uint64_t key, uint64_t count);

#endif
