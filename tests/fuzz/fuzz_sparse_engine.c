/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine under packets of any form. Nothing is read or written out of bounds, answers
 * fit a packet and go to members only, no lock stays, and the sums are those of a plain model that
 * adds what the engine says that it has added.
 */
#include "fuzz.h"
#include "sparse_packets.h"
#include "wire/parse.h"

#include <string.h>

#define VALUES_MAX 4096u

struct world {
	struct engine_lane state;
	struct engine_pool pool;
	struct sparse_lane *lane;
	uint32_t live[VALUES_MAX], frozen[VALUES_MAX]; /* the model */
	struct engine_packet out[2];
};

static uint16_t two_bytes(struct fuzz_input *input)
{
	return (uint16_t)(fuzz_byte(input) | fuzz_byte(input) << 8);
}

/* A packet of exactly these bytes, so that a sanitizer sees what lies behind. */
static union sparse_packet *packet_new(enum sparse_kind kind, uint8_t child, uint32_t payload)
{
	union sparse_packet *packet = calloc(1, WIRE_HEADER + payload);

	demand(packet);
	packet->header = (struct wire_header){
		.type = WIRE_DATA, .child = child, .op = (uint8_t)kind, .to = WIRE_ALL
	};
	return packet;
}

static void *payload_of(union sparse_packet *packet)
{
	return packet->words + WIRE_HEADER / 8;
}

static void answers_check(struct world *world)
{
	for (unsigned i = 0; i < 2; i++) {
		struct engine_packet *out = &world->out[i];
		struct wire_header *header = (void *)out->data;

		if (!out->bytes)
			continue;
		demand(out->bytes <= WIRE_HEADER + world->state.payload);
		demand(out->to && !(out->to & ~world->state.members));
		header->magic = WIRE_MAGIC;
		demand(wire_parse(header, out->bytes) == WIRE_SOUND);
		demand(header->type == WIRE_RESULT && header->op < SPARSE_KINDS_END);
	}
	for (uint32_t i = 0; i < world->state.cells; i++)
		demand(!engine_cell(&world->pool, i)->lock);
	for (unsigned child = 0; world->lane->limit && child < WIRE_CHILDREN_MAX; child++)
		if (sparse_knows(world->lane, child))
			demand(!sparse_state(engine_cell(&world->pool, child))->more);
}

static void model_add(struct world *world, const void *payload)
{
	const struct sparse_rows *head = payload;
	const sparse_number *numbers = (const sparse_number *)(head + 1);
	const uint8_t *values = (const uint8_t *)payload + sparse_values_at(head->n);

	for (uint32_t i = 0; i < head->n; i++)
		for (uint32_t k = 0; k < head->width; k++, values += 4) {
			uint32_t at = numbers[i] * head->width + k, value;

			memcpy(&value, values, 4);
			demand(at < VALUES_MAX && sparse_is_small(value));
			world->live[at] += value;
		}
}

/* A page of a block has the model's sums. */
static void model_check(struct world *world, uint32_t block)
{
	const uint64_t *page = sparse_body(&world->out[0]);
	const uint32_t *sums = (const uint32_t *)(page + 1);
	uint32_t width = world->lane->setup.width, per = world->lane->per_block;

	if (block >= world->lane->blocks)
		return;
	for (uint32_t row = 0; row < per && block * per + row < world->lane->setup.rows; row++)
		for (uint32_t k = 0; k < width; k++)
			demand(world->frozen[(block * per + row) * width + k] ==
			       (page[0] >> row & 1 ? *sums++ : 0));
}

static void give(struct world *world, union sparse_packet *packet, uint32_t bytes)
{
	uint32_t epoch = world->lane->epoch;
	enum engine_verdict verdict =
		engine_sparse.take(&world->pool, &packet->header, bytes, world->out);

	demand(verdict < ENGINE_VERDICTS_END && verdict != ENGINE_MISMATCH);
	engine_sparse.position(&world->pool, &packet->header);
	demand(engine_sparse.view(&world->pool, &packet->header).cell < world->state.cells);
	answers_check(world);
	if (verdict == ENGINE_ADDED && !(packet->header.from & SPARSE_VOID))
		model_add(world, payload_of(packet));
	if (world->lane->epoch != epoch) {
		demand(packet->header.op == SPARSE_FREEZE && world->lane->epoch == epoch + 1);
		memcpy(world->frozen, world->live, sizeof(world->live));
		memset(world->live, 0, sizeof(world->live));
	}
	if (packet->header.op == SPARSE_READ && world->out[0].bytes &&
	    !sparse_refused(&world->out[0]))
		model_check(world, packet->header.ack);
}

