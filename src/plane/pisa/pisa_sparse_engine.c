/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine on a switch. The pipeline takes PUSH packets (pisa/pisa_sparse.h). All others
 * go to the processor of the switch (the paper's Libra_s), which is this file. It runs the engine's
 * own code on the lane's cells, and keeps the registers in step: it reads sums from registers
 * before a page is made, and clears them after RELEASE.
 *
 * The program depends on the width of a row. So it is loaded with SETUP.
 */
#include "engine/sparse_bank.h"
#include "pisa/pisa_sparse.h"
#include "plane/pisa/pisa_engine.h"
#include "plane/pisa/switch_lane.h"

_Static_assert(sizeof(struct sparse_lane) <=
                       __builtin_offsetof(struct engine_lane, own) + SWITCH_WORD * 8,
               "the engine leaves a word");

struct row_switch {
	struct switch_lane base; /* no registers: no SETUP yet */
	struct pisa_sparse sparse;
	bool asks; /* a block of the live bank is full */
};

/* ---- the size of the program ---- */

/* The longest payload: rows of one value, all in one array, take a pass each. */
static uint32_t longest_payload(uint32_t payload, const struct pisa_limits *limits)
{
	const struct pisa_sparse_layout layout = pisa_sparse_lay_out(1, 1, 1);

	while (payload >= WIRE_PAYLOAD_MIN + 8 &&
	       pisa_sparse_recirculations(&layout, payload) > limits->recirculations)
		payload -= 8;
	return payload;
}

/* The most entries of an array, as a logarithm. The smallest program fits. */
static unsigned most_entries(struct pisa_sparse *it, struct pisa_sparse_size size,
                             const struct pisa_limits *limits, char *why)
{
	for (size.rows = SPARSE_ROWS_MAX; size.rows > 1; size.rows /= 2)
		if (pisa_sparse_build(it, &size, limits, why) == PISA_OBEYS)
			break;
	return pisa_sparse_lay_out(1, size.rows, size.children).cell_bits;
}

/* Do the most rows that SETUP may name fit the switch, whatever their width? */
static bool all_widths_fit(uint32_t payload, uint32_t cells, unsigned most)
{
	for (uint32_t width = 1; sparse_per_block(payload, width); width++) {
		uint32_t rows = sparse_rows_max(cells, payload, width, 0);

		if (rows && pisa_sparse_lay_out(width, rows, 1).cell_bits > most)
			return false;
	}
	return true;
}

static int fit(unsigned children, uint32_t *payload, uint32_t *cells, char *why)
{
	const struct pisa_limits limits = pisa_sparse_limits(SPARSE_FIXED);
	struct pisa_sparse *it = calloc(1, sizeof(*it));
	struct pisa_sparse_size size = { .width = 1, .rows = 1, .children = children };
	enum pisa_rule rule;
	unsigned most;

	if (!it) {
		snprintf(why, ENGINE_WHY_MAX, "There is no memory for a switch.");
		return 0;
	}
	size.payload = longest_payload(*payload, &limits);
	rule = pisa_sparse_build(it, &size, &limits, why);
	if (rule == PISA_OBEYS) {
		most = most_entries(it, size, &limits, why);
		*payload = size.payload;
		while (*cells > ENGINE_CELLS_MIN && !all_widths_fit(*payload, *cells, most))
			*cells /= 2;
	}
	free(it);
	return rule == PISA_OBEYS;
}

/* ---- a lane ---- */

static unsigned children_of(const struct engine_lane *lane)
{
	return 64 - (unsigned)__builtin_clzll(lane->members | 1);
}

/* Until SETUP comes, the lane has the program of the most rows that one may name. */
static int open_switch(const struct engine_pool *pool)
{
	const struct engine_lane *lane = pool->lane;
	const struct pisa_limits limits = pisa_sparse_limits(SPARSE_FIXED);
	struct pisa_sparse_size size = { .width = 1,
		                         .rows = sparse_rows_max(lane->cells, lane->payload, 1, 0),
		                         .payload = lane->payload,
		                         .children = children_of(lane) };
	struct row_switch *it = switch_new(pool, sizeof(*it));

	if (size.rows == 0) /* no SETUP succeeds in so few cells */
		size.rows = 1;
	return it && engine_sparse.open(pool) &&
	       pisa_sparse_build(&it->sparse, &size, &limits, it->base.why) == PISA_OBEYS;
}

/* ---- the processor: what the server asks for ---- */

static void map_write(struct row_switch *it, const struct sparse_lane *lane)
{
	pisa_sparse_set_map(&it->sparse, lane->generation, lane->bank, it->asks);
}

/* Loads the program for the rows of SETUP. False: it does not fit the switch. */
static bool load(struct row_switch *it, const struct engine_pool *pool)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct pisa_sparse_size size = {
		.width = lane->setup.width,
		.rows = lane->setup.rows,
		.payload = lane->payload,
		.children = children_of(pool->lane),
		.kind = lane->setup.kind,
		.tables = sparse_bank_tables(),
	};
	const struct pisa_limits limits = pisa_sparse_limits(size.kind);
	char sentence[PISA_WHY_MAX];

	if (pisa_sparse_build(&it->sparse, &size, &limits, sentence) != PISA_OBEYS) {
		switch_refuse(&it->base, "", sentence);
		return false;
	}
	it->base.registers = malloc(pisa_sparse_memory(&it->sparse));
	if (!it->base.registers) {
		switch_refuse(&it->base, "", "There is no memory for a switch.");
		return false;
	}
	pisa_sparse_start(&it->sparse, &limits, it->base.registers);
	map_write(it, lane);
	return true;
}

