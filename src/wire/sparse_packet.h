/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of the sparse engine: kinds, flags, payloads, and the arithmetic of pages and blocks that
 * both ends do alike. docs/wire/sparse.md describes them. Pure, and shared with BPF.
 */
#ifndef TRIB_WIRE_SPARSE_PACKET_H
#define TRIB_WIRE_SPARSE_PACKET_H

#include "wire/packet.h"

/* What a packet is: `op`. The answer has the same kind. */
enum sparse_kind {
	SPARSE_SETUP,   /* server: the form of rows */
	SPARSE_PUSH,    /* worker: rows to add */
	SPARSE_PULL,    /* worker: wants values of rows */
	SPARSE_FREEZE,  /* server: the banks change places */
	SPARSE_READ,    /* server: wants a page of the frozen bank */
	SPARSE_RELEASE, /* server: the frozen bank is in the log, clear it */
	SPARSE_WRITE,   /* server: values for workers */
	SPARSE_NEWS,    /* aggregator: unasked */
	SPARSE_KINDS_END,
};

/* Bits of `from`. */
enum sparse_flag {
	SPARSE_URGENT = 1,  /* PUSH: the sender waits. NEWS to the server: freeze soon */
	SPARSE_VOID = 2,    /* PUSH: no rows; it fills the place of a packet that was refused */
	SPARSE_REFUSED = 4, /* in an answer: it was not done; `to` says why */
};

/* Why a packet was refused: `to` of the answer. */
enum sparse_refusal {
	SPARSE_UNREADY = 1,     /* no SETUP yet */
	SPARSE_OTHER_MAP = 2,   /* `scale` is the present generation */
	SPARSE_FULL = 3,        /* a block has as many addends as fit: a FREEZE helps */
	SPARSE_TOO_FAR = 4,     /* the sequence number is beyond the window */
	SPARSE_OTHER_EPOCH = 5, /* `pos` is the present epoch */
	SPARSE_BAD = 6,         /* the packet has another form */
	SPARSE_FROZEN = 7,      /* the only bank is frozen: a RELEASE helps */
};

/* What the cells of an aggregator are for: bits of `layout`. */
enum sparse_layout {
	SPARSE_VALUES = 1,   /* values are kept for PULL */
	SPARSE_ONE_BANK = 2, /* while the bank is frozen no rows are added; else there are two */
};

/* How values are added. */
enum sparse_sums {
	SPARSE_FIXED, /* 32-bit integers */
	SPARSE_TABLE, /* floats, by table look-up */
	SPARSE_SUMS_END,
};

#define SPARSE_ROWS_MAX 65536u   /* row numbers have 16 bits */
#define SPARSE_BLOCK_ROWS 64u    /* rows of a block, at most: their bits fit a word */
#define SPARSE_WINDOW 256u       /* sequence numbers from `low` on that a record tells apart */
#define SPARSE_LARGEST (1 << 21) /* magnitude of an integer in a PUSH */
#define SPARSE_ADDENDS 900u      /* packets in a block; then a PUSH is refused */

/*
 * Values of a packet never overflow a sum. The room of a block is looked at before rows are added,
 * so each of the other children may have added one more packet.
 */
_Static_assert((SPARSE_ADDENDS + WIRE_CHILDREN_MAX) * (uint64_t)SPARSE_LARGEST <= INT32_MAX,
               "a sum fits 32 bits");

/* The payload of SETUP. */
struct __attribute__((may_alias)) sparse_setup {
	uint32_t width; /* values in a row */
	uint32_t rows;
	uint32_t kind;       /* enum sparse_sums */
	uint32_t layout;     /* bits of enum sparse_layout */
	uint32_t generation; /* of the map, modulo 2^16 */
	uint32_t unused[3];
};

/* Which packets of a child are in sums. */
struct __attribute__((may_alias)) sparse_record {
	uint64_t low;     /* every packet with a lower sequence number is in the sums */
	uint64_t seen[4]; /* bit i: packet `low` + i is in the sums; bit 0 is never set */
	uint64_t durable; /* packets below are in a sum that was released */
};

/* The payload of PUSH, PULL and its answer begins with this. Row numbers and values follow. */
struct __attribute__((may_alias)) sparse_rows {
	uint16_t n;
	uint16_t width;
	uint32_t unused;
};

_Static_assert(sizeof(struct sparse_setup) == 32, "setup");
_Static_assert(sizeof(struct sparse_record) == 48, "record");
_Static_assert(sizeof(struct sparse_rows) == 8, "rows");

typedef uint16_t __attribute__((may_alias)) sparse_number;
typedef uint32_t __attribute__((may_alias)) sparse_value;
typedef uint64_t __attribute__((may_alias)) sparse_word;

