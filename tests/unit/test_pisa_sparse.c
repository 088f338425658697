/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine on the switch, as an entry in the table of engines: the same packets in, the
 * same packets and verdicts out as from engine_sparse, and the same sums when the server reads
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/sparse_bank.h"
#include "pisa/pisa_sparse.h"
#include "plane/pisa/pisa_engine.h"
#include "short.h"

#define PAYLOAD 256u
#define CELLS 64u

static uint64_t random_state;

static uint32_t below(uint32_t end)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return end ? (uint32_t)((random_state >> 33) % end) : 0;
}

static void seed_start(const char *name)
{
	const char *given = getenv("TRIB_SEED");

	random_state = given ? strtoull(given, NULL, 10) : 25;
	printf("%s: TRIB_SEED=%llu\n", name, (unsigned long long)random_state);
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

struct twins {
	struct side plain, pisa;
	unsigned children; /* the last one is the server */
	struct sparse_setup setup;
	uint64_t next[8]; /* of each worker: the next sequence number */
	uint64_t met[ENGINE_VERDICTS_END], refused[SPARSE_BAD + 1], news;
	_Alignas(8) uint8_t packet[WIRE_PACKET_MAX];
};

static void compare_packets(const struct engine_packet *a, const struct engine_packet *b)
{
	assert_int_equal(a->bytes, b->bytes);
	if (!a->bytes)
		return;
	assert_int_equal(a->to, b->to);
	assert_int_equal(a->position, b->position);
	assert_memory_equal(a->data, b->data, a->bytes);
}

/* Gives the packet to both. */
static void both(struct twins *t, uint32_t bytes)
{
	const struct wire_header *packet = (const void *)t->packet;
	const struct wire_header *answer = (const void *)t->plain.out[0].data;
	struct side *a = &t->plain, *b = &t->pisa;

	assert_int_equal(a->engine->position(&a->pool, packet),
	                 b->engine->position(&b->pool, packet));
	a->verdict = a->engine->take(&a->pool, packet, bytes, a->out);
	b->verdict = b->engine->take(&b->pool, packet, bytes, b->out);
	assert_int_equal(a->verdict, b->verdict);
	compare_packets(&a->out[0], &b->out[0]);
	compare_packets(&a->out[1], &b->out[1]);
	t->met[a->verdict]++;
	t->news += a->out[1].bytes > 0;
	if (a->out[0].bytes && answer->from & SPARSE_REFUSED) {
		assert_in_range(answer->to, 1, SPARSE_BAD);
		t->refused[answer->to]++;
	}
}

/* A packet of the server, without payload unless it was put behind the header. */
static void server_sends(struct twins *t, enum sparse_kind kind, uint32_t pos, uint32_t ack,
                         uint32_t scale, uint32_t bytes)
{
	*(struct wire_header *)(void *)t->packet =
		(struct wire_header){ .type = WIRE_DATA,
		                      .child = (uint8_t)(t->children - 1),
		                      .op = (uint8_t)kind,
		                      .pos = pos,
		                      .ack = ack,
		                      .scale = (uint16_t)scale };
	both(t, bytes);
}

static void twins_open(struct twins *t, unsigned children, uint32_t width)
{
	memset(t, 0, sizeof(*t));
	t->children = children;
	side_open(&t->plain, &engine_sparse, children);
	side_open(&t->pisa, &engine_sparse_pisa, children);
	t->setup.width = width;
	t->setup.layout = below(2);
	t->setup.rows = 1 + below(sparse_rows_max(CELLS, PAYLOAD, width, t->setup.layout));
	t->setup.generation = below(4);
}

static void twins_close(struct twins *t)
{
	side_close(&t->plain);
	side_close(&t->pisa);
}

static struct sparse_lane *lane_of(struct twins *t)
{
	return sparse_lane_of(&t->plain.pool);
}

static void set_up(struct twins *t)
{
	memcpy(t->packet + WIRE_HEADER, &t->setup, sizeof(t->setup));
	server_sends(t, SPARSE_SETUP, 0, 0, 0, sizeof(t->setup));
}

/* ---- random packets ---- */

/* The bits of a float: any, one of a few, or one near to those. */
static uint32_t any_float(void)
{
	static const uint32_t edges[] = { 0,           0x80000000u, 1,           0x807fffffu,
		                          0x00800000,  0x80800001u, 0x3f800000u, 0xbf800000u,
		                          0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u,
		                          0x7fc00001u, 0xff800001u };

	switch (below(8)) {
	case 0:
		return edges[below(sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return below(1u << 16) << 16 | below(1u << 16);
	case 2: /* their sums cancel */
		return 0x3f800000u | below(2) << 31 | below(3);
	default:
		return below(2) << 31 | (120 + below(16)) << 23 | below(1u << 23);
	}
}

static uint32_t any_value(uint32_t kind)
{
	static const int32_t edges[] = { 0, 1, -1, SPARSE_LARGEST, -SPARSE_LARGEST };

	if (kind == SPARSE_TABLE)
		return any_float();
	if (below(20) == 0)
		return (uint32_t)edges[below(5)];
	if (below(3000) == 0)
		return below(2) ? (uint32_t)SPARSE_LARGEST + 1 : 0x80000000u;
	return (below(2 * SPARSE_LARGEST + 1)) - (uint32_t)SPARSE_LARGEST;
}

/* Rows that ascend, mostly. Hot rows are more frequent. */
static uint32_t draw_rows(struct twins *t, bool with_values)
{
	void *payload = t->packet + WIRE_HEADER;
	struct sparse_rows *head = payload;
	sparse_number *numbers = sparse_numbers(payload);
	uint32_t width = t->setup.width, most = sparse_rows_fit(PAYLOAD, width), n = 0;
	uint32_t wanted = below(most + 1), step = 1 + below(3 * t->setup.rows / (wanted + 1) + 1);

	for (uint32_t row = below(4); row < t->setup.rows && n < wanted; row += 1 + below(step))
		numbers[n++] = (sparse_number)row;
	if (n > 1 && below(60) == 0)
		numbers[below(n)] = numbers[0];
	if (n && below(60) == 0)
		numbers[n - 1] = (sparse_number)t->setup.rows;
	*head = (struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)width };
	if (below(60) == 0)
		head->width++;
	if (below(60) == 0)
		head->unused = 1;
	for (uint32_t i = 0; with_values && i < n * width; i++)
		sparse_values(payload, n)[i] = any_value(t->setup.kind);
	return sparse_rows_bytes(n, width, with_values);
}

/* The next one, one of before, or one too early. */
static uint32_t draw_sequence(struct twins *t, unsigned child)
{
	uint64_t *next = &t->next[child];

	switch (below(12)) {
	case 0:
		return (uint32_t)*next - below(300); /* also before number 0 */
	case 1:
		return (uint32_t)*next + below(300);
	case 2:
		return (uint32_t)sparse_state(engine_cell(&t->plain.pool, child))->low;
	case 3: /* leaves a gap */
		*next += 1 + below(3);
		return (uint32_t)(*next)++;
	default:
		return (uint32_t)(*next)++;
	}
}

static void worker_sends(struct twins *t)
{
	struct wire_header *packet = (void *)t->packet;
	unsigned child = below(40) ? below(t->children - 1) : below(70);
	bool pulls = below(10) == 0;
	uint32_t bytes = draw_rows(t, !pulls);

	*packet = (struct wire_header){ .type = WIRE_DATA,
		                        .flags = below(4) ? 0 : WIRE_RESENT,
		                        .child = (uint8_t)child,
		                        .op = pulls ? SPARSE_PULL : SPARSE_PUSH,
		                        .scale = (uint16_t)lane_of(t)->generation,
		                        .to = WIRE_ALL };
	packet->pos = pulls || child >= t->children ? below(1000) : draw_sequence(t, child);
	if (below(30) == 0)
		packet->scale++;
	if (below(30) == 0)
		packet->from = SPARSE_URGENT;
	if (below(20) == 0) {
		packet->from |= SPARSE_VOID;
		bytes = below(10) ? 0 : bytes;
	}
	if (below(60) == 0)
		bytes = 8 * below(PAYLOAD / 8 + 1);
	both(t, bytes);
}

/* Gaps are filled now and then, so that records move on. */
static void gaps_fill(struct twins *t)
{
	struct wire_header *packet = (void *)t->packet;

	for (unsigned child = 0; child < t->children - 1; child++)
		for (uint64_t at = sparse_state(engine_cell(&t->plain.pool, child))->low;
		     at < t->next[child]; at++) {
			*packet = (struct wire_header){ .type = WIRE_DATA,
				                        .flags = WIRE_RESENT,
				                        .child = (uint8_t)child,
				                        .op = SPARSE_PUSH,
				                        .pos = (uint32_t)at,
				                        .from = SPARSE_VOID };
			both(t, 0);
		}
}

static void flush(struct twins *t)
{
	const struct sparse_lane *lane = lane_of(t);

	server_sends(t, SPARSE_FREEZE, lane->epoch + 1, 0, lane->generation + below(2), 0);
	for (unsigned i = below(4); i; i--)
		worker_sends(t);
	for (uint32_t page = 0; page < sparse_pages(PAYLOAD, lane->blocks); page++)
		server_sends(t, SPARSE_READ, lane->epoch, page, 0, 0);
	server_sends(t, SPARSE_RELEASE, lane->epoch, 0, 0, 0);
}

static void server_acts(struct twins *t)
{
	const struct sparse_lane *lane = lane_of(t);
	uint64_t *payload = (void *)(t->packet + WIRE_HEADER);

	switch (below(6)) {
	case 0:
		server_sends(t, SPARSE_FREEZE, lane->epoch + below(3), 0, lane->generation, 0);
		break;
	case 1:
		server_sends(t, SPARSE_READ, lane->epoch, below(lane->blocks + 5), 0, 0);
		break;
	case 2:
		server_sends(t, SPARSE_RELEASE, lane->epoch + below(2), 0, 0, 0);
		break;
	case 3:
		payload[0] = 1;
		for (uint32_t i = 0; i < t->setup.width; i++)
			((sparse_value *)(payload + 1))[i] = any_value(t->setup.kind);
		server_sends(t, SPARSE_WRITE, below(1000), below(lane->blocks + 1),
		             lane->generation, sparse_block_bytes(1, t->setup.width));
		break;
	default:
		flush(t);
		gaps_fill(t);
	}
}

static void same_packets(void **state)
{
	static const uint32_t widths[] = { 1, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 60 };
	uint64_t trials = test_cases("trials", 120), met[ENGINE_VERDICTS_END] = { 0 };
	uint64_t refused[SPARSE_BAD + 1] = { 0 }, news = 0;
	struct engine_counts counts = { 0 };
	static struct twins t;

	(void)state;
	seed_start("same_packets");
	for (uint64_t trial = 0; trial < trials; trial++) {
		twins_open(&t, 2 + below(7), widths[trial % 12]);
		t.setup.kind = trial / 12 % 2 ? SPARSE_TABLE : SPARSE_FIXED;
		worker_sends(&t); /* too early */
		set_up(&t);
		for (unsigned i = 0; i < 600; i++) {
			if (below(30))
				worker_sends(&t);
			else
				server_acts(&t);
			if (!below(500))
				t.plain.lane.left = t.pisa.lane.left |= 1ull << below(t.children);
		}
		flush(&t);
		t.pisa.engine->count(&t.pisa.pool, &counts);
		for (unsigned i = 0; i < ENGINE_VERDICTS_END; i++)
			met[i] += t.met[i];
		for (unsigned i = 0; i <= SPARSE_BAD; i++)
			refused[i] += t.refused[i];
		news += t.news;
		twins_close(&t);
	}
	printf("%llu pushes, %llu recirculations\n", (unsigned long long)counts.packets,
	       (unsigned long long)counts.recirculations);
	/* The test must not pass because nothing happened. */
	assert_true(met[ENGINE_ADDED] > trials * 100 && met[ENGINE_DUPLICATE] &&
	            met[ENGINE_FINISHED] && met[ENGINE_STALE] && met[ENGINE_AHEAD] &&
	            met[ENGINE_STRANGER] && met[ENGINE_ACK] && news);
	for (unsigned i = 1; i <= SPARSE_BAD; i++)
		assert_true(refused[i] || i == SPARSE_FULL);
	assert_true(counts.recirculations > trials);
	assert_int_equal(counts.passes, counts.packets + counts.recirculations);
	assert_int_equal(counts.refused + counts.broken, 0);
}

/* A payload of so many rows, from `first` on, `step` apart; all values are `value`. */
static uint32_t put_rows(struct twins *t, uint32_t n, uint32_t first, uint32_t step, uint32_t value)
{
	void *payload = t->packet + WIRE_HEADER;

	*(struct sparse_rows *)payload =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)t->setup.width };
	for (uint32_t i = 0; i < n; i++)
		sparse_numbers(payload)[i] = (sparse_number)(first + i * step);
	for (uint32_t i = 0; i < n * t->setup.width; i++)
		sparse_values(payload, n)[i] = value;
	return sparse_rows_bytes(n, t->setup.width, 1);
}

