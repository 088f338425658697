/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pisa_slot: the slot engine (engine/slot.h) as a program for the switch of pisa.h. For every
 * packet it gives the verdict of slot.h, the same answer and the same sums.
 *
 * A slot's state lies in these register arrays, which have an entry for each slot:
 *
 *   position  the low half of the operation's number, less the slot's index. So all entries begin
 *             as 0
 *   mark      scale and bytes (32 bits), and the bitmap `arrived`, which change together
 *   form      op, shape and kind
 *   acked     the bitmap of acknowledgements
 *   low       one entry for the lane
 *   word 0-7  the sum, eight words of 32 bits a pass. A longer vector is recirculated, and has
 *             several entries in these arrays
 *
 * These are the passes. Each ends with a recirculation to a later one, or with the packet's fate:
 *
 *   ack     the acknowledgement: acked |= bit. It often is the first pass
 *   clear   all have acknowledged: the slot is emptied
 *   low     moves `low` by one; twice for a packet, as far as it can
 *   judge   the vector's slot is read, and the verdict is found
 *   commit  the slot takes the vector, if it still is as it was judged; else judge again
 *   words   the next eight words of the sum
 *
 * A vector alone takes two passes, with an acknowledgement three; the acknowledgement that clears a
 * slot takes two or three more. Each further eight words take one more.
 *
 * What is different from slot.h, and why:
 * 1. A packet that acknowledges one operation and brings another needs two slots. A pass has one
 *    access to an array, so these are two passes.
 * 2. slot_take() reads `arrived` first and writes it last. That is two accesses, so it is split
 * into judge and commit. Commit compares and swaps `mark`, so passes of other packets may come
 *    between: a sum follows from position, scale and `arrived`.
 * 3. There is no flag `complete`: it is arrived = members. A slot that is cleared loses its form.
 * 4. Positions are compared as 32-bit differences, as on the wire. slot.h differs only for a packet
 *    of an operation before 0, which no child sends.
 * 5. `low` moves, up to twice, only with a packet whose acknowledgement finds its slot clear, or
 *    clears it. slot_engine.c moves it with every acknowledgement. Each move takes a pass, and only
 *    clearing makes moves possible. A child that waits for `low` asks with such a packet.
 * 6. SLOT_WANTS counts only with SLOT_BARE: a packet has one answer. Children send it so.
 * 7. A 64-bit sum is two words with a carry. A minimum is the maximum of the complement, and
 *    unsigned values have their first bit flipped, as an array has four actions.
 * 8. Refused by name: operations on bytes and 16-bit values (a register adds whole words), and the
 *    minimum and maximum of 64 bits (the low half comes first for sums, the high half would have to
 *    for these). pisa_slot_lacks() says which. An empty vector has no operation: a barrier.
 * 9. At most 32 children: bitmap, scale and bytes share an entry of 64 bits.
 */
#ifndef TRIB_PISA_PISA_SLOT_H
#define TRIB_PISA_PISA_SLOT_H

#include "engine/slot.h"
#include "pisa/pisa.h"
#include "pisa/pisa_slot_program.h"

#define PISA_SLOT_CHILDREN_MAX 32u

struct pisa_slot_size {
	uint32_t slots;    /* a power of two, at most SLOTS_MAX */
	uint32_t payload;  /* largest payload of a packet: bytes, a multiple of 8 */
	unsigned children; /* numbered below; at most PISA_SLOT_CHILDREN_MAX */
};

struct pisa_slot {
	struct pisa_slot_size size;
	struct pisa_slot_program code;
	struct pisa_switch sw;
	uint32_t members, left; /* as in struct slot_lane; the control plane sets them */
	uint64_t low;           /* as in struct slot_lane; the switch has its low half */
	char why[PISA_WHY_MAX];
};

/* The outcome of a packet. */
struct pisa_slot_answer {
	enum pisa_fate fate;
	enum slot_verdict verdict; /* of the vector; SLOT_VERDICTS_END: there was none */
	uint64_t to;               /* children, as bits, that get the answer; 0: none does */
	struct wire_header header; /* of the answer, without checksum */
	uint32_t bytes;            /* of the answer's payload, which replaces the packet's */
	uint32_t recirculated;     /* times */
	const char *why;           /* PISA_REFUSED, PISA_BROKEN: a sentence */
};

/*
 * Writes the program and checks it against the limits of a switch. If it breaks a rule, `why` is a
 * sentence of up to PISA_WHY_MAX bytes. The struct must not move afterwards.
 */
enum pisa_rule pisa_slot_build(struct pisa_slot *slot, const struct pisa_slot_size *size,
                               const struct pisa_limits *limits, char *why);

/* Bytes that pisa_slot_start() needs, of a program that was built. */
size_t pisa_slot_memory(const struct pisa_slot *slot);

/* Loads it. All slots are clear. */
void pisa_slot_start(struct pisa_slot *slot, const struct pisa_limits *limits, uint32_t members,
                     void *memory);

/* Why the program cannot combine vectors with this enum wire_op; NULL: it can. */
const char *pisa_slot_lacks(uint8_t op);

/*
 * A DATA packet that was found intact. `payload` is aligned to 8 bytes, and has room for the
 * largest payload: it is changed, and is the answer's payload. The answer's header has no magic,
 * comm and checksum.
 */
void pisa_slot_take(struct pisa_slot *slot, const struct wire_header *packet, void *payload,
                    uint32_t bytes, struct pisa_slot_answer *answer);

/* The same in parts: begin, pisa_pass() while it gives PISA_AGAIN, then end with its fate. */
void pisa_slot_begin(struct pisa_slot *slot, struct pisa_packet *packet,
                     const struct wire_header *header, void *payload, uint32_t bytes);
void pisa_slot_end(struct pisa_slot *slot, const struct pisa_packet *packet, enum pisa_fate fate,
                   struct pisa_slot_answer *answer);

/* The number of a packet's operation, which its checksum covers. */
uint64_t pisa_slot_position(const struct pisa_slot *slot, uint32_t pos);

/* Children, as bits, that owe the oldest sum. The control plane reads registers for it. */
uint64_t pisa_slot_waiting(const struct pisa_slot *slot);

#endif
