/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot engine on the switch, as an entry in the table of engines: the same packets in, the same
 * packets out as from engine_slot. Only `low` may be behind: see src/pisa/pisa_slot.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/slot.h"
#include "plane/pisa/pisa_engine.h"
#include "short.h"

#define CELLS 8u
#define PAYLOAD 96u

static uint64_t random_state;

static uint32_t below(uint32_t end)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % end);
}

/* A lane with its memory, of one of both engines. */
struct side {
	const struct engine *engine;
	struct engine_lane lane;
	struct engine_pool pool;
	struct engine_packet out[2];
	enum engine_verdict verdict;
};

static void side_open(struct side *side, const struct engine *engine, unsigned children)
{
	*side = (struct side){ .engine = engine };
	side->lane = (struct engine_lane){ .members = (1ull << children) - 1,
		                           .cells = CELLS,
		                           .payload = PAYLOAD };
	side->pool =
		(struct engine_pool){ .lane = &side->lane, .step = engine_cell_bytes(PAYLOAD) };
	side->pool.cells = calloc(CELLS, side->pool.step);
	assert_non_null(side->pool.cells);
	assert_true(engine->open(&side->pool));
}

static void side_close(struct side *side)
{
	if (side->engine->close)
		side->engine->close(&side->pool);
	free(side->pool.cells);
}

/* The packet that leaves; NULL: none does. */
static const struct engine_packet *side_take(struct side *side, const void *packet, uint32_t bytes)
{
	side->verdict = side->engine->take(&side->pool, packet, bytes, side->out);
	assert_false(side->out[0].bytes && side->out[1].bytes);
	return side->out[0].bytes ? &side->out[0] : side->out[1].bytes ? &side->out[1] : NULL;
}

static void compare_packets(const struct engine_packet *slot, const struct engine_packet *pisa)
{
	struct wire_header a, b;

	assert_true(!slot == !pisa);
	if (!slot || !pisa)
		return;
	assert_int_equal(slot->to, pisa->to);
	assert_int_equal(slot->bytes, pisa->bytes);
	assert_int_equal(slot->position, pisa->position);
	memcpy(&a, slot->data, sizeof(a));
	memcpy(&b, pisa->data, sizeof(b));
	assert_true((int32_t)(a.ack - b.ack) >= 0);
	b.ack = a.ack;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_equal(slot->data + WIRE_HEADER, pisa->data + WIRE_HEADER,
	                    slot->bytes - WIRE_HEADER);
}

static void compare_views(const struct side *slot, const struct side *pisa, uint32_t pos)
{
	const struct wire_header packet = { .pos = pos };
	struct engine_view a = slot->engine->view(&slot->pool, &packet);
	struct engine_view b = pisa->engine->view(&pisa->pool, &packet);

	assert_int_equal(a.position, b.position);
	assert_int_equal(a.arrived, b.arrived);
	assert_int_equal(slot->engine->position(&slot->pool, &packet),
	                 pisa->engine->position(&pisa->pool, &packet));
	if (!a.arrived)
		return;
	assert_int_equal(a.bytes, b.bytes);
	assert_int_equal(a.op, b.op);
}

/* What a child may send: mostly the operation that the slot waits for. */
static void draw(const struct side *slot, unsigned children, void *room, uint32_t *bytes)
{
	static const uint8_t ops[] = { WIRE_ADD32, WIRE_ADD64, WIRE_OR64, WIRE_MIN_I32,
		                       WIRE_MAX_U32 };
	struct wire_header *packet = room;
	const struct wire_header at = { .pos = below(CELLS) };
	uint32_t now = (uint32_t)slot->engine->view(&slot->pool, &at).position;
	uint32_t past = now >= CELLS ? now - CELLS : now;

	*packet = (struct wire_header){ .type = WIRE_DATA, .to = WIRE_ALL };
	packet->child = (uint8_t)(below(60) ? below(children) : below(256));
	packet->pos = below(10) ? now : below(2) ? past : now + CELLS;
	packet->ack = below(3) ? now : past;
	packet->op = ops[below(50) ? packet->pos % sizeof(ops) : below(sizeof(ops))];
	packet->scale = (uint16_t)(below(30) ? 1 : 2);
	packet->from = (uint8_t)(below(2) ? SLOT_ACKS : 0);
	*bytes = packet->pos % 11 ? 8 * (1 + packet->pos % (PAYLOAD / 8)) : 0;
	if (packet->from && below(2)) {
		packet->from |= SLOT_BARE | (below(2) ? SLOT_WANTS : 0);
		*bytes = 0;
	}
	for (uint32_t i = 0; i < *bytes; i++)
		((uint8_t *)(packet + 1))[i] = (uint8_t)below(256);
}