static void push(struct twins *t, unsigned child, uint32_t bytes)
{
	*(struct wire_header *)(void *)t->packet =
		(struct wire_header){ .type = WIRE_DATA,
		                      .child = (uint8_t)child,
		                      .op = SPARSE_PUSH,
		                      .pos = (uint32_t)t->next[child]++,
		                      .scale = (uint16_t)lane_of(t)->generation };
	both(t, bytes);
}

/* Full blocks are refused, others are not, and sums of the largest values do not overflow. */
static void full_blocks(void **state)
{
	struct engine_counts asked = { 0 }, then = { 0 };
	static struct twins t;

	(void)state;
	twins_open(&t, 2, 1);
	t.setup.rows = 200; /* four blocks */
	set_up(&t);
	for (unsigned i = 0; i < SPARSE_ADDENDS; i++) {
		push(&t, 0, put_rows(&t, 2, 0, 63, SPARSE_LARGEST));
		assert_int_equal(t.plain.verdict, ENGINE_ADDED);
	}
	assert_int_equal(t.news, 1);
	push(&t, 0, put_rows(&t, 1, 5, 1, 1));
	assert_int_equal(t.plain.verdict, ENGINE_AHEAD);
	assert_int_equal(t.refused[SPARSE_FULL], 1);
	t.next[0]--;
	push(&t, 0, put_rows(&t, 1, 180, 1, 1));
	assert_int_equal(t.plain.verdict, ENGINE_ADDED);
	t.pisa.engine->count(&t.pisa.pool, &asked);
	flush(&t);
	t.pisa.engine->count(&t.pisa.pool, &(struct engine_counts){ 0 });
	push(&t, 0, put_rows(&t, 1, 5, 1, 1));
	assert_int_equal(t.plain.verdict, ENGINE_ADDED);
	t.pisa.engine->count(&t.pisa.pool, &then);
	assert_int_equal(asked.packets, SPARSE_ADDENDS + 3); /* the last one twice */
	assert_int_equal(then.packets, 1);                   /* the processor judges no more */
	flush(&t);
	twins_close(&t);
}

