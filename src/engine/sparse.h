/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse: sums of rows by number, for training that touches few rows in each step (Libra). Pure,
 * like dense.h. sparse_engine.c is its entry in the table of engines; the XDP plane's program uses
 * the same functions. wire/sparse_packet.h has its packets. It must not know sockets, clocks, keys
 * of rows or optimizers.
 *
 * Workers push rows. The parameter server is the highest child. There are two banks of sums:
 * workers add to the live one, and the server reads the frozen one. With SPARSE_ONE_BANK there is
 * one, for twice the rows: from FREEZE to RELEASE no rows are added to it.
 *
 * Invariants:
 * 1. A packet (child, sequence number) is in the sums at most once. Its bit in the child's record
 * is set while its rows are added, under the child's lock. The record is looked at before the
 *    generation: a repeat of a packet that was added is acknowledged, and never refused.
 * 2. FREEZE holds the locks of all children while the banks change places, the records are copied
 *    and the generation is set. So a packet is wholly in one bank, and the frozen records describe
 *    exactly the frozen bank and all banks before it.
 * 3. FREEZE is done only if the other bank was released. A repeat of the present epoch's FREEZE or
 *    RELEASE has the same answer, and changes nothing.
 * 4. All rows of a packet are added, or none. Row numbers, lengths, magnitudes and the room of
 * every block are looked at before the first row is added. Row numbers of a packet ascend, so a row
 *    occurs once. Meanwhile other children may add to the same block, each one packet: the limits
 *    leave room for that, so a sum cannot overflow.
 * 5. Generations only go forward. So a packet that was refused for its generation is never added
 *    later, whatever copies of it are in flight.
 * 6. Nothing expires: a child repeats a packet until it has the answer.
 *
 * Locks: that of a child, then that of one block. FREEZE takes those of all children, the lowest
 * first. The server's packets are taken one at a time: a lane has one thread in the daemon, and the
 * program in the kernel leaves them to it.
 *
 * Cells: the pool has a part of `limit` cells for each bank, and one for values that workers pull,
 * if there are any. Cell k of a part is that of block k. The live record of child k is in cell k,
 * and its frozen record in cell limit + k; with one bank, in cell limit / 2 + k. So `limit` is at
 * least the number of children, or twice that.
 */
#ifndef TRIB_ENGINE_SPARSE_H
#define TRIB_ENGINE_SPARSE_H

#include "engine/engines.h"
#include "wire/sparse_packet.h"

/* From so many packets in a block on, the server is asked to freeze. */
#define SPARSE_ADDENDS_MANY (SPARSE_ADDENDS / 2)

/* Laid out as struct engine_lane. It changes only under the locks of all children. */
struct __attribute__((may_alias)) sparse_lane {
	uint64_t members; /* children, as bits; the highest is the server */
	uint64_t left;
	uint32_t cells;
	uint32_t payload;
	struct sparse_setup setup; /* width 0: no SETUP yet */
	uint32_t per_block;        /* rows in a block */
	uint32_t blocks;           /* that the rows take */
	uint32_t limit;            /* see above */
	uint32_t bank;             /* the live one: 0 or 1; 0 if there is one */
	uint32_t epoch;            /* of the last FREEZE; 0: none */
	uint32_t generation;       /* of the map, 16 bits */
	uint32_t is_frozen;        /* 1: the frozen bank was not released yet */
	uint32_t told;             /* 1: since the last FREEZE the server was asked to freeze */
};

_Static_assert(sizeof(struct sparse_lane) <= sizeof(struct engine_lane) &&
                       __builtin_offsetof(struct sparse_lane, cells) ==
                               __builtin_offsetof(struct engine_lane, cells) &&
                       __builtin_offsetof(struct sparse_lane, setup) ==
                               __builtin_offsetof(struct engine_lane, own),
               "a sparse_lane is an engine_lane");

/* What a cell says beside its sums. Which meaning a field has depends on the cell's place. */
struct __attribute__((may_alias)) sparse_cell {
	uint64_t low; /* a child's record, see struct sparse_record */
	uint64_t seen[4];
	uint64_t dirty;   /* rows that have a sum; in a cell of values: rows that have a value */
	uint32_t addends; /* packets in the sums; in a cell of values: their generation */
	uint32_t more;    /* cell k: child k's lock. In the cell of its frozen record: low half of
	                     what is durable. In a cell of values: the number of the last WRITE */
};

_Static_assert(sizeof(struct sparse_cell) <= ENGINE_CELL_WORDS * 8, "a sparse_cell fits a cell");

static inline int sparse_knows(const struct sparse_lane *lane, unsigned child)
{
	return child < WIRE_CHILDREN_MAX && lane->members & child_bit(child);
}

