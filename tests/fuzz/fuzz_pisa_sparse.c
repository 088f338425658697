/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine on the switch under packets of any form, beside the engine itself: verdicts and
 * answers are the same, and no packet breaks a rule of the switch.
 */
#include "fuzz.h"
#include "plane/pisa/pisa_engine.h"
#include "sparse_packets.h"

#include <string.h>

#define CELLS 32u

struct world {
	struct engine_lane states[2];
	struct engine_pool pools[2];
	struct engine_packet out[2][2];
	union sparse_packet packet;
};

static uint16_t two_bytes(struct fuzz_input *input)
{
	return (uint16_t)(fuzz_byte(input) | fuzz_byte(input) << 8);
}

static struct sparse_lane *lane_of(struct world *world)
{
	return sparse_lane_of(&world->pools[0]);
}

/* True: the switch has refused the communicator, and all is over. */
static bool give(struct world *world, uint32_t bytes)
{
	const struct wire_header *packet = &world->packet.header;
	enum engine_verdict one, two;

	if (bytes > world->states[0].payload) /* children send no such packets */
		return false;
	one = engine_sparse.take(&world->pools[0], packet, bytes, world->out[0]);
	two = engine_sparse_pisa.take(&world->pools[1], packet, bytes, world->out[1]);
	if (two == ENGINE_REFUSED) { /* what the switch lacks, or what does not fit it */
		demand(packet->op == SPARSE_SETUP && !world->out[1][0].bytes);
		demand(strstr(engine_sparse_pisa.why(&world->pools[1]), "Program sparse "));
		return true;
	}
	demand(one == two);
	for (unsigned i = 0; i < 2; i++) {
		const struct engine_packet *a = &world->out[0][i], *b = &world->out[1][i];

		demand(a->bytes == b->bytes);
		demand(!a->bytes || (a->to == b->to && a->position == b->position &&
		                     memcmp(a->data, b->data, a->bytes) == 0));
	}
	return false;
}

/* Bytes of the input, over those of a packet. */
static void bend(struct fuzz_input *input, union sparse_packet *packet, uint32_t *bytes)
{
	uint8_t what = fuzz_byte(input);

	if (what & 1 && *bytes)
		((uint8_t *)sparse_payload(packet))[two_bytes(input) % *bytes] = fuzz_byte(input);
	if (what & 2)
		packet->header.from = fuzz_byte(input);
	if (what & 4)
		packet->header.scale = (uint16_t)(packet->header.scale + fuzz_byte(input));
	if (what & 8)
		packet->header.pos = (uint32_t)two_bytes(input) << 16 | two_bytes(input);
	if (what & 16)
		packet->header.child = fuzz_byte(input);
	if (what & 32)
		packet->header.ack = two_bytes(input);
	if (what & 64)
		*bytes = fuzz_byte(input) * 8u;
	if (what & 128)
		packet->header.flags = fuzz_byte(input);
}

static uint32_t make_rows(struct world *world, struct fuzz_input *input, enum sparse_kind kind)
{
	uint32_t width = lane_of(world)->setup.width ? lane_of(world)->setup.width : 1;
	uint32_t n = fuzz_byte(input) % (sparse_rows_fit(world->states[0].payload, width) + 1);
	uint32_t row = two_bytes(input) % (lane_of(world)->setup.rows + 1), values[4096];
	uint16_t numbers[256];
	uint8_t child = fuzz_byte(input) % 64, spread = fuzz_byte(input);
	unsigned shift = lane_of(world)->setup.kind == SPARSE_TABLE ? 22 : 14;

	for (uint32_t i = 0; i < n; i++, row += 1 + spread % (1u + fuzz_byte(input)))
		numbers[i] = (uint16_t)row;
	for (uint32_t i = 0; i < n * width; i++)
		values[i] = (uint32_t)(int8_t)fuzz_byte(input) << shift;
	sparse_bare(&world->packet, kind, child, two_bytes(input) % 512,
	            (uint16_t)lane_of(world)->generation);
	if (child < CELLS && spread & 1)
		world->packet.header.pos =
			(uint32_t)sparse_state(engine_cell(&world->pools[0], child))->low;
	return sparse_fill(&world->packet, numbers, n, width, kind == SPARSE_PUSH ? values : NULL);
}

static uint32_t make_server(struct world *world, struct fuzz_input *input, enum sparse_kind kind)
{
	const struct sparse_lane *lane = lane_of(world);
	uint32_t pos = lane->epoch + (kind == SPARSE_FREEZE && !lane->is_frozen);
	uint32_t bytes = kind == SPARSE_WRITE ? fuzz_byte(input) % 32u * 8 : 0;

	sparse_bare(&world->packet, kind, (uint8_t)(63 - __builtin_clzll(lane->members)), pos,
	            (uint16_t)lane->generation);
	world->packet.header.ack = two_bytes(input) % (lane->blocks + 4);
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)sparse_payload(&world->packet))[i] = fuzz_byte(input);
	return bytes;
}

static uint32_t make_setup(struct world *world, struct fuzz_input *input)
{
	struct sparse_setup *setup = sparse_payload(&world->packet);
	uint8_t flags;

	sparse_bare(&world->packet, SPARSE_SETUP,
	            (uint8_t)(63 - __builtin_clzll(world->states[0].members)), 0, 0);
	*setup = (struct sparse_setup){ .width = fuzz_byte(input) % 64u,
		                        .rows = two_bytes(input) % 1024u };
	flags = fuzz_byte(input);
	setup->layout = flags & 1;
	setup->kind = flags >> 1 & 1;
	return sizeof(*setup);
}

static bool packet_give(struct world *world, struct fuzz_input *input)
{
	uint8_t what = fuzz_byte(input);
	uint32_t bytes;

	memset(&world->packet, 0, sizeof(world->packet));
	if (!lane_of(world)->setup.width && what % 16 < 14)
		bytes = make_setup(world, input);
	else if (what % 16 < 11)
		bytes = make_rows(world, input, what % 16 < 10 ? SPARSE_PUSH : SPARSE_PULL);
	else
		bytes = make_server(world, input, what / 16 % SPARSE_KINDS_END);
	if (fuzz_byte(input) % 4 == 0)
		bend(input, &world->packet, &bytes);
	return give(world, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	struct world *world = calloc(1, sizeof(*world));
	uint8_t form = fuzz_byte(&input);
	struct engine_counts counts = { 0 };

	demand(world);
	for (unsigned i = 0; i < 2; i++) {
		world->pools[i] = sparse_pool(&world->states[i], 2 + form % 8, CELLS,
		                              WIRE_PAYLOAD_MIN + 8u * (form >> 4));
		demand(world->pools[i].cells);
	}
	demand(engine_sparse.open(&world->pools[0]) && engine_sparse_pisa.open(&world->pools[1]));
	while (input.at < input.end)
		if (packet_give(world, &input))
			break;
	engine_sparse_pisa.count(&world->pools[1], &counts);
	demand(counts.broken == 0 && counts.passes == counts.packets + counts.recirculations);
	engine_sparse_pisa.close(&world->pools[1]);
	free(world->pools[0].cells);
	free(world->pools[1].cells);
	free(world);
	return 0;
}
