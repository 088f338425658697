/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of a log, and their bytes. All numbers are little-endian, and all lengths are multiples
 * of 8, so that arrays in an entry are aligned.
 *
 * An entry has a head of 16 bytes and a payload. The checksum (CRC32C) covers head, payload and
 * the entry's place: file, and offset in it. So an entry that was moved is not valid.
 */
#ifndef TRIB_SPARSE_LOG_ENTRY_H
#define TRIB_SPARSE_LOG_ENTRY_H

#include "base/status.h"
#include "sparse/log/applied_set.h"
#include "sparse/store/table_options.h"

#include <stddef.h>

#define ENTRY_HEAD_BYTES 16u
#define ENTRY_BYTES_MAX (64u << 20) /* payload of an entry */
#define SPARSE_RECORDS_MAX 64u

/* The values are those in logs. */
enum sparse_entry_kind {
	SPARSE_ENTRY_TABLE = 1,  /* a table is made: table, options */
	SPARSE_ENTRY_CLIENT = 2, /* a client is a rank of a table from now on, or has left */
	SPARSE_ENTRY_PUSH = 3,   /* gradients of a client */
	SPARSE_ENTRY_OPEN = 4,   /* an incarnation begins, and the one before it is sealed */
	SPARSE_ENTRY_FLUSH = 5,  /* sums of an incarnation */
	SPARSE_ENTRY_SEAL = 6,   /* no flush of this incarnation is applied any more */
	/* Only in snapshots: */
	SPARSE_ENTRY_ROWS = 16,        /* rows with the optimizer's state and heat */
	SPARSE_ENTRY_CLIENTS = 17,     /* clients, and what was applied of them */
	SPARSE_ENTRY_INCARNATION = 18, /* an incarnation with its records */
	SPARSE_ENTRY_END = 19,         /* the last entry: `n` entries are before it */
};

struct sparse_client {
	uint64_t client;
	uint64_t applied;     /* highest sequence number; 0: none */
	uint32_t table, rank; /* it is this rank of the workers of that table */
	uint32_t has_left;    /* 1: it said goodbye, in the last run of the table */
	uint32_t unused;
};

/*
 * An entry in memory. Fields that its kind does not have are zero. Pointers lead into the bytes of
 * an entry that was parsed, or to a caller's arrays.
 */
struct sparse_entry {
	enum sparse_entry_kind kind;
	uint32_t table;                      /* all but CLIENTS and END */
	struct sparse_table_options options; /* TABLE */
	uint64_t client;                     /* CLIENT, PUSH */
	uint32_t rank;                       /* CLIENT */
	bool begins_run;                     /* CLIENT: all of the last run are gone */
	bool has_left;                       /* CLIENT */
	uint64_t sequence;                   /* PUSH; from 1 on, and rising */
	uint32_t incarnation;                /* OPEN, FLUSH, SEAL, INCARNATION; from 1 on */
	bool is_sealed;                      /* INCARNATION */
	uint32_t epoch;                      /* FLUSH, INCARNATION */
	uint32_t heat;                       /* FLUSH: what each row's heat grows by */
	uint32_t children;                   /* OPEN, FLUSH, INCARNATION */
	const struct applied_set *records;   /* FLUSH, INCARNATION: `children` of them */
	uint32_t n;                          /* rows of PUSH, FLUSH and ROWS; clients; entries */
	uint32_t width;                      /* PUSH, FLUSH: of the table; ROWS: floats in a row */
	const uint64_t *keys;                /* PUSH, FLUSH, ROWS: n */
	const uint32_t *heats;               /* ROWS: n */
	const float *rows;                   /* PUSH, FLUSH: gradients; ROWS: values and state */
	const struct sparse_client *clients; /* CLIENTS: n */
};

/* A word for people; "unknown" for other kinds. */
const char *sparse_entry_name(uint32_t kind);

/* The bytes that an entry has, with its head. 0: too many. */
size_t entry_bytes(const struct sparse_entry *entry);

/* Writes an entry of entry_bytes() bytes; `to` is 8-byte aligned. It is not sealed yet. */
void entry_encode(const struct sparse_entry *entry, uint8_t *to);

/* Where an entry lies. */
struct entry_place {
	uint64_t file;   /* of the folder's identity and the file's number */
	uint64_t offset; /* of the entry's head */
	uint64_t batch;  /* of the first entry that was written together with it */
};

/* Completes the head of an entry that has its place now. */
void entry_seal(uint8_t *bytes, const struct entry_place *place);

/* What a head says. `ok`: the head may be one; only entry_check knows. */
struct entry_head {
	bool ok;
	uint32_t kind;
	size_t bytes; /* of the entry, with its head */
	uint64_t batch;
};

/* `bytes`: ENTRY_HEAD_BYTES of them. */
struct entry_head entry_head_read(const uint8_t *bytes, uint64_t offset);
/* True: the checksum of the `head->bytes` bytes is right for this place. */
bool entry_check(const uint8_t *bytes, const struct entry_head *head,
                 const struct entry_place *place);

/*
 * Parses a whole entry of `n` bytes at an address that is a multiple of 8. An error's sentence
 * says what is wrong. Content is checked as far as the entry itself can tell.
 */
trib_status entry_parse(const uint8_t *bytes, size_t n, struct sparse_entry *entry);

#endif
