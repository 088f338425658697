/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pisa_sparse: PUSH of the sparse engine (engine/sparse.h) as a program for the switch of pisa.h,
 * which is Libra_p of the paper. The rest of the engine runs on the processor of the switch
 * (Libra_s): see plane/pisa/pisa_sparse_engine.c. Both together give the same answers, sums and
 * verdicts as engine/sparse_engine.c.
 *
 * Register arrays:
 *
 *   map       generation of the map, which bank is live, and whether the processor wants to judge
 *             each PUSH. The processor writes it
 *   low       of each child's record: its low half, and a bit from 2^31 on. The processor writes it
 *   next      a child has 256 entries: entry i is the next sequence number that is i modulo 256,
 *             less i. So all entries begin as 0
 *   durable   of each child. The processor writes it
 *   sum 0-15  the sums, both banks
 *
 * Rows lie as section 3.4 of the paper has it: heat-based placement. It has m = 16 arrays, and a
 * row of one value. The hottest row is number 0, so row r is in array r mod m. Here a row has
 * `width` values. Arrays form groups of as many as a row needs, rounded up to a power of two, and
 * row r is in group r mod groups. A row of more than 16 values takes several entries in all arrays.
 *
 * A pass adds at most one row in each group. The parser gives it a window of as many rows as there
 * are groups. If two rows of a window are in one group, the packet is recirculated. The passes:
 *
 *   first   the record, the generation and the form of the packet are checked, and the first
 *           window. A packet of one window is entered into the record and added in this pass
 *   check   a later window is checked. With the last one the packet is entered and added
 *   add     the rest of a window, or the window before
 *
 * So a packet of v windows takes 2 v - 1 passes. A window in which a group has k rows takes k - 1
 * more. All of a packet is checked before the first row is added.
 *
 * Sums by table (pisa_float_program.h) are added in passes of their own, two for a row: one reads
 * the sum, and one replaces it. The first of them is enough if the sum was zero. If another packet
 * has changed the sum in between, the row takes one more. So a packet of v windows takes v passes,
 * and then up to two for each window, or for each row of a group. There are 16 adders with 7 tables
 * each, of 408.5 KiB: 448 blocks of 16 KiB, 35 % of the switch.
 *
 * What is different from engine/sparse_engine.c, and why:
 * 1. A window of 256 bits cannot be shifted by a switch. `next` tells whether a packet is new
 *    (compare and swap), and the processor keeps `low`. On a real switch `low` would be late, and
 *    so refuse a packet too early (SPARSE_TOO_FAR), but never add one twice.
 * 2. The processor hears of each packet that was added (a mirror), and counts the packets of each
 *    block. If a block is full, it sets the bit in `map`, and judges each PUSH itself until the
 *    next FREEZE. A real processor is late, so it would have to begin earlier.
 * 3. A row's first addend is not copied but added: RELEASE writes zeros.
 * 4. FREEZE comes between two packets. On a real switch the processor would wait until packets
 *    that are recirculated have passed.
 * 5. A packet that is longer than the lane's payload is refused (SPARSE_BAD).
 *
 * What is not modelled: the parser has no limits. Here it puts row numbers and values of a window
 * side by side, which two header stacks of P4 would do.
 */
#ifndef TRIB_PISA_PISA_SPARSE_H
#define TRIB_PISA_PISA_SPARSE_H

#include "pisa/pisa.h"
#include "pisa/pisa_sparse_program.h"

#define PISA_SPARSE_CHILDREN_MAX 64u
#define PISA_SPARSE_WORDS_MAX 4864u /* of all windows of a packet */

struct pisa_sparse_size {
	uint32_t width, rows;              /* as in struct sparse_setup */
	uint32_t payload;                  /* largest payload of a packet: bytes, a multiple of 8 */
	unsigned children;                 /* numbered below */
	uint32_t kind;                     /* enum sparse_sums */
	const struct float_tables *tables; /* for SPARSE_TABLE */
};

struct pisa_sparse {
	struct pisa_sparse_size size;
	struct pisa_sparse_program code;
	struct pisa_switch sw;
	uint32_t words[PISA_SPARSE_WORDS_MAX]; /* windows of the packet that is in the switch */
	char why[PISA_WHY_MAX];
};

/* The outcome of a PUSH. */
struct pisa_sparse_answer {
	enum pisa_fate fate;
	enum pisa_sparse_verdict verdict;
	struct wire_header header; /* of the answer, without magic, comm and checksum */
	uint32_t recirculated;     /* times */
	const char *why;           /* PISA_BROKEN: a sentence */
};

/*
 * Section 3.3 of the paper: 5 % of 20 MB. 12 stages of 106 blocks of 16 KiB are 20 MB. A program
 * may use 5 blocks of each stage: 32,768 values in each bank. Sums by table need twice the passes,
 * so a packet may be recirculated twice as often. Their tables do not count as the program's: jobs
 * can share them.
 */
struct pisa_limits pisa_sparse_limits(uint32_t kind);

/*
 * Writes the program and checks it against the limits of a switch. If it breaks a rule, `why` is a
 * sentence of up to PISA_WHY_MAX bytes. The struct must not move afterwards.
 */
enum pisa_rule pisa_sparse_build(struct pisa_sparse *it, const struct pisa_sparse_size *size,
                                 const struct pisa_limits *limits, char *why);

/* Bytes that pisa_sparse_start() needs, of a program that was built. */
size_t pisa_sparse_memory(const struct pisa_sparse *it);

/* Loads it. All registers are 0. */
void pisa_sparse_start(struct pisa_sparse *it, const struct pisa_limits *limits, void *memory);

/*
 * A PUSH of a child below `children`. `payload` is aligned to 8 bytes. `approved`: the processor
 * has judged it.
 */
void pisa_sparse_push(struct pisa_sparse *it, const struct wire_header *packet, const void *payload,
                      uint32_t bytes, bool approved, struct pisa_sparse_answer *answer);

/* Only the parser's part: pisa_begin() and pisa_pass() may follow. One packet at a time. */
void pisa_sparse_begin(struct pisa_sparse *it, struct pisa_packet *packet,
                       const struct wire_header *header, const void *payload, uint32_t bytes);

/* ---- what the processor does with registers ---- */

void pisa_sparse_set_map(struct pisa_sparse *it, uint32_t generation, uint32_t bank, bool asks);
void pisa_sparse_set_low(struct pisa_sparse *it, unsigned child, uint64_t low);
void pisa_sparse_set_durable(struct pisa_sparse *it, unsigned child, uint32_t low);
/* The sum of a row's value. */
uint32_t pisa_sparse_sum(const struct pisa_sparse *it, uint32_t bank, uint32_t row,
                         uint32_t column);
void pisa_sparse_clear(struct pisa_sparse *it, uint32_t bank);

#endif
