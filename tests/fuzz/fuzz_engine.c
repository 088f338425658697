/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dense engine with children and a parent that lie: any sequence of well-formed packets, with
 * any position, scale and acknowledgement. A ledger beside it records the accepted contributions.
 * The engine must keep its invariants. Every sum must equal the ledger's, until a parent's result
 * replaces it.
 */
#include "engine/uplink.h"
#include "fuzz.h"

#include <string.h>

#define CELLS_MAX 16
#define WORDS_MAX 4

struct ledger_entry {
	uint64_t position, taken;
	uint16_t scale;
	uint64_t words[WORDS_MAX];
};

struct bench {
	struct dense_lane lane;
	struct dense_cell cells[CELLS_MAX];
	uint64_t sums[CELLS_MAX][WORDS_MAX];
	struct ledger_entry ledger[CELLS_MAX];
	struct uplink up;
	uint64_t ring[CELLS_MAX];
	struct fuzz_input input;
};

static const uint8_t ops[] = { WIRE_ADD32, WIRE_ADD64, WIRE_OR64, WIRE_MAX_U64 };

static uint64_t word_combine(uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case WIRE_ADD32:
		return ((a + b) & UINT32_MAX) | ((a >> 32) + (b >> 32)) << 32;
	case WIRE_ADD64:
		return a + b;
	case WIRE_OR64:
		return a | b;
	default:
		return a > b ? a : b;
	}
}

static void bench_init(struct bench *bench)
{
	uint8_t workers = (uint8_t)(1 + fuzz_byte(&bench->input) % 64);

	for (unsigned child = 0; child < workers; child++)
		dense_add_child(&bench->lane, child, child_bit(child));
	bench->lane.cells = 1 + fuzz_byte(&bench->input) % CELLS_MAX;
	bench->lane.payload = 8u * (1 + fuzz_byte(&bench->input) % WORDS_MAX);
	bench->lane.has_parent = fuzz_byte(&bench->input) & 1;
	bench->up.ring = bench->ring;
	for (unsigned i = 0; i < CELLS_MAX; i++)
		bench->cells[i].position = bench->ledger[i].position = DENSE_EMPTY;
}

/*
 * Mostly small differences around the window, where the bugs are. The high bit selects a position
 * far away.
 */
static uint64_t near_low(struct bench *bench)
{
	uint8_t step = fuzz_byte(&bench->input);
	uint64_t position = bench->lane.low + (step & 0x3f) - 16;

	return (step & 0x80 ? position << 20 : position) & WIRE_POSITION_MASK;
}

static void ledger_take(struct ledger_entry *entry, uint64_t position,
                        const struct wire_header *packet, const uint64_t *words, uint32_t bytes)
{
	if (entry->position != position || packet->scale > entry->scale) {
		*entry = (struct ledger_entry){ .position = position, .scale = packet->scale };
		memcpy(entry->words, words, bytes);
	} else {
		demand(packet->scale == entry->scale);
		for (uint32_t i = 0; i < bytes / 8; i++)
			entry->words[i] = word_combine(packet->op, entry->words[i], words[i]);
	}
	demand(!(entry->taken & child_bit(packet->child)));
	entry->taken |= child_bit(packet->child);
}

static void packet_give(struct bench *bench)
{
	struct wire_header packet = { .type = WIRE_DATA, .pos = (uint32_t)near_low(bench) };
	uint64_t position = dense_position(&bench->lane, &packet);
	uint64_t words[WORDS_MAX], old_low = bench->lane.low;
	uint32_t at = dense_index(&bench->lane, position);
	uint32_t bytes = 8u * (fuzz_byte(&bench->input) % (WORDS_MAX + 1));
	uint8_t form = fuzz_byte(&bench->input);
	enum dense_verdict verdict;

	packet.child = fuzz_byte(&bench->input) % WIRE_CHILDREN_MAX;
	packet.op = ops[form % 4];
	packet.from = form & 0x10 ? packet.child : form & 0x20 ? form % 64 : WIRE_ALL;
	packet.to = form & 0x40 ? form % 64 : WIRE_ALL;
	packet.scale = fuzz_byte(&bench->input) % 4;
	packet.ack = (uint32_t)near_low(bench);
	memset(words, fuzz_byte(&bench->input), sizeof(words));

	verdict =
		dense_take(&bench->lane, &bench->cells[at], bench->sums[at], &packet, words, bytes);
	demand(verdict < DENSE_VERDICTS_END);
	demand(bench->lane.low >= old_low);
	if (verdict == DENSE_SUMMED)
		uplink_push(&bench->up, &bench->lane, &bench->cells[at]);
	if (verdict != DENSE_ADDED && verdict != DENSE_COMPLETE && verdict != DENSE_SUMMED)
		return;
	/* Completing it may have moved the window past it. */
	demand(position >= old_low && position < bench->lane.low + bench->lane.cells);
	demand(bytes <= bench->lane.payload && bench->lane.members & child_bit(packet.child));
	ledger_take(&bench->ledger[at], position, &packet, words, bytes);
	demand(memcmp(bench->ledger[at].words, bench->sums[at], bytes) == 0);
	demand(bench->ledger[at].taken == bench->cells[at].arrived);
	demand(verdict != (bench->lane.has_parent ? DENSE_COMPLETE : DENSE_SUMMED));
	demand((verdict != DENSE_ADDED) ==
	       !(dense_expected(&bench->lane, packet.from) & ~bench->ledger[at].taken));
}