/* Is this member the parameter server? */
static inline int sparse_is_server(const struct sparse_lane *lane, unsigned child)
{
	return !(lane->members >> (child & 63) >> 1);
}

/* ---- records ---- */

enum sparse_place {
	SPARSE_FRESH,  /* not in the sums */
	SPARSE_SEEN,   /* in the sums */
	SPARSE_BEYOND, /* above the window */
};

static inline enum sparse_place sparse_find(const struct sparse_cell *record, uint64_t sequence)
{
	uint64_t ahead = sequence - record->low;

	if (sequence < record->low)
		return SPARSE_SEEN;
	if (ahead >= SPARSE_WINDOW)
		return SPARSE_BEYOND;
	return record->seen[ahead / 64 & 3] >> ahead % 64 & 1 ? SPARSE_SEEN : SPARSE_FRESH;
}

/*
 * What a packet counts as if its number is in the record. A worker that lacks the answer repeats
 * the rows. A repeat without rows asks what is durable, so it does not show that an answer was
 * lost.
 */
static inline enum engine_verdict sparse_repeat(const struct wire_header *packet)
{
	if (!(packet->flags & WIRE_RESENT))
		return ENGINE_DUPLICATE;
	return packet->from & SPARSE_VOID ? ENGINE_ACK : ENGINE_FINISHED;
}

/*
 * Should a repeat of this packet make the server freeze? Not if the packet is durable, or is in the
 * bank that the server reads now.
 */
static inline int sparse_needs_freeze(const struct sparse_lane *lane,
                                      const struct sparse_cell *frozen, uint64_t sequence)
{
	return sequence >= wire_widen(frozen->more, frozen->low) &&
	       !(lane->is_frozen && sparse_find(frozen, sequence) == SPARSE_SEEN);
}

/* How many of the lowest bits are set, without an instruction that BPF lacks. */
static inline uint32_t sparse_ones(uint64_t bits)
{
	bits &= ~(bits + 1); /* nothing above the first 0 */
	bits -= bits >> 1 & 0x5555555555555555ull;
	bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (uint32_t)(bits * 0x0101010101010101ull >> 56);
}

/* Records the packet, which sparse_find() called fresh. Needs the child's lock. */
static inline void sparse_enter(struct sparse_cell *record, uint64_t sequence)
{
	uint64_t ahead = sequence - record->low;
	uint32_t ones;

	record->seen[ahead / 64 & 3] |= 1ull << ahead % 64;
	for (int i = 0; i < 4 && record->seen[0] == ~0ull; i++) {
		record->seen[0] = record->seen[1];
		record->seen[1] = record->seen[2];
		record->seen[2] = record->seen[3];
		record->seen[3] = 0;
		record->low += 64;
	}
	ones = sparse_ones(record->seen[0]);
	if (!ones)
		return;
	record->seen[0] = record->seen[0] >> ones | record->seen[1] << (64 - ones);
	record->seen[1] = record->seen[1] >> ones | record->seen[2] << (64 - ones);
	record->seen[2] = record->seen[2] >> ones | record->seen[3] << (64 - ones);
	record->seen[3] >>= ones;
	record->low += ones;
}

/* ---- rows ---- */

/* Is the integer small enough for a PUSH? */
static inline int sparse_is_small(uint32_t value)
{
	return value + (uint32_t)SPARSE_LARGEST <= 2 * (uint32_t)SPARSE_LARGEST;
}

/* The cell of a block in a bank, or in the part behind the last bank, which has values. */
static inline uint32_t sparse_index(const struct sparse_lane *lane, uint32_t bank, uint32_t block)
{
	return bank * lane->limit + block;
}

/* The bank that the server reads. */
static inline uint32_t sparse_frozen_bank(const struct sparse_lane *lane)
{
	return lane->setup.layout & SPARSE_ONE_BANK ? 0 : !lane->bank;
}

/* Can no rows be added now? Needs a child's lock. */
static inline int sparse_is_closed(const struct sparse_lane *lane)
{
	return lane->is_frozen && lane->setup.layout & SPARSE_ONE_BANK;
}

/* The cell of a child's frozen record. */
static inline uint32_t sparse_frozen_record(const struct sparse_lane *lane, unsigned child)
{
	return (lane->setup.layout & SPARSE_ONE_BANK ? lane->limit / 2 : lane->limit) + child;
}

/* Does a packet with this generation use the present map? */
static inline int sparse_is_current(const struct sparse_lane *lane,
                                    const struct wire_header *packet)
{
	return packet->scale == (uint16_t)lane->generation;
}

#endif