static inline uint32_t sparse_pad(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

/* Offset of the values behind n row numbers. */
static inline uint32_t sparse_values_at(uint32_t n)
{
	return (uint32_t)sizeof(struct sparse_rows) + sparse_pad(2 * n);
}

/* Bytes of a payload with n rows; with_values 0: of a PULL. */
static inline uint32_t sparse_rows_bytes(uint32_t n, uint32_t width, int with_values)
{
	return sparse_values_at(n) + (with_values ? sparse_pad(4 * n * width) : 0);
}

/* How many rows with their values fit a payload. */
static inline uint32_t sparse_rows_fit(uint32_t payload, uint32_t width)
{
	uint32_t n = payload < 8 || width > payload ? 0 : (payload - 8) / (2 + 4 * width);

	while (n && sparse_rows_bytes(n, width, 1) > payload)
		n--;
	return n;
}

static inline sparse_number *sparse_numbers(void *payload)
{
	return (sparse_number *)((struct sparse_rows *)payload + 1);
}

static inline sparse_value *sparse_values(void *payload, uint32_t n)
{
	return (sparse_value *)((uint8_t *)payload + sparse_values_at(n));
}

/* Rows in a block. 0: a row does not fit, and cannot be hot. */
static inline uint32_t sparse_per_block(uint32_t payload, uint32_t width)
{
	uint32_t n;

	if (!width || !sparse_rows_fit(payload, width))
		return 0;
	n = (payload - 8) / (4 * width);
	return n < SPARSE_BLOCK_ROWS ? n : SPARSE_BLOCK_ROWS;
}

/* Blocks that so many rows take; 0: a row does not fit. */
static inline uint32_t sparse_blocks(uint32_t rows, uint32_t per_block)
{
	return !per_block ? 0 : (rows + per_block - 1) / per_block;
}

/* Banks of sums that a layout has. */
static inline uint32_t sparse_banks(uint32_t layout)
{
	return layout & SPARSE_ONE_BANK ? 1 : 2;
}

/* The largest number of blocks in a pool of so many cells. */
static inline uint32_t sparse_blocks_max(uint32_t cells, uint32_t layout)
{
	return cells / (sparse_banks(layout) + (layout & SPARSE_VALUES));
}

/* The most rows that a SETUP may name. 0: none can be hot. */
static inline uint32_t sparse_rows_max(uint32_t cells, uint32_t payload, uint32_t width,
                                       uint32_t layout)
{
	uint64_t rows =
		(uint64_t)sparse_blocks_max(cells, layout) * sparse_per_block(payload, width);

	return rows < SPARSE_ROWS_MAX ? (uint32_t)rows : SPARSE_ROWS_MAX;
}

/* ---- pages of READ: blocks, then records, then which blocks are dirty ---- */

static inline uint32_t sparse_page_records(uint32_t payload)
{
	return payload / (uint32_t)sizeof(struct sparse_record);
}

static inline uint32_t sparse_record_pages(uint32_t payload)
{
	uint32_t each = sparse_page_records(payload);

	return (WIRE_CHILDREN_MAX + each - 1) / each;
}

static inline uint32_t sparse_page_bits(uint32_t payload)
{
	return payload / 8 * 64;
}

static inline uint32_t sparse_bit_pages(uint32_t payload, uint32_t blocks)
{
	return (blocks + sparse_page_bits(payload) - 1) / sparse_page_bits(payload);
}

/* All pages. */
static inline uint32_t sparse_pages(uint32_t payload, uint32_t blocks)
{
	return blocks + sparse_record_pages(payload) + sparse_bit_pages(payload, blocks);
}

/* Bytes of the bits of the i-th page of bits. */
static inline uint32_t sparse_bits_bytes(uint32_t payload, uint32_t blocks, uint32_t i)
{
	uint32_t each = sparse_page_bits(payload), left = blocks - i * each;

	return ((left < each ? left : each) + 63) / 64 * 8;
}

/* Bytes of a block's page, or of a WRITE, with so many rows. */
static inline uint32_t sparse_block_bytes(uint32_t rows, uint32_t width)
{
	return 8 + sparse_pad(4 * rows * width);
}

/* Is the packet with this sequence number in the sums? */
static inline int sparse_record_has(const struct sparse_record *record, uint64_t sequence)
{
	uint64_t ahead = sequence - record->low;

	if (sequence < record->low)
		return 1;
	return ahead < SPARSE_WINDOW && record->seen[ahead / 64 & 3] >> ahead % 64 & 1;
}

/*
 * The position of a packet, which its checksum covers: of a PUSH and its answer the whole sequence
 * number, of all other packets `pos`. `near` is a sequence number near the packet's.
 */
static inline uint64_t sparse_position(const struct wire_header *packet, uint64_t near)
{
	return packet->op == SPARSE_PUSH ? wire_widen(packet->pos, near) : packet->pos;
}

#endif
