/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot program in a switch, and beside it engine/slot.h with the same packets. They have to say
 * the same. For tests and for fuzzing; the caller defines demand().
 */
#ifndef TRIB_TESTS_PISA_REFERENCE_H
#define TRIB_TESTS_PISA_REFERENCE_H

#include "pisa/pisa_slot.h"

#include <stdlib.h>
#include <string.h>

#define REFERENCE_SLOTS 16u
#define REFERENCE_PAYLOAD 128u

struct reference {
	struct slot_lane lane;
	struct slot_cell cells[REFERENCE_SLOTS];
	uint64_t sums[REFERENCE_SLOTS][REFERENCE_PAYLOAD / 8];
	struct pisa_slot slot;
	void *memory;
	struct pisa_slot_answer answer;          /* the switch's, to the last packet */
	uint64_t payload[REFERENCE_PAYLOAD / 8]; /* of that answer */
	struct pisa_slot_answer expected;        /* the engine's */
	uint64_t expected_payload[REFERENCE_PAYLOAD / 8];
};

/* Operations begin at `first`, a multiple of `slots`. */
static inline void reference_start(struct reference *r, unsigned children, uint32_t slots,
                                   uint32_t payload, uint64_t first)
{
	const struct pisa_limits limits = pisa_limits_default();
	const struct pisa_slot_size size = { slots, payload, children };
	char why[PISA_WHY_MAX];

	r->lane = (struct slot_lane){ .members = (1ull << children) - 1,
		                      .slots = slots,
		                      .payload = payload };
	r->lane.low = first;
	demand(pisa_slot_build(&r->slot, &size, &limits, why) == PISA_OBEYS);
	r->memory = malloc(pisa_slot_memory(&r->slot));
	demand(r->memory);
	pisa_slot_start(&r->slot, &limits, (uint32_t)r->lane.members, r->memory);
	r->slot.sw.registers[SLOT_A_LOW][0] = (uint32_t)first;
	r->slot.low = first;
	for (uint32_t i = 0; i < slots; i++) {
		r->cells[i] = (struct slot_cell){ .position = first + i };
		r->slot.sw.registers[SLOT_A_POSITION][i] = (uint32_t)first;
	}
}

static inline void reference_end(struct reference *r)
{
	free(r->memory);
}

/* ---- the engine ---- */

static inline void reference_answer(struct reference *r, enum pisa_fate fate, uint64_t to,
                                    uint32_t pos, uint8_t kind)
{
	const struct slot_cell *cell = &r->cells[slot_index(&r->lane, pos)];

	r->expected.fate = fate;
	r->expected.to = to & ~r->lane.left;
	r->expected.header = (struct wire_header){ .type = WIRE_RESULT,
		                                   .flags = kind ? 0 : cell->shape,
		                                   .child = WIRE_ALL,
		                                   .op = kind ? 0 : cell->op,
		                                   .pos = pos,
		                                   .ack = (uint32_t)r->lane.low,
		                                   .scale = kind == SLOT_CLEAR ? 0 : cell->scale,
		                                   .from = kind,
		                                   .to = WIRE_ALL };
	r->expected.bytes = kind ? 0 : cell->bytes;
	if (!kind)
		memcpy(r->expected_payload, r->sums[slot_index(&r->lane, pos)], cell->bytes);
}

static inline int reference_acks(struct reference *r, const struct wire_header *packet)
{
	struct slot_cell *cell = &r->cells[slot_index(&r->lane, packet->ack)];
	int clear =
		packet->from & SLOT_ACKS && slot_ack(&r->lane, cell, packet->child, packet->ack);

	for (int i = 0; clear && i < 2; i++)
		slot_move_low(&r->lane, &r->cells[r->lane.low % r->lane.slots], r->lane.low);
	return clear;
}

