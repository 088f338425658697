/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border between engines and planes. An engine decides what an aggregator does with the DATA
 * packets of a communicator: what is added, and what leaves for whom. A JOIN names the engine, and
 * engine_table.h finds it. Planes carry packets and know nothing of an engine but this header.
 *
 * Engines are pure: no socket, no clock, no allocation. They know children, numbered 0 to 63, and
 * not ranks. The memory of a lane and of its cells belongs to the plane, and may be shared with a
 * program in the kernel. That program is the engine's too (`program`), built on the same inline
 * functions.
 *
 * A plane may run an engine on a device that has limits and memory of its own. Then it has an entry
 * of its own for the engine, with the optional members below.
 *
 * An engine either has the functions below, or its lanes are streams (`streams`): bulk data, whose
 * sums may go up a tree and whose results leave straight from the cells. Dense is the one of them.
 */
#ifndef TRIB_ENGINE_ENGINES_H
#define TRIB_ENGINE_ENGINES_H

#include "wire/packet.h"

#define ENGINE_DENSE 0u
#define ENGINE_SLOT 1u
#define ENGINE_SPARSE 2u
#define ENGINES_MAX 8u /* numbers are below */

#define ENGINE_CELLS_MIN 2u
#define ENGINE_CELLS_MAX 65536u
#define ENGINE_LANE_WORDS 12u
#define ENGINE_CELL_WORDS 7u

static inline uint64_t child_bit(unsigned child)
{
	return 1ull << (child & 63);
}

/* The state of a lane. */
struct engine_lane {
	uint64_t members;                /* children, as bits */
	uint64_t left;                   /* children that have left, as bits */
	uint32_t cells;                  /* a power of two, unless the engine has any_cells */
	uint32_t payload;                /* the largest payload of a packet, bytes */
	uint64_t own[ENGINE_LANE_WORDS]; /* the engine's */
};

/* A cell. Its lock is held while it is read or changed. */
struct engine_cell {
	uint32_t lock;
	uint32_t sent_at; /* us: when a program in the kernel sent the result; 0: it did not */
	uint64_t own[ENGINE_CELL_WORDS]; /* the engine's */
	uint64_t sum[];                  /* room for the lane's payload */
};

/* A lane with its cells, as a plane holds them. */
struct engine_pool {
	struct engine_lane *lane;
	uint8_t *cells;
	uint64_t step; /* bytes from one cell to the next */
};

/* A packet that has to leave: the header without magic, comm and checksum, then the payload. */
struct engine_packet {
	uint64_t to;    /* children, as bits */
	uint32_t bytes; /* of the packet; 0: nothing leaves */
	uint64_t position;
	_Alignas(8) uint8_t data[WIRE_PACKET_MAX];
};

/* What a cell holds, for messages. */
struct engine_view {
	uint32_t cell;
	uint64_t position;
	uint64_t arrived; /* children, as bits */
	uint32_t bytes;
	uint8_t op;
	uint8_t from; /* if nothing has arrived: the rank that a parent's result is from, or
	                 WIRE_ALL */
};

/* What became of a packet, for counters and errors. */
enum engine_verdict {
	ENGINE_ADDED,                /* it is in a sum that waits for other children */
	ENGINE_COMPLETE,             /* it completed a sum */
	ENGINE_DUPLICATE,            /* it was in the sum already */
	ENGINE_FINISHED,             /* its sum is complete: the sender may lack the result */
	ENGINE_STALE,                /* it is of the past */
	ENGINE_AHEAD,                /* it came too early */
	ENGINE_LOWER,                /* its scale is too low */
	ENGINE_MISMATCH,             /* children disagree on what the operation is */
	ENGINE_STRANGER,             /* the sender is not a member */
	ENGINE_SUMMED,               /* it completed a sum that goes up to a parent */
	ENGINE_COUNTED,              /* the verdicts above are counted one by one */
	ENGINE_ACK = ENGINE_COUNTED, /* it carried no vector */
	ENGINE_REFUSED,              /* the device cannot do it: engine.why says why */
	ENGINE_VERDICTS_END,
};

#define ENGINE_WHY_MAX 256u   /* bytes of a reason */
#define ENGINE_STAGES_MAX 16u /* of a switch */

/* What a switch has counted. Made of uint64_t only, as struct counters. */
struct engine_counts {
	uint64_t packets, passes, recirculations;
	uint64_t refused; /* packets of operations that the switch lacks */
	uint64_t broken;  /* packets that broke a rule of the switch */
};

/* What a lane uses of a switch. */
struct engine_use {
	uint32_t stages;
	uint32_t share[ENGINE_STAGES_MAX]; /* of each stage's memory, in 0.01 % */
};

struct engine {
	const char *name;
	uint8_t number;    /* in JOIN and WELCOME */
	uint8_t any_cells; /* 1: the number of cells need not be a power of two */
	uint8_t layouts;   /* enum sparse_layout: bits that a SETUP may have */
	uint8_t replies;   /* 1: a result goes to the sender alone. 0: to all children */
	uint8_t calls;     /* 1: children are ranks in collectives: their reports say in which */
	uint8_t streams;   /* 1: lanes are streams of fragments, as in dense.h. They have functions
	                      of their own (plane/stream), and the entry has none */
	/* The lane is set up but for `own`, which is zero, as are all cells. 0: no memory. */
	int (*open)(const struct engine_pool *pool);
	/* The 64-bit position of a packet: its checksum covers it. */
	uint64_t (*position)(const struct engine_pool *pool, const struct wire_header *packet);
	/* Takes a DATA packet that was found intact. Up to two packets have to leave. */
	enum engine_verdict (*take)(const struct engine_pool *pool,
	                            const struct wire_header *packet, uint32_t bytes,
	                            struct engine_packet out[2]);
	/* The cell that a packet is for. Only for messages: it takes no lock. */
	struct engine_view (*view)(const struct engine_pool *pool,
	                           const struct wire_header *packet);
	/* Children, as bits, that owe the oldest sum. Only for messages: it takes no lock. */
	uint64_t (*waiting)(const struct engine_pool *pool);
	/* How a lane adds values, in a word for messages; "": not known yet. NULL: packets say it.
	 */
	const char *(*sums)(const struct engine_pool *pool);
	/* The program that does the same in the kernel: an ELF object; NULL: none. */
	const void *(*program)(uint64_t *bytes);

	/* For engines on a device; others leave them NULL. */
	/* Lowers payload and cells to what the device has for so many children. 0: it cannot run
	   the engine, and `why`, of ENGINE_WHY_MAX bytes, is a sentence. */
	int (*fit)(unsigned children, uint32_t *payload, uint32_t *cells, char *why);
	/* Frees what `open` allocated, whether or not it succeeded. */
	void (*close)(const struct engine_pool *pool);
	/* After ENGINE_REFUSED: what the device cannot do, without a full stop. */
	const char *(*why)(const struct engine_pool *pool);
	/* Adds what was counted since the last call. */
	void (*count)(const struct engine_pool *pool, struct engine_counts *to);
	void (*use)(const struct engine_pool *pool, struct engine_use *use);
};

extern const struct engine engine_slot;
extern const struct engine engine_sparse;

static inline struct engine_cell *engine_cell(const struct engine_pool *pool, uint32_t index)
{
	return (struct engine_cell *)(void *)(pool->cells + index * pool->step);
}

/* Bytes of a cell with room for this payload. */
static inline uint64_t engine_cell_bytes(uint32_t payload)
{
	return sizeof(struct engine_cell) + payload;
}

#endif