static void same_packets(void **state)
{
	const char *given = getenv("TRIB_SEED");
	uint64_t trials = test_cases("trials", 200), met[ENGINE_VERDICTS_END] = { 0 };
	_Alignas(8) uint8_t packet[WIRE_HEADER + PAYLOAD];
	static struct side slot, pisa;
	struct engine_counts counts = { 0 };
	uint32_t bytes;

	(void)state;
	random_state = given ? strtoull(given, NULL, 10) : 5;
	printf("TRIB_SEED=%llu\n", (unsigned long long)random_state);
	for (uint64_t trial = 0; trial < trials; trial++) {
		unsigned children = 1 + below(8);

		side_open(&slot, &engine_slot, children);
		side_open(&pisa, &engine_slot_pisa, children);
		for (unsigned i = 0; i < 400; i++) {
			const struct engine_packet *one, *two;

			draw(&slot, children, packet, &bytes);
			one = side_take(&slot, packet, bytes);
			two = side_take(&pisa, packet, bytes);
			assert_int_equal(slot.verdict, pisa.verdict);
			compare_packets(one, two);
			compare_views(&slot, &pisa, ((struct wire_header *)(void *)packet)->pos);
			met[slot.verdict]++;
			if (!below(300))
				pisa.lane.left = slot.lane.left |= 1ull << below(children);
		}
		pisa.engine->count(&pisa.pool, &counts);
		side_close(&slot);
		side_close(&pisa);
	}
	for (unsigned i = 0; i < ENGINE_REFUSED; i++)
		assert_true(
			met[i] ||
			i == ENGINE_SUMMED); /* the test must not pass because nothing happened */
	assert_true(counts.packets <= trials * 400 && counts.packets > trials * 300);
	assert_int_equal(counts.passes, counts.packets + counts.recirculations);
	assert_int_equal(counts.refused + counts.broken, 0);
}

/* A sum that waits, an operation that a switch lacks, and a barrier, which needs none. */
static void refuses_by_name(void **state)
{
	struct {
		struct wire_header header;
		uint64_t payload[1];
	} packet = { .header = { .type = WIRE_DATA, .op = WIRE_ADD32, .to = WIRE_ALL } };
	struct engine_counts counts = { 0 };
	static struct side pisa;

	(void)state;
	side_open(&pisa, &engine_slot_pisa, 3);
	assert_null(side_take(&pisa, &packet, 8));
	assert_int_equal(pisa.verdict, ENGINE_ADDED);
	assert_int_equal(pisa.engine->waiting(&pisa.pool), 6);
	packet.header.pos = 1;
	packet.header.op = WIRE_MIN_I64;
	assert_null(side_take(&pisa, &packet, 8));
	assert_int_equal(pisa.verdict, ENGINE_REFUSED);
	assert_string_equal(pisa.engine->why(&pisa.pool),
	                    "a minimum: Program slot refuses the operation WIRE_MIN_I64: a switch "
	                    "compares up to 32 bits");
	assert_null(side_take(&pisa, &packet, 0));
	assert_int_equal(pisa.verdict, ENGINE_ADDED);
	packet.header.child = 3;
	assert_null(side_take(&pisa, &packet, 0));
	assert_int_equal(pisa.verdict, ENGINE_STRANGER);
	pisa.engine->count(&pisa.pool, &counts);
	assert_int_equal(counts.packets, 3); /* the stranger's did not reach the switch */
	assert_int_equal(counts.refused, 1);
	pisa.engine->count(&pisa.pool, &counts);
	assert_int_equal(counts.packets, 3); /* each is counted once */
	side_close(&pisa);
}

static void fits(unsigned children, uint32_t payload, uint32_t cells, uint32_t payload_then,
                 uint32_t cells_then)
{
	char why[ENGINE_WHY_MAX] = "";

	if (!engine_slot_pisa.fit(children, &payload, &cells, why))
		fail_msg("%u children: %s", children, why);
	assert_int_equal(payload, payload_then);
	assert_int_equal(cells, cells_then);
}

static void takes_what_fits(void **state)
{
	uint32_t payload = 1448, cells = 1024;
	char why[ENGINE_WHY_MAX];

	(void)state;
	fits(8, 256, ENGINE_CELLS_MIN, 256, ENGINE_CELLS_MIN);
	fits(4, 1448, 1024, 1448, 1024);
	fits(4, 1448, 4096, 1448, 1024);  /* memory of the words */
	fits(32, 256, 65536, 256, 8192);  /* eight entries of 65,536 for each slot */
	fits(2, 8944, 1024, 1920, 1024);  /* recirculations */
	fits(2, 1928, 65536, 1920, 1024); /* both */
	assert_false(engine_slot_pisa.fit(33, &payload, &cells, why));
	assert_non_null(strstr(why, "Program slot breaks the rule 'form'"));
	assert_non_null(strstr(why, "register mark"));
	assert_int_equal(payload, 1448);
	assert_int_equal(cells, 1024);
}

static void tells_its_use(void **state)
{
	static struct side pisa;
	struct engine_use use;

	(void)state;
	side_open(&pisa, &engine_slot_pisa, 2);
	pisa.engine->use(&pisa.pool, &use);
	assert_int_equal(use.stages, 4);
	for (unsigned i = 0; i < use.stages; i++)
		assert_in_range(use.share[i], 1, 7083);
	side_close(&pisa);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_packets),
		cmocka_unit_test(refuses_by_name),
		cmocka_unit_test(takes_what_fits),
		cmocka_unit_test(tells_its_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