/* The sums of the frozen rows of a block come from registers. */
static void page_fill(const struct row_switch *it, const struct engine_pool *pool, uint32_t block)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	struct engine_cell *cell = sparse_block(pool, !lane->bank, block);
	sparse_value *sums = (sparse_value *)cell->sum;

	for (uint64_t left = sparse_state(cell)->dirty; left; left &= left - 1) {
		uint32_t row = (uint32_t)__builtin_ctzll(left);

		for (uint32_t i = 0; i < lane->setup.width; i++)
			sums[row * lane->setup.width + i] = pisa_sparse_sum(
				&it->sparse, !lane->bank, block * lane->per_block + row, i);
	}
}

/* After RELEASE: the frozen bank is empty, and more is durable. */
static void release_follow(struct row_switch *it, const struct engine_pool *pool)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);

	pisa_sparse_clear(&it->sparse, !lane->bank);
	for (unsigned child = 0; lane->members >> child > 1; child++)
		pisa_sparse_set_durable(&it->sparse, child,
		                        sparse_state(engine_cell(pool, lane->limit + child))->more);
}

static enum engine_verdict take_others(const struct engine_pool *pool,
                                       const struct wire_header *packet, uint32_t bytes,
                                       struct engine_packet out[2])
{
	struct row_switch *it = switch_of(pool);
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct sparse_setup *setup = (const void *)(packet + 1);
	uint32_t was_frozen = lane->is_frozen, epoch = lane->epoch;
	enum engine_verdict verdict;

	/* The program has two banks. A SETUP for one is refused, as if it had no payload. */
	if (packet->op == SPARSE_SETUP && bytes == sizeof(*setup) &&
	    setup->layout & SPARSE_ONE_BANK)
		bytes = 0;
	if (packet->op == SPARSE_READ && was_frozen && packet->ack < lane->blocks)
		page_fill(it, pool, packet->ack);
	verdict = engine_sparse.take(pool, packet, bytes, out);
	if (lane->setup.width && !it->base.registers && !load(it, pool)) {
		out[0].bytes = out[1].bytes = 0;
		return ENGINE_REFUSED;
	}
	if (epoch != lane->epoch) {
		it->asks = false;
		map_write(it, lane);
	}
	if (was_frozen && !lane->is_frozen)
		release_follow(it, pool);
	return verdict;
}

/* ---- the processor: what it does about a PUSH ---- */

static struct sparse_cell *record_of(const struct engine_pool *pool, unsigned child)
{
	return sparse_state(engine_cell(pool, child));
}

/* Asks the server to freeze. `again`: also if it was asked in this epoch. */
static void tell_server(const struct engine_pool *pool, bool again, struct engine_packet *out)
{
	struct sparse_lane *lane = sparse_lane_of(pool);
	const struct wire_header header = { .type = WIRE_RESULT,
		                            .child = WIRE_ALL,
		                            .op = SPARSE_NEWS,
		                            .pos = lane->epoch,
		                            .scale = (uint16_t)lane->generation,
		                            .from = SPARSE_URGENT,
		                            .to = WIRE_ALL };

	if (lane->told && !again)
		return;
	lane->told = 1;
	memcpy(out->data, &header, sizeof(header));
	out->to = child_bit(63 - (unsigned)__builtin_clzll(lane->members)) & ~lane->left;
	out->bytes = out->to ? WIRE_HEADER : 0;
	out->position = lane->epoch;
}

/* Counts the packet in the blocks of its rows. Gives the most packets that one of them has. */
static uint32_t rows_note(const struct engine_pool *pool, const void *payload)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct sparse_rows *head = payload;
	const sparse_number *numbers = (const sparse_number *)(head + 1);
	uint32_t last = UINT32_MAX, most = 0;

	for (uint32_t i = 0; i < head->n; i++) {
		uint32_t block = numbers[i] / lane->per_block;
		struct sparse_cell *state = sparse_state(sparse_block(pool, lane->bank, block));

		state->addends += block != last;
		state->dirty |= 1ull << numbers[i] % lane->per_block;
		most = state->addends > most ? state->addends : most;
		last = block;
	}
	return most;
}