static uint64_t passes_of(struct twins *t, uint32_t bytes)
{
	struct engine_counts before = { 0 }, after = { 0 };

	t->pisa.engine->count(&t->pisa.pool, &before);
	push(t, 0, bytes);
	assert_int_equal(t->plain.verdict, ENGINE_ADDED);
	t->pisa.engine->count(&t->pisa.pool, &after);
	return after.passes;
}

static void passes_are_as_promised(void **state)
{
	static struct twins t;

	(void)state;
	twins_open(&t, 2, 1);
	t.setup.rows = 640;
	set_up(&t);
	assert_int_equal(passes_of(&t, put_rows(&t, 0, 0, 1, 1)), 1);
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 3, 1, 1)), 1);   /* one window */
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 0, 17, 1)), 1);  /* all arrays */
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 0, 8, 1)), 8);   /* two arrays */
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 5, 16, 1)), 16); /* one array */
	assert_int_equal(passes_of(&t, put_rows(&t, 32, 0, 1, 1)), 3);   /* two windows */
	assert_int_equal(passes_of(&t, put_rows(&t, 40, 0, 16, 1)), 2 + 40);
	twins_close(&t);
	twins_open(&t, 2, 20); /* two windows a row */
	t.setup.rows = 50;
	set_up(&t);
	assert_int_equal(passes_of(&t, put_rows(&t, 1, 7, 1, 1)), 3);
	assert_int_equal(passes_of(&t, put_rows(&t, 2, 7, 1, 1)), 7);
	twins_close(&t);
}

