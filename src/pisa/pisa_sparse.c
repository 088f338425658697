/* SPDX-License-Identifier: Apache-2.0 */
#include "pisa/pisa_sparse.h"

#include <stdio.h>
#include <string.h>

struct pisa_limits pisa_sparse_limits(uint32_t kind)
{
	return (struct pisa_limits){ .stages = 12,
		                     .blocks = 106,
		                     .budget = 5,
		                     .block_bits = 16 * 1024 * 8,
		                     .recirculations = kind == SPARSE_TABLE ? 128 : 64 };
}

/* What the program cannot be written for; NULL: nothing. */
static const char *size_fault(const struct pisa_sparse_size *size)
{
	if (size->payload < WIRE_PAYLOAD_MIN || size->payload > WIRE_PAYLOAD_MAX ||
	    size->payload % 8)
		return "the payload is not a multiple of 8 from 256 to 8944 bytes";
	if (size->children == 0 || size->children > PISA_SPARSE_CHILDREN_MAX)
		return "there are 1 to 64 children";
	if (!sparse_per_block(size->payload, size->width))
		return "a row does not fit a packet";
	if (size->rows == 0 || size->rows > SPARSE_ROWS_MAX)
		return "there are 1 to 65536 rows";
	return NULL;
}

enum pisa_rule pisa_sparse_build(struct pisa_sparse *it, const struct pisa_sparse_size *size,
                                 const struct pisa_limits *limits, char *why)
{
	const char *fault = size_fault(size);
	struct pisa_sparse_layout layout;

	if (fault) {
		snprintf(why, PISA_WHY_MAX,
		         "Program sparse breaks the rule 'form': pass none, stage 0, register map: "
		         "%s.",
		         fault);
		return PISA_RULE_FORM;
	}
	it->size = *size;
	layout = pisa_sparse_lay_out(size->width, size->rows, size->children);
	layout.kind = size->kind;
	pisa_sparse_write(&it->code, &layout, size->payload, size->tables);
	return pisa_check(&it->code.program, limits, why);
}

size_t pisa_sparse_memory(const struct pisa_sparse *it)
{
	return pisa_memory(&it->code.program);
}

void pisa_sparse_start(struct pisa_sparse *it, const struct pisa_limits *limits, void *memory)
{
	pisa_load(&it->sw, &it->code.program, limits, memory, it->why);
}

/* ---- the parser ---- */

/* Row i of a payload that has the length of its rows, from its piece `piece` on. */
static void place_values(const struct pisa_sparse_layout *layout, const sparse_value *values,
                         uint32_t i, uint32_t piece, uint32_t *to)
{
	uint32_t from = piece * PISA_SPARSE_ARRAYS, n = layout->width - from;

	if (n > PISA_SPARSE_ARRAYS)
		n = PISA_SPARSE_ARRAYS;
	memcpy(to, values + i * layout->width + from, n * sizeof(*to));
}

static void place_window(const struct pisa_sparse_layout *layout, const void *payload,
                         uint32_t window, uint32_t *to)
{
	const struct sparse_rows *head = payload;
	const sparse_number *numbers = (const sparse_number *)(head + 1);
	const sparse_value *values =
		(const void *)((const uint8_t *)payload + sparse_values_at(head->n));
	uint32_t groups = 1u << layout->group_bits,
		 words = PISA_SPARSE_ARRAYS >> layout->group_bits;
	uint32_t pieces = layout->pieces, first = window / pieces * groups;

	to[groups] = window % pieces;
	for (uint32_t k = 0; k < groups && first + k < head->n; k++) {
		to[k] = numbers[first + k];
		place_values(layout, values, first + k, window % pieces,
		             to + groups + 1 + k * words);
	}
}

/* Lays out all windows. A packet without rows, or of a wrong length, has one without rows. */
static uint32_t parse(struct pisa_sparse *it, const void *payload, uint32_t bytes)
{
	const struct pisa_sparse_layout *layout = &it->code.layout;
	const struct sparse_rows *head = payload;
	uint32_t words = pisa_sparse_window_words(layout), n = 0;

	if (bytes >= sizeof(*head) && bytes <= it->size.payload && head->width == layout->width &&
	    head->n <= sparse_rows_fit(it->size.payload, layout->width) &&
	    bytes == sparse_rows_bytes(head->n, layout->width, 1))
		n = pisa_sparse_windows(layout, head->n);
	for (uint32_t i = 0; i == 0 || i < n; i++) {
		uint32_t *to = it->words + (size_t)i * words;

		memset(to, 0, words * sizeof(*to));
		for (uint32_t k = 0; k < 1u << layout->group_bits; k++)
			to[k] = PISA_SPARSE_NO_ROW;
		if (n)
			place_window(layout, payload, i, to);
	}
	return (n ? n : 1) * words;
}

