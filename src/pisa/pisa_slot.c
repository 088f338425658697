/* SPDX-License-Identifier: Apache-2.0 */
#include "pisa/pisa_slot.h"

#include <stdio.h>
#include <string.h>

/* What the program cannot be written for; NULL: nothing. */
static const char *size_fault(const struct pisa_slot_size *size)
{
	if (size->slots == 0 || size->slots > SLOTS_MAX || size->slots & (size->slots - 1))
		return "the number of slots is not a power of two up to 65536";
	if (size->payload == 0 || size->payload > WIRE_PAYLOAD_MAX || size->payload % 8)
		return "the payload is not a multiple of 8 up to 8944 bytes";
	if (size->children == 0 || size->children > PISA_SLOT_CHILDREN_MAX)
		return "bitmap, scale and bytes of a slot share an entry of 64 bits, so there are "
		       "1 to 32 children";
	return NULL;
}

enum pisa_rule pisa_slot_build(struct pisa_slot *slot, const struct pisa_slot_size *size,
                               const struct pisa_limits *limits, char *why)
{
	const char *fault = size_fault(size);

	if (fault) {
		snprintf(why, PISA_WHY_MAX,
		         "Program slot breaks the rule 'form': pass none, stage 0, register mark: "
		         "%s.",
		         fault);
		return PISA_RULE_FORM;
	}
	slot->size = *size;
	pisa_slot_write(&slot->code, size->slots, size->payload, size->children);
	return pisa_check(&slot->code.program, limits, why);
}

size_t pisa_slot_memory(const struct pisa_slot *slot)
{
	return pisa_memory(&slot->code.program);
}

void pisa_slot_start(struct pisa_slot *slot, const struct pisa_limits *limits, uint32_t members,
                     void *memory)
{
	uint32_t known = (uint32_t)((1ull << slot->size.children) - 1);

	pisa_load(&slot->sw, &slot->code.program, limits, memory, slot->why);
	slot->members = members & known;
	slot->left = 0;
	slot->low = 0;
}

/* ---- what it cannot do ---- */

#define NAME(op, type, expression) [op] = #op,
static const char *const op_names[WIRE_OPS_END] = { COMBINE_OPS(NAME) };
#undef NAME

#define BYTES(op, type, expression) [op] = sizeof(type),
static const uint8_t op_bytes[WIRE_OPS_END] = { COMBINE_OPS(BYTES) };
#undef BYTES

const char *pisa_slot_lacks(uint8_t op)
{
	if (op >= WIRE_OPS_END)
		return "there is no such operation";
	if (pisa_slot_combines(op))
		return NULL;
	return op_bytes[op] < 4 ? "a register holds one number of 32 bits, and no shorter ones"
	                        : "a switch compares up to 32 bits";
}

static const char *refusal(struct pisa_slot *slot, uint8_t op)
{
	snprintf(slot->why, sizeof(slot->why), "Program slot refuses the operation %s: %s.",
	         op < WIRE_OPS_END ? op_names[op] : "unknown", pisa_slot_lacks(op));
	return slot->why;
}

/* ---- packets ---- */

void pisa_slot_begin(struct pisa_slot *slot, struct pisa_packet *packet,
                     const struct wire_header *header, void *payload, uint32_t bytes)
{
	memset(packet, 0, sizeof(*packet));
	packet->words = payload;
	packet->n_words = payload ? bytes / 4 : 0;
	packet->room = payload ? slot->size.payload / 4 : 0;
	packet->field[SLOT_F_CHILD] = header->child;
	packet->field[SLOT_F_FLAGS] = header->flags;
	packet->field[SLOT_F_OP] = header->op;
	packet->field[SLOT_F_POS] = header->pos;
	packet->field[SLOT_F_ACK] = header->ack;
	packet->field[SLOT_F_SCALE] = header->scale;
	packet->field[SLOT_F_FROM] = header->from;
	packet->field[SLOT_F_TO] = header->to;
	packet->field[SLOT_F_BYTES] = bytes < UINT16_MAX ? bytes : UINT16_MAX;
	packet->field[SLOT_F_MEMBERS] = slot->members;
	packet->field[SLOT_F_LEFT] = slot->left;
	packet->field[SLOT_F_VERDICT] = SLOT_VERDICTS_END;
	pisa_begin(&slot->sw, packet);
}

/* A child that has left gets nothing. */
static uint64_t receivers(const struct pisa_slot *slot, const struct pisa_packet *packet,
                          enum pisa_fate fate)
{
	uint64_t to = fate == PISA_ALL    ? slot->members
	              : fate == PISA_SOME ? packet->to
	              : fate == PISA_ONE  ? child_bit(packet->to)
	                                  : 0;

	return to & ~(uint64_t)slot->left;
}

void pisa_slot_end(struct pisa_slot *slot, const struct pisa_packet *packet, enum pisa_fate fate,
                   struct pisa_slot_answer *answer)
{
	const uint32_t *field = packet->field;

	*answer = (struct pisa_slot_answer){ .fate = fate,
		                             .verdict = (enum slot_verdict)field[SLOT_F_VERDICT],
		                             .bytes = field[SLOT_F_BYTES],
		                             .recirculated = packet->recirculated,
		                             .why = packet->why };
	answer->header = (struct wire_header){ .type = WIRE_RESULT,
		                               .flags = (uint8_t)field[SLOT_F_FLAGS],
		                               .child = (uint8_t)field[SLOT_F_CHILD],
		                               .op = (uint8_t)field[SLOT_F_OP],
		                               .pos = field[SLOT_F_POS],
		                               .ack = field[SLOT_F_ACK],
		                               .scale = (uint16_t)field[SLOT_F_SCALE],
		                               .from = (uint8_t)field[SLOT_F_FROM],
		                               .to = (uint8_t)field[SLOT_F_TO] };
	answer->to = receivers(slot, packet, fate);
	slot->low = wire_widen((uint32_t)pisa_peek(&slot->sw, SLOT_A_LOW, 0), slot->low);
	if (fate == PISA_REFUSED)
		answer->why = refusal(slot, (uint8_t)field[SLOT_F_OP]);
}

void pisa_slot_take(struct pisa_slot *slot, const struct wire_header *header, void *payload,
                    uint32_t bytes, struct pisa_slot_answer *answer)
{
	struct pisa_packet packet;
	enum pisa_fate fate;

	pisa_slot_begin(slot, &packet, header, payload, bytes);
	do
		fate = pisa_pass(&slot->sw, &packet);
	while (fate == PISA_AGAIN);
	pisa_slot_end(slot, &packet, fate, answer);
}

/* ---- the control plane ---- */

uint64_t pisa_slot_position(const struct pisa_slot *slot, uint32_t pos)
{
	return wire_widen(pos, slot->low);
}

uint64_t pisa_slot_waiting(const struct pisa_slot *slot)
{
	for (uint32_t i = 0; i < slot->size.slots; i++) {
		uint32_t position = (uint32_t)slot->low + i, at = position % slot->size.slots;
		uint64_t arrived = pisa_peek(&slot->sw, SLOT_A_MARK, at) >> 32;

		if (pisa_peek(&slot->sw, SLOT_A_POSITION, at) == position - at && arrived &&
		    arrived != slot->members)
			return slot->members & ~arrived;
	}
	return 0;
}