static enum pisa_sparse_verdict push_alone(struct pisa_sparse *it, uint32_t pos)
{
	const struct wire_header packet = {
		.type = WIRE_DATA, .op = SPARSE_PUSH, .pos = pos, .from = SPARSE_VOID
	};
	struct pisa_sparse_answer answer;

	pisa_sparse_push(it, &packet, NULL, 0, false, &answer);
	assert_int_equal(answer.fate, PISA_ONE);
	return answer.verdict;
}

/* Low halves of sequence numbers begin again. */
static void numbers_wrap(void **state)
{
	struct pisa_sparse *it = calloc(1, sizeof(*it));
	const struct pisa_limits limits = pisa_sparse_limits(SPARSE_FIXED);
	const struct pisa_sparse_size size = {
		.width = 1, .rows = 10, .payload = WIRE_PAYLOAD_MIN, .children = 2
	};
	char why[PISA_WHY_MAX];
	void *memory;

	(void)state;
	assert_non_null(it);
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_OBEYS);
	memory = malloc(pisa_sparse_memory(it));
	assert_non_null(memory);
	pisa_sparse_start(it, &limits, memory);
	pisa_sparse_set_low(it, 0, (1ull << 32) - 3);
	for (uint32_t i = 253; i < 256; i++)
		pisa_poke(&it->sw, PUSH_A_NEXT, i, 0xffffff00u);
	assert_int_equal(push_alone(it, 0xfffffffdu), PUSH_ADDED);
	assert_int_equal(push_alone(it, 0xfffffffdu), PUSH_SEEN);
	assert_int_equal(push_alone(it, 0xfffffff0u), PUSH_SEEN);
	assert_int_equal(push_alone(it, 0), PUSH_ADDED);
	assert_int_equal(push_alone(it, 253), PUSH_REFUSED); /* too far */
	pisa_sparse_set_low(it, 0, (1ull << 32) + 1);
	assert_int_equal(push_alone(it, 253), PUSH_ADDED);
	assert_int_equal(push_alone(it, 253), PUSH_SEEN);
	assert_int_equal(push_alone(it, 0xffffffffu), PUSH_SEEN);
	free(memory);
	free(it);
}

