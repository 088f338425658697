/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/wire owns the messages between a worker and a parameter server, on a TCP connection.
 * sparse_message.h is the one place where bytes of a peer become trusted: what message_parse lets
 * through has the length that its fields say, and fields in their ranges.
 *
 * This room must not touch sockets, tables or logs.
 *
 * A message is a header of 24 bytes and a payload. Both are little-endian, and the payload's length
 * is a multiple of 8: if the first message of a stream is aligned, so are all others. A connection
 * serves one table. It begins with HELLO or STATUS.
 *
 *   from the worker     number                   count       payload
 *   HELLO               id of the client         0           struct message_hello
 *   PUSH                1, 2, 3 ... per shard    rows        width; keys; rows
 *   PULL                chosen by the worker     keys        keys
 *   STEP                steps that have ended    0           none
 *   HEAT                0                        keys        keys, then counts (u64)
 *   COUNTS              incarnation              rows        generation, 0 (u32 each), then a byte
 * a row LOST                incarnation              characters  why, a sentence; or none STATUS 0
 * 0           none BYE                 0                        0           none
 *
 *   from the server     number                   count       payload
 *   WELCOME             highest push applied     0           struct message_welcome
 *   REFUSED             0                        characters  a sentence
 *   ACK                 highest push durable     a round     none; see client_hot_acked
 *   ROWS                that of PULL             rows        width, 0 (u32 each); rows
 *   CLOCK               lowest clock             its rank    none
 *   NOTICE              0                        characters  a sentence
 *   HOT                 incarnation              rows        struct message_hot, then keys in order
 *   MAP                 incarnation              rows        generation, 0 (u32 each), then keys
 *   SEALED              incarnation              0           struct message_record
 *   STATUS              0                        characters  JSON, or lines of text
 *   BYE                 0                        0           none
 *
 * A row's values are f32, or f16 with MESSAGE_F16. MESSAGE_F16 in a PULL asks for f16. A server may
 * answer with f32, and does if a value has no finite f16.
 */
#ifndef TRIB_SPARSE_WIRE_SPARSE_MESSAGE_H
#define TRIB_SPARSE_WIRE_SPARSE_MESSAGE_H

#include "base/status.h"
#include "sparse/store/table_options.h"
#include "sparse/wire/byte_buffer.h"

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_MAGIC 0x50535254u /* "TRSP" */
#define MESSAGE_VERSION 3u
#define MESSAGE_HEADER 24u
#define MESSAGE_MAX (8u << 20) /* bytes of a payload */
#define MESSAGE_NAME 64u       /* bytes of a host's name with its 0 */
#define MESSAGE_WORKERS_MAX 16384u
#define MESSAGE_SHARDS_MAX 1024u

enum message_kind {
	MESSAGE_HELLO = 1,
	MESSAGE_WELCOME,
	MESSAGE_REFUSED,
	MESSAGE_PUSH,
	MESSAGE_ACK,
	MESSAGE_PULL,
	MESSAGE_ROWS,
	MESSAGE_STEP,
	MESSAGE_CLOCK,
	MESSAGE_HEAT,
	MESSAGE_NOTICE,
	MESSAGE_HOT,
	MESSAGE_MAP,
	MESSAGE_LOST,
	MESSAGE_SEALED,
	MESSAGE_STATUS,
	MESSAGE_BYE,
	MESSAGE_COUNTS,
	MESSAGE_KINDS,
};

#define MESSAGE_F16 1u     /* PUSH, PULL, ROWS: values of 16 bits */
#define MESSAGE_FOR_NOW 2u /* REFUSED: the worker should try again */
#define MESSAGE_FATAL 4u   /* NOTICE: the job cannot go on */
#define MESSAGE_PLAIN 8u   /* STATUS: lines for people, in place of JSON */
#define MESSAGE_MOVED 16u  /* COUNTS: the rows of this map have become rare */

struct message_header {
	uint32_t magic;
	uint8_t version;
	uint8_t kind;
	uint16_t flags;
	uint32_t bytes; /* of the payload, a multiple of 8 */
	uint32_t count;
	uint64_t number;
};

/* How an aggregator adds hot rows. */
enum message_sums { MESSAGE_SUMS_FIXED, MESSAGE_SUMS_TABLE };
/* May rows be hot? If one worker says no, no rows of the table are. */
enum message_path { MESSAGE_PATH_AUTO, MESSAGE_PATH_SERVERS };

struct message_hello {
	uint64_t cookie;
	uint64_t acknowledged; /* highest push that this shard has acknowledged to this client */
	uint64_t clock;        /* steps that have ended */
	struct sparse_table_options table;
	double largest, timeout_s;
	uint32_t workers, rank;
	uint32_t shard, shards;
	uint32_t is_bounded, staleness;
	uint32_t sums; /* enum message_sums */
	uint32_t job;
	uint32_t path; /* enum message_path */
	uint32_t unused;
	char host[MESSAGE_NAME]; /* where the worker runs, for sentences */
};