/* The mirror of a packet that was added. True: the server should freeze soon. */
static bool mirror(const struct engine_pool *pool, const struct wire_header *packet,
                   uint64_t sequence)
{
	struct row_switch *it = switch_of(pool);
	struct sparse_cell *record = record_of(pool, packet->child);
	uint32_t most = 0;

	sparse_enter(record, sequence);
	pisa_sparse_set_low(&it->sparse, packet->child, record->low);
	if (!(packet->from & SPARSE_VOID))
		most = rows_note(pool, packet + 1);
	if (most >= SPARSE_ADDENDS && !it->asks) {
		it->asks = true;
		map_write(it, sparse_lane_of(pool));
	}
	return most >= SPARSE_ADDENDS_MANY || packet->from & SPARSE_URGENT;
}

/* A packet that the pipeline left to the processor. */
static void judge(const struct engine_pool *pool, const struct wire_header *packet, uint32_t bytes,
                  struct pisa_sparse_answer *answer)
{
	struct row_switch *it = switch_of(pool);

	if (sparse_bank_addends(pool, packet + 1) < SPARSE_ADDENDS) {
		pisa_sparse_push(&it->sparse, packet, packet + 1, bytes, true, answer);
		return;
	}
	answer->verdict = PUSH_REFUSED;
	answer->header.from = SPARSE_REFUSED;
	answer->header.to = SPARSE_FULL;
}

static enum engine_verdict refused_verdict(uint8_t why)
{
	return why == SPARSE_OTHER_MAP ? ENGINE_STALE
	       : why == SPARSE_BAD     ? ENGINE_ACK
	                               : ENGINE_AHEAD;
}

static enum engine_verdict take_push(const struct engine_pool *pool,
                                     const struct wire_header *packet, uint32_t bytes,
                                     struct engine_packet out[2])
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	struct row_switch *it = switch_of(pool);
	const struct sparse_cell *frozen =
		sparse_state(engine_cell(pool, lane->limit + packet->child));
	uint64_t sequence = wire_widen(packet->pos, record_of(pool, packet->child)->low);
	struct pisa_sparse_answer answer;
	bool hurry = false;

	pisa_sparse_push(&it->sparse, packet, packet + 1, bytes, false, &answer);
	if (answer.fate == PISA_ONE && answer.verdict == PUSH_ASKS)
		judge(pool, packet, bytes, &answer);
	if (answer.fate != PISA_ONE)
		return switch_refuse(&it->base, "",
		                     answer.why ? answer.why : "A packet has no fate.");
	memcpy(out[0].data, &answer.header, sizeof(answer.header));
	out[0].to = child_bit(packet->child) & ~lane->left;
	out[0].bytes = out[0].to ? WIRE_HEADER : 0;
	out[0].position = sequence;
	if (answer.verdict == PUSH_ADDED)
		hurry = mirror(pool, packet, sequence);
	else if (answer.verdict == PUSH_SEEN)
		hurry = packet->from & SPARSE_URGENT && sparse_needs_freeze(lane, frozen, sequence);
	else
		hurry = answer.header.to == SPARSE_FULL;
	if (hurry)
		tell_server(pool, answer.verdict == PUSH_SEEN && packet->flags & WIRE_RESENT,
		            &out[1]);
	if (answer.verdict == PUSH_ADDED)
		return ENGINE_ADDED;
	if (answer.verdict == PUSH_SEEN)
		return sparse_repeat(packet);
	return refused_verdict(answer.header.to);
}

/* ---- the table ---- */

static enum engine_verdict take(const struct engine_pool *pool, const struct wire_header *packet,
                                uint32_t bytes, struct engine_packet out[2])
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct row_switch *it = switch_of(pool);

	out[0].bytes = out[1].bytes = 0;
	if (packet->op == SPARSE_PUSH && it->base.registers && sparse_knows(lane, packet->child) &&
	    !sparse_is_server(lane, packet->child))
		return take_push(pool, packet, bytes, out);
	return take_others(pool, packet, bytes, out);
}

static uint64_t position_of(const struct engine_pool *pool, const struct wire_header *packet)
{
	return engine_sparse.position(pool, packet);
}

static struct engine_view view(const struct engine_pool *pool, const struct wire_header *packet)
{
	return engine_sparse.view(pool, packet);
}

static uint64_t waiting(const struct engine_pool *pool)
{
	return engine_sparse.waiting(pool);
}

static void count(const struct engine_pool *pool, struct engine_counts *to)
{
	struct row_switch *it = switch_of(pool);

	switch_count(&it->sparse.sw, &it->base, to);
}

static void use(const struct engine_pool *pool, struct engine_use *to)
{
	const struct row_switch *it = switch_of(pool);
	const struct pisa_limits limits = pisa_sparse_limits(SPARSE_FIXED);

	switch_use(&it->sparse.code.program, &limits, to);
}

const struct engine engine_sparse_pisa = {
	.name = "sparse",
	.number = ENGINE_SPARSE,
	.layouts = SPARSE_VALUES,
	.open = open_switch,
	.position = position_of,
	.take = take,
	.view = view,
	.waiting = waiting,
	.sums = sparse_bank_sums,
	.fit = fit,
	.close = switch_close,
	.why = switch_why,
	.count = count,
	.use = use,
};