/* Another packet changes a sum after it was read: the row is added to that. */
static void sums_that_change(void **state)
{
	struct pisa_sparse *it = calloc(1, sizeof(*it));
	const struct pisa_limits limits = pisa_sparse_limits(SPARSE_TABLE);
	const struct wire_header header = { .type = WIRE_DATA, .op = SPARSE_PUSH };
	struct pisa_sparse_size size = { .width = 1,
		                         .rows = 10,
		                         .payload = WIRE_PAYLOAD_MIN,
		                         .children = 2,
		                         .kind = SPARSE_TABLE };
	_Alignas(8) uint8_t payload[32] = { 0 };
	char why[PISA_WHY_MAX];
	struct pisa_packet packet;
	void *memory;

	(void)state;
	assert_non_null(it);
	assert_true(sparse_bank_has(SPARSE_TABLE));
	size.tables = sparse_bank_tables();
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_OBEYS);
	memory = malloc(pisa_sparse_memory(it));
	assert_non_null(memory);
	pisa_sparse_start(it, &limits, memory);
	((struct sparse_rows *)(void *)payload)->n = 1;
	((struct sparse_rows *)(void *)payload)->width = 1;
	sparse_values(payload, 1)[0] = 0x3f800000u;
	pisa_sparse_begin(it, &packet, &header, payload, sparse_rows_bytes(1, 1, 1));
	pisa_begin(&it->sw, &packet);
	assert_int_equal(pisa_pass(&it->sw, &packet), PISA_AGAIN); /* checks */
	for (uint32_t i = 0; i < 3; i++) {                         /* reads 1, 1.5 and 2 */
		pisa_poke(&it->sw, PUSH_A_SUM, 0, 0x3f800000u + (i << 22));
		assert_int_equal(pisa_pass(&it->sw, &packet), PISA_AGAIN);
	}
	assert_int_equal(pisa_pass(&it->sw, &packet), PISA_ONE);
	assert_int_equal(pisa_sparse_sum(it, 0, 0, 0),
	                 float_table_add(size.tables, 0x40000000u, 0x3f800000u));
	free(memory);
	free(it);
}