static void report_give(struct bench *bench)
{
	struct wire_report report = { .base = near_low(bench), .young = 10 };
	struct wire_status status;
	uint64_t repeat[WIRE_GROUP / 64];
	unsigned child = fuzz_byte(&bench->input) % WIRE_CHILDREN_MAX;
	const struct dense_pool pool = { .cells = (uint8_t *)bench->cells,
		                         .cell_step = sizeof(bench->cells[0]) };

	report.bits = fuzz_byte(&bench->input) * 4u;
	memset(report.missing, fuzz_byte(&bench->input), sizeof(report.missing));
	dense_answer(&bench->lane, &pool, child, &report, 1000, 0, &status, repeat);
	demand(status.bits == report.bits && status.low == bench->lane.low);
	for (uint32_t i = 0; i < WIRE_GROUP; i++) {
		uint64_t position = (report.base + i) & WIRE_POSITION_MASK;
		const struct dense_cell *cell = &bench->cells[dense_index(&bench->lane, position)];

		if (repeat[i / 64] >> i % 64 & 1)
			demand(i < report.bits && cell->position == position && cell->complete);
		if (status.missing[i / 64] >> i % 64 & 1)
			demand(i < report.bits && position >= bench->lane.ack[child]);
	}
}

static struct dense_pool pool_of(struct bench *bench)
{
	return (struct dense_pool){ .cells = (uint8_t *)bench->cells,
		                    .cell_step = sizeof(bench->cells[0]) };
}

/*
 * A result from the parent. Only positions that are summed, or without contributors here, may
 * accept it.
 */
static void result_give(struct bench *bench)
{
	struct wire_header packet = { .type = WIRE_RESULT, .pos = (uint32_t)near_low(bench) };
	uint64_t words[WORDS_MAX], position = dense_position(&bench->lane, &packet);
	uint32_t at = dense_index(&bench->lane, position);
	uint32_t bytes = 8u * (fuzz_byte(&bench->input) % (WORDS_MAX + 1));
	uint8_t form = fuzz_byte(&bench->input);
	struct dense_cell before = bench->cells[at];

	packet.op = ops[form % 4];
	packet.from = form & 0x20 ? form % 64 : WIRE_ALL;
	packet.to = form & 0x40 ? form % 64 : WIRE_ALL;
	packet.scale = fuzz_byte(&bench->input) % 4;
	packet.ack = (uint32_t)near_low(bench);
	memset(words, fuzz_byte(&bench->input), sizeof(words));
	if (uplink_take(&bench->lane, &bench->cells[at], bench->sums[at], &packet, words, bytes) !=
	    DENSE_COMPLETE)
		return;
	demand(position >= bench->lane.low && bytes <= bench->lane.payload);
	demand(before.position == position
	               ? before.summed && !before.complete && before.scale == packet.scale
	               : !dense_expected(&bench->lane, packet.from));
	demand(bench->cells[at].complete && memcmp(bench->sums[at], words, bytes) == 0);
}

/* A status from the parent, and our reaction. */
static void status_give(struct bench *bench)
{
	struct dense_pool pool = pool_of(bench);
	struct wire_status status = { .base = near_low(bench), .low = near_low(bench) };
	struct wire_report report;
	struct uplink_news news;
	struct dense_cell *cell;

	status.stamp = fuzz_byte(&bench->input);
	status.bits = fuzz_byte(&bench->input) * 4u;
	memset(status.missing, fuzz_byte(&bench->input), sizeof(status.missing));
	memset(status.complete, fuzz_byte(&bench->input), sizeof(status.complete));
	uplink_status(&bench->up, &bench->lane, &pool, &status, 200, &news);
	for (uint32_t i = 0; i < WIRE_GROUP; i++)
		if (news.again[i / 64] >> i % 64 & 1) {
			cell = uplink_cell(&bench->lane, &pool,
			                   (status.base + i) & WIRE_POSITION_MASK);
			demand(i < status.bits && cell && cell->summed && !cell->complete);
			uplink_push(&bench->up, &bench->lane, cell);
		}
	while (fuzz_byte(&bench->input) & 1 &&
	       (cell = uplink_pop(&bench->up, &bench->lane, &pool))) {
		demand(cell->summed && !cell->complete);
		uplink_raise(&bench->up, &bench->lane, cell, 100);
	}
	uplink_report(&bench->up, &bench->lane, &pool, near_low(bench), fuzz_byte(&bench->input),
	              NULL, NULL, 300, &report);
	demand(report.bits <= WIRE_GROUP);
}

static void invariants_check(const struct bench *bench)
{
	demand(!bench->lane.has_parent || bench->lane.low <= bench->lane.settled);
	for (unsigned child = 0; child < WIRE_CHILDREN_MAX; child++) {
		if (bench->lane.members & ~bench->lane.left & child_bit(child))
			demand(bench->lane.ack[child] >= bench->lane.low);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	bench.input = (struct fuzz_input){ data, data + size };
	bench_init(&bench);
	while (bench.input.at < bench.input.end) {
		uint8_t what = fuzz_byte(&bench.input) % 8;

		if (what == 0)
			report_give(&bench);
		else if (what == 1 && bench.lane.has_parent)
			result_give(&bench);
		else if (what == 2 && bench.lane.has_parent)
			status_give(&bench);
		else
			packet_give(&bench);
		invariants_check(&bench);
	}
	return 0;
}