void pisa_sparse_begin(struct pisa_sparse *it, struct pisa_packet *packet,
                       const struct wire_header *header, const void *payload, uint32_t bytes)
{
	const struct sparse_rows *head = payload;

	memset(packet, 0, sizeof(*packet));
	packet->words = it->words;
	packet->n_words = parse(it, payload, bytes);
	packet->field[PUSH_F_CHILD] = header->child;
	packet->field[PUSH_F_POS] = header->pos;
	packet->field[PUSH_F_SCALE] = header->scale;
	packet->field[PUSH_F_FROM] = header->from;
	packet->field[PUSH_F_BYTES] = bytes;
	if (bytes < sizeof(*head))
		return;
	packet->field[PUSH_F_N] = head->n;
	packet->field[PUSH_F_WIDTH] = head->width;
	packet->field[PUSH_F_UNUSED] = head->unused;
}

void pisa_sparse_push(struct pisa_sparse *it, const struct wire_header *header, const void *payload,
                      uint32_t bytes, bool approved, struct pisa_sparse_answer *answer)
{
	struct pisa_packet packet;
	const uint32_t *field = packet.field;
	enum pisa_fate fate;

	pisa_sparse_begin(it, &packet, header, payload, bytes);
	packet.field[PUSH_F_APPROVED] = approved;
	fate = pisa_run(&it->sw, &packet);
	*answer = (struct pisa_sparse_answer){
		.fate = fate,
		.verdict = (enum pisa_sparse_verdict)field[PUSH_F_VERDICT],
		.recirculated = packet.recirculated,
		.why = packet.why
	};
	answer->header = (struct wire_header){ .type = WIRE_RESULT,
		                               .flags = header->flags & WIRE_RESENT,
		                               .child = header->child,
		                               .op = header->op,
		                               .pos = field[PUSH_F_POS],
		                               .ack = field[PUSH_F_ACK],
		                               .scale = (uint16_t)field[PUSH_F_SCALE],
		                               .from = (uint8_t)field[PUSH_F_FROM],
		                               .to = (uint8_t)field[PUSH_F_TO] };
}

/* ---- the processor ---- */

void pisa_sparse_set_map(struct pisa_sparse *it, uint32_t generation, uint32_t bank, bool asks)
{
	pisa_poke(&it->sw, PUSH_A_MAP, 0,
	          (generation & 0xffffu) | bank << PISA_SPARSE_BANK_SHIFT |
	                  (uint32_t)asks << PISA_SPARSE_ASKS_SHIFT);
}

void pisa_sparse_set_low(struct pisa_sparse *it, unsigned child, uint64_t low)
{
	uint64_t is_older = low >> 31 != 0;

	pisa_poke(&it->sw, PUSH_A_LOW, child, is_older << 32 | (uint32_t)low);
}

void pisa_sparse_set_durable(struct pisa_sparse *it, unsigned child, uint32_t low)
{
	pisa_poke(&it->sw, PUSH_A_DURABLE, child, low);
}

uint32_t pisa_sparse_sum(const struct pisa_sparse *it, uint32_t bank, uint32_t row, uint32_t column)
{
	const struct pisa_sparse_layout *l = &it->code.layout;
	uint32_t groups = 1u << l->group_bits, words = PISA_SPARSE_ARRAYS >> l->group_bits;
	uint32_t index = bank << (l->cell_bits - 1) | row >> l->group_bits << l->piece_bits |
	                 column / PISA_SPARSE_ARRAYS;

	return (uint32_t)pisa_peek(
		&it->sw, PUSH_A_SUM + row % groups * words + column % PISA_SPARSE_ARRAYS, index);
}

void pisa_sparse_clear(struct pisa_sparse *it, uint32_t bank)
{
	uint32_t half = 1u << (it->code.layout.cell_bits - 1);

	for (unsigned j = 0; j < PISA_SPARSE_ARRAYS; j++)
		for (uint32_t i = 0; i < half; i++)
			pisa_poke(&it->sw, PUSH_A_SUM + j, bank * half + i, 0);
}