/* ---- what fits ---- */

/* Whatever SETUP such a lane allows, the program fits. */
static void fits_all(struct pisa_sparse *it, uint32_t payload, uint32_t cells, uint32_t kind)
{
	const struct pisa_limits limits = pisa_sparse_limits(kind);
	char why[PISA_WHY_MAX] = "";

	assert_true(sparse_bank_has(kind));
	for (uint32_t width = 1; sparse_per_block(payload, width); width++)
		for (uint32_t caches = 0; caches < 2; caches++) {
			const struct pisa_sparse_size size = {
				.width = width,
				.rows = sparse_rows_max(cells, payload, width, caches),
				.payload = payload,
				.children = 9,
				.kind = kind,
				.tables = sparse_bank_tables(),
			};

			if (pisa_sparse_build(it, &size, &limits, why) != PISA_OBEYS)
				fail_msg("rows of %u: %s", width, why);
		}
}

static void takes_what_fits(void **state)
{
	struct pisa_sparse *it = calloc(1, sizeof(*it));
	uint32_t payload = 1448, cells = 65536;
	char why[ENGINE_WHY_MAX] = "";

	(void)state;
	assert_non_null(it);
	assert_true(engine_sparse_pisa.fit(9, &payload, &cells, why));
	printf("%u bytes, %u cells\n", payload, cells);
	assert_in_range(payload, WIRE_PAYLOAD_MIN, 384);
	assert_true(cells >= 256);
	assert_true(sparse_rows_max(cells, payload, 1, 1) > 5000);
	fits_all(it, payload, cells, SPARSE_FIXED);
	fits_all(it, payload, cells, SPARSE_TABLE);
	free(it);
	payload = 8944;
	cells = 65536;
	assert_true(engine_sparse_pisa.fit(64, &payload, &cells, why));
	assert_in_range(payload, WIRE_PAYLOAD_MIN, 384);
	payload = WIRE_PAYLOAD_MIN;
	cells = 16;
	assert_true(engine_sparse_pisa.fit(64, &payload, &cells, why));
	assert_int_equal(payload, WIRE_PAYLOAD_MIN);
	assert_int_equal(cells, 16);
}

/* 5 % of 20 MB hold 32,768 values, twice. */
static void keeps_its_budget(void **state)
{
	struct pisa_sparse *it = calloc(1, sizeof(*it));
	struct pisa_limits limits = pisa_sparse_limits(SPARSE_FIXED);
	struct pisa_sparse_size size = {
		.width = 1, .rows = 32768, .payload = WIRE_PAYLOAD_MIN, .children = 64
	};
	char why[PISA_WHY_MAX] = "";
	uint64_t bytes = 0;

	(void)state;
	assert_non_null(it);
	if (pisa_sparse_build(it, &size, &limits, why) != PISA_OBEYS)
		fail_msg("%s", why);
	for (unsigned i = 0; i < limits.stages; i++)
		bytes += (uint64_t)pisa_stage_blocks(&it->code.program, &limits, i) *
		         limits.block_bits / 8;
	printf("%llu bytes of registers\n", (unsigned long long)bytes);
	assert_true(bytes <= 1u << 20);
	size.rows++;
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_RULE_MEMORY);
	assert_string_equal(why, "Program sparse breaks the rule 'memory': pass none, stage 2, "
	                         "register sum 1: stage 2: 5.66 % of its memory, and the budget "
	                         "is 4.72 %.");
	limits.budget = 6;
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_OBEYS);
	size.width = 16;
	size.rows = 2049;
	limits.budget = 5;
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_RULE_MEMORY);
	size.rows = 2048;
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_OBEYS);
	size.payload = 1448;
	size.width = 1;
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_RULE_RECIRCULATION);
	free(it);
}