static inline void reference_takes(struct reference *r, const struct wire_header *packet,
                                   const void *payload, uint32_t bytes)
{
	uint32_t at = slot_index(&r->lane, packet->pos);
	int clear = reference_acks(r, packet);
	enum slot_verdict verdict;
	struct slot_taken taken;

	r->expected = (struct pisa_slot_answer){ .verdict = SLOT_VERDICTS_END };
	if (packet->from & SLOT_BARE) {
		if (packet->from & SLOT_WANTS && clear)
			reference_answer(r, PISA_ONE, child_bit(packet->child), packet->ack,
			                 SLOT_CLEAR);
		return;
	}
	verdict = slot_judge(&r->lane, &r->cells[at], packet, bytes);
	if ((verdict == SLOT_ADDED || verdict == SLOT_RAISED) && bytes &&
	    pisa_slot_lacks(packet->op)) {
		r->expected.fate = PISA_REFUSED;
		r->expected.verdict = verdict;
		return;
	}
	taken = slot_take(&r->lane, &r->cells[at], r->sums[at], packet, payload, bytes);
	r->expected.verdict = taken.verdict;
	if (taken.verdict == SLOT_COMPLETE)
		reference_answer(r, PISA_ALL, r->lane.members, packet->pos, 0);
	else if (taken.again)
		reference_answer(r, PISA_SOME, taken.again, packet->pos, SLOT_RAISE);
	else if (taken.verdict == SLOT_FINISHED)
		reference_answer(r, PISA_ONE, child_bit(packet->child), packet->pos, 0);
	else if (taken.verdict == SLOT_LOWER)
		reference_answer(r, PISA_ONE, child_bit(packet->child), packet->pos, SLOT_RAISE);
}

/* ---- comparing ---- */

/* The bits of a word that the program flips. */
static inline uint32_t reference_flips(uint8_t op)
{
	return op == WIRE_MIN_I32   ? 0xffffffffu
	       : op == WIRE_MIN_U32 ? 0x7fffffffu
	       : op == WIRE_MAX_U32 ? 0x80000000u
	                            : 0;
}

static inline void reference_compare_sum(const struct reference *r, uint32_t at)
{
	const struct slot_cell *cell = &r->cells[at];
	uint32_t chunks = r->slot.code.arrays[SLOT_A_WORD].entries / r->lane.slots;
	const uint32_t *words = (const void *)r->sums[at];

	for (uint32_t i = 0; cell->arrived && i < cell->bytes / 4; i++)
		demand((pisa_peek(&r->slot.sw, SLOT_A_WORD + i % 8, at * chunks + i / 8) ^
		        reference_flips(cell->op)) == words[i]);
}

/* As waiting() of engine/slot_engine.c. */
static inline uint64_t reference_waiting(const struct reference *r)
{
	for (uint64_t p = r->lane.low; p < r->lane.low + r->lane.slots; p++) {
		const struct slot_cell *cell = &r->cells[p % r->lane.slots];

		if (cell->position == p && cell->arrived && !cell->complete)
			return r->lane.members & ~cell->arrived;
	}
	return 0;
}

static inline void reference_compare_state(const struct reference *r)
{
	const struct pisa_switch *sw = &r->slot.sw;

	demand(pisa_peek(sw, SLOT_A_LOW, 0) == (uint32_t)r->lane.low);
	demand(r->slot.low == r->lane.low);
	demand(pisa_slot_waiting(&r->slot) == reference_waiting(r));
	for (uint32_t i = 0; i < r->lane.slots; i++) {
		const struct slot_cell *cell = &r->cells[i];
		uint64_t mark = pisa_peek(sw, SLOT_A_MARK, i);

		demand(pisa_peek(sw, SLOT_A_POSITION, i) + i == (uint32_t)cell->position);
		demand(pisa_peek(sw, SLOT_A_ACKED, i) == cell->acked);
		demand(mark >> 32 == cell->arrived);
		demand((mark >> 16 & 0xffff) == cell->scale);
		reference_compare_sum(r, i);
	}
}

static inline void reference_compare_answer(const struct reference *r)
{
	const struct pisa_slot_answer *got = &r->answer, *expected = &r->expected;

	demand(got->verdict == expected->verdict);
	demand(got->fate == expected->fate);
	if (got->fate == PISA_DROPPED || got->fate == PISA_REFUSED)
		return;
	demand(got->to == expected->to);
	demand(!memcmp(&got->header, &expected->header, sizeof(got->header)));
	demand(got->bytes == expected->bytes);
	demand(!memcmp(r->payload, r->expected_payload, got->bytes));
}

/* Both take a packet. `payload` is not changed. */
static inline void reference_both(struct reference *r, const struct wire_header *packet,
                                  const void *payload, uint32_t bytes)
{
	if (!(packet->from & SLOT_BARE))
		demand(pisa_slot_position(&r->slot, packet->pos) ==
		       wire_widen(packet->pos,
		                  r->cells[slot_index(&r->lane, packet->pos)].position));
	memset(r->payload, 0, sizeof(r->payload));
	if (bytes)
		memcpy(r->payload, payload, bytes);
	reference_takes(r, packet, payload, bytes);
	pisa_slot_take(&r->slot, packet, r->payload, bytes, &r->answer);
	reference_compare_answer(r);
	reference_compare_state(r);
}

#endif