struct message_welcome {
	uint32_t table; /* number of the table at this server */
	uint32_t has_aggregators;
	uint64_t server; /* random number of the server's process */
};

#define MESSAGE_ADDRESS 64u

/* How to join the sparse communicator of a table at an aggregator. The incarnation is `number`. */
struct message_hot {
	uint32_t generation, width;
	uint32_t kind, layout; /* as in struct sparse_setup of docs/wire/sparse.md */
	uint32_t job, size;    /* of the communicator; the server is child size - 1 */
	uint64_t cookie, key;
	uint64_t pool_bytes;
	char address[MESSAGE_ADDRESS]; /* HOST:PORT of the aggregator */
};

/* Which packets of this worker are in the server's log, of an incarnation that is sealed. */
struct message_record {
	uint64_t low;
	uint64_t seen[4];
};

/* A message that was checked. Pointers are into the payload, and aligned as the payload is. */
struct message {
	enum message_kind kind;
	uint16_t flags;
	uint32_t count;
	uint64_t number;
	uint32_t width;         /* PUSH, ROWS */
	uint32_t generation;    /* MAP, COUNTS */
	const uint64_t *keys;   /* PUSH, PULL, HEAT, HOT, MAP */
	const uint64_t *counts; /* HEAT */
	const uint8_t *pushes;  /* COUNTS: of each row of the map */
	const void *rows;       /* PUSH, ROWS: f32 or f16 by the flag */
	const char *text; /* REFUSED, NOTICE, LOST, STATUS: `count` characters, no 0 behind them */
	union {
		struct message_hello hello;
		struct message_welcome welcome;
		struct message_hot hot;
		struct message_record record;
	} u;
};

/* What a kind is called in sentences, e.g. "PUSH". */
const char *message_name(enum message_kind kind);

/* Checks the first 24 bytes of a message. */
trib_status message_header_read(const uint8_t *bytes, struct message_header *out);
/* Checks the payload, which is 8-byte aligned. The kinds that carry nothing have no payload. */
trib_status message_parse(const struct message_header *header, const uint8_t *payload,
                          struct message *out);

/*
 * Adds a message to a buffer and returns its payload, zeroed, to be filled. NULL: no memory. The
 * payload's length is rounded up.
 */
uint8_t *message_add(struct byte_buffer *out, const struct message_header *about);
/* Adds a message without a payload. */
bool message_add_short(struct byte_buffer *out, enum message_kind kind, uint64_t number,
                       uint32_t count);
bool message_add_text(struct byte_buffer *out, enum message_kind kind, unsigned flags,
                      const char *text);
bool message_add_lost(struct byte_buffer *out, uint64_t incarnation, const char *why);
bool message_add_hello(struct byte_buffer *out, uint64_t client, const struct message_hello *hello);
bool message_add_welcome(struct byte_buffer *out, uint64_t applied,
                         const struct message_welcome *welcome);
/* Values become f16 if the flag asks for it and all of them can. */
bool message_add_push(struct byte_buffer *out, uint64_t number, unsigned flags,
                      const uint64_t *keys, const float *rows, uint32_t n, uint32_t width);
bool message_add_rows(struct byte_buffer *out, uint64_t number, unsigned flags, const float *rows,
                      uint32_t n, uint32_t width);
bool message_add_pull(struct byte_buffer *out, uint64_t number, unsigned flags,
                      const uint64_t *keys, uint32_t n);
bool message_add_heat(struct byte_buffer *out, const uint64_t *keys, const uint64_t *counts,
                      uint32_t n);
/* Gives the bytes of the first n rows of a map, zeroed, to be filled. NULL: no memory. */
uint8_t *message_add_counts(struct byte_buffer *out, uint64_t incarnation, uint32_t generation,
                            unsigned flags, uint32_t n);
bool message_add_hot(struct byte_buffer *out, uint64_t incarnation, const struct message_hot *hot,
                     const uint64_t *keys, uint32_t n);
bool message_add_map(struct byte_buffer *out, uint64_t incarnation, uint32_t generation,
                     const uint64_t *keys, uint32_t n);
bool message_add_sealed(struct byte_buffer *out, uint64_t incarnation,
                        const struct message_record *record);

/* Value i of the rows of a PUSH or ROWS message as f32. */
void message_values(const struct message *message, float *out, size_t first, size_t n);

/* Most rows of a PUSH and keys of a PULL whose messages stay below `bytes`; at least 1. */
uint32_t message_rows_fit(size_t bytes, uint32_t width);

#endif