static void tells_its_use(void **state)
{
	static struct side pisa;
	struct engine_use use;

	(void)state;
	side_open(&pisa, &engine_sparse_pisa, 2);
	pisa.engine->use(&pisa.pool, &use);
	assert_int_equal(use.stages, 12);
	for (unsigned i = 0; i < use.stages - 1; i++)
		assert_in_range(use.share[i], 1, 472);
	side_close(&pisa);
}

/* The tables of 16 adders, at most 64 blocks in a stage. */
static void keeps_tables(void **state)
{
	struct pisa_sparse *it = calloc(1, sizeof(*it));
	struct pisa_limits limits = pisa_sparse_limits(SPARSE_TABLE);
	struct pisa_sparse_size size = { .width = 1,
		                         .rows = 32768,
		                         .payload = WIRE_PAYLOAD_MIN,
		                         .children = 64,
		                         .kind = SPARSE_TABLE,
		                         .tables = sparse_bank_tables() };
	char why[PISA_WHY_MAX] = "";
	uint32_t blocks = 0;

	(void)state;
	assert_non_null(it);
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_OBEYS);
	for (unsigned i = 0; i < limits.stages; i++)
		blocks += pisa_table_blocks(&it->code.program, &limits, i);
	assert_int_equal(blocks, 448);
	limits.blocks = 68; /* 5 for registers, 63 for tables */
	assert_int_equal(pisa_sparse_build(it, &size, &limits, why), PISA_RULE_MEMORY);
	assert_string_equal(why, "Program sparse breaks the rule 'memory': pass none, stage 1, "
	                         "register none: match tables take 64 blocks, and 63 are left.");
	free(it);
}

/* A row whose sums are zero takes one pass to be added, and another one two. */
static void passes_of_tables(void **state)
{
	static struct twins t;

	(void)state;
	twins_open(&t, 2, 1);
	t.setup.rows = 640;
	t.setup.kind = SPARSE_TABLE;
	set_up(&t);
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 0, 1, 0x3f800000u)), 2);
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 0, 1, 0x3f800000u)), 3);
	assert_int_equal(passes_of(&t, put_rows(&t, 16, 8, 1, 0x3f800000u)), 3);
	assert_int_equal(passes_of(&t, put_rows(&t, 2, 0, 16, 0x40000000u)), 1 + 2 + 2);
	assert_int_equal(passes_of(&t, put_rows(&t, 17, 0, 1, 0x40000000u)), 2 + 2 + 2);
	flush(&t);
	twins_close(&t);
}

static void refuses_by_name(void **state)
{
	struct {
		struct wire_header header;
		struct sparse_setup setup;
	} packet = { .header = { .type = WIRE_DATA, .child = 1, .op = SPARSE_SETUP },
		     .setup = { .width = 1, .rows = 10, .kind = SPARSE_TABLE } };
	static struct side pisa;

	(void)state;
	side_open(&pisa, &engine_sparse_pisa, 2);
	pisa.lane.payload = 1448; /* more rows than a packet has passes */
	assert_int_equal(
		pisa.engine->take(&pisa.pool, &packet.header, sizeof(packet.setup), pisa.out),
		ENGINE_REFUSED);
	assert_int_equal(pisa.out[0].bytes, 0);
	assert_non_null(strstr(pisa.engine->why(&pisa.pool),
	                       "Program sparse breaks the rule 'recirculation'"));
	side_close(&pisa);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_packets),           cmocka_unit_test(full_blocks),
		cmocka_unit_test(passes_are_as_promised), cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(takes_what_fits),        cmocka_unit_test(keeps_its_budget),
		cmocka_unit_test(tells_its_use),          cmocka_unit_test(refuses_by_name),
		cmocka_unit_test(keeps_tables),           cmocka_unit_test(passes_of_tables),
		cmocka_unit_test(sums_that_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