/* Bytes of the input, over those of a packet. */
static void bend(struct fuzz_input *input, union sparse_packet *packet, uint32_t bytes)
{
	uint8_t what = fuzz_byte(input);

	if (what & 1 && bytes)
		((uint8_t *)payload_of(packet))[two_bytes(input) % bytes] = fuzz_byte(input);
	if (what & 2)
		packet->header.from = fuzz_byte(input) & 63;
	if (what & 4)
		packet->header.scale = (uint16_t)(packet->header.scale + fuzz_byte(input));
	if (what & 8)
		packet->header.pos = (uint32_t)two_bytes(input) << 16 | two_bytes(input);
	if (what & 16)
		packet->header.child = fuzz_byte(input);
	if (what & 32)
		packet->header.ack = (uint32_t)two_bytes(input) << 16 | two_bytes(input);
	if (what & 64)
		packet->header.flags = fuzz_byte(input);
}

static void give_rows(struct world *world, struct fuzz_input *input, enum sparse_kind kind)
{
	uint32_t width = world->lane->setup.width ? world->lane->setup.width : 1;
	uint32_t n = fuzz_byte(input) % 20,
		 bytes = sparse_rows_bytes(n, width, kind == SPARSE_PUSH);
	uint32_t row = two_bytes(input) % (world->lane->setup.rows + 1);
	uint8_t child = fuzz_byte(input) % 64, how = fuzz_byte(input);
	union sparse_packet *packet;

	bytes += how % 16 == 1 ? 8 : 0;
	packet = packet_new(kind, child, bytes);
	*(struct sparse_rows *)payload_of(packet) =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)width };
	for (uint32_t i = 0; i < n; i++, row += 1 + fuzz_byte(input) % 4)
		sparse_numbers(payload_of(packet))[i] = (uint16_t)row;
	for (uint32_t i = 0; i < n * width && kind == SPARSE_PUSH; i++)
		sparse_values(payload_of(packet), n)[i] = (uint32_t)fuzz_byte(input) << 13;
	packet->header.scale = (uint16_t)world->lane->generation;
	if (child < world->state.cells)
		packet->header.pos =
			(uint32_t)sparse_state(engine_cell(&world->pool, child))->low + (how & 3);
	if (how & 4)
		bend(input, packet, bytes);
	give(world, packet, how & 8 && bytes ? bytes - 8 : bytes);
	free(packet);
}

static void give_server(struct world *world, struct fuzz_input *input, enum sparse_kind kind)
{
	uint8_t server = (uint8_t)(63 - __builtin_clzll(world->state.members));
	uint8_t how = fuzz_byte(input);
	uint32_t bytes = kind == SPARSE_WRITE ? (uint32_t)(how >> 2) * 8 : 0;
	union sparse_packet *packet = packet_new(kind, server, bytes);

	packet->header.pos =
		world->lane->epoch + (kind == SPARSE_FREEZE && !world->lane->is_frozen);
	packet->header.scale = (uint16_t)(world->lane->generation + (how & 1));
	packet->header.ack =
		world->lane->blocks ? two_bytes(input) % (world->lane->blocks + 40) : 0;
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)payload_of(packet))[i] = fuzz_byte(input);
	if (how & 2)
		bend(input, packet, bytes);
	give(world, packet, bytes);
	free(packet);
}

static void give_setup(struct world *world, struct fuzz_input *input)
{
	uint8_t server = (uint8_t)(63 - __builtin_clzll(world->state.members));
	union sparse_packet *packet = packet_new(SPARSE_SETUP, server, sizeof(struct sparse_setup));
	struct sparse_setup *setup = payload_of(packet);

	*setup = (struct sparse_setup){ .width = fuzz_byte(input),
		                        .rows = two_bytes(input),
		                        .layout = fuzz_byte(input) & 3 };
	bend(input, packet, sizeof(*setup));
	/* The model has room for so many values, and no tables. */
	if (setup->width <= VALUES_MAX && setup->rows <= VALUES_MAX / (setup->width | 1) &&
	    setup->kind != SPARSE_TABLE)
		give(world, packet, sizeof(*setup));
	free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	struct world *world = calloc(1, sizeof(*world));
	uint8_t form = fuzz_byte(&input);

	demand(world);
	world->pool = sparse_pool(&world->state, 1 + fuzz_byte(&input) % 64, 2u << form % 8,
	                          WIRE_PAYLOAD_MIN + 8u * (form >> 3));
	demand(world->pool.cells && engine_sparse.open(&world->pool));
	world->lane = sparse_lane_of(&world->pool);
	while (input.at < input.end) {
		uint8_t what = fuzz_byte(&input);

		if (what % 16 == 0)
			give_setup(world, &input);
		else if (what % 16 < 10)
			give_rows(world, &input, what % 16 < 8 ? SPARSE_PUSH : SPARSE_PULL);
		else
			give_server(world, &input, what / 16 % WIRE_OPS_END);
	}
	free(world->pool.cells);
	free(world);
	return 0;
}
