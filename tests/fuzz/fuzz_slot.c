/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot engine and the worker's side of it. The first byte chooses one of three worlds:
 *
 * - Children that lie: any sequence of well-formed packets reaches the engine. A ledger beside it
 *   records the vectors that were accepted. Every sum equals the ledger's, and has a child's vector
 *   at most once.
 * - An aggregator that lies: any sequence of well-formed results reaches a worker. Nothing outside
 *   the buffers may be touched, and every packet sent must be valid.
 * - Nobody lies, but the network loses, duplicates and reorders packets. Every sum is exact, and
 *   when packets arrive again, all rounds end.
 */
#include "engine/slot.h"
#include "fuzz.h"
#include "number/number.h"
#include "wire/parse.h"
#include "worker/slot/slot_stream.h"

#include <math.h>
#include <string.h>

#define PAYLOAD 64u
#define WORDS (PAYLOAD / 8)
#define CHILDREN_MAX 8u
#define SLOTS_LIMIT 16u
#define ROUNDS_MAX 12u
#define COUNT_MAX 40u
#define PACKETS_MAX 64u
#define SECOND 1000000000ull

union packet {
	struct wire_header header;
	uint64_t words[3 + WORDS + 1];
};

static uint16_t two_bytes(struct fuzz_input *input)
{
	uint16_t low = fuzz_byte(input);

	return (uint16_t)(low | fuzz_byte(input) << 8);
}

/* ---- an engine ---- */

/* A pool of the exact size, so that a sanitizer detects accesses outside it. */
static void pool_open(struct engine_pool *pool, struct engine_lane *lane, uint32_t children,
                      uint32_t slots)
{
	*lane = (struct engine_lane){ .members = (1ull << children) - 1,
		                      .cells = slots,
		                      .payload = PAYLOAD };
	*pool = (struct engine_pool){ .lane = lane, .step = engine_cell_bytes(PAYLOAD) };
	pool->cells = calloc(slots, pool->step);
	demand(pool->cells);
	demand(engine_slot.open(pool));
}

static struct slot_cell *state_at(const struct engine_pool *pool, uint32_t index)
{
	return (struct slot_cell *)engine_cell(pool, index)->own;
}

/* Slots are where they belong, `low` is below all of them, and an answer is for members. */
static void pool_check(const struct engine_pool *pool, const struct engine_packet out[2])
{
	const struct slot_lane *lane = (const struct slot_lane *)pool->lane;

	for (uint32_t i = 0; i < lane->slots; i++) {
		const struct slot_cell *cell = state_at(pool, i);

		demand(cell->position % lane->slots == i && cell->position >= lane->low);
		demand(!(cell->arrived & ~lane->members) && !(cell->acked & ~lane->members));
		demand(cell->complete ? cell->arrived == lane->members : !cell->acked);
		demand(!engine_cell(pool, i)->lock && cell->bytes <= lane->payload);
	}
	for (unsigned i = 0; i < 2; i++) {
		demand(out[i].bytes <= WIRE_HEADER + lane->payload);
		demand(!out[i].bytes || !(out[i].to & (~lane->members | lane->left)));
	}
}

/* ---- children that lie ---- */

struct ledger {
	uint64_t position, taken;
	uint16_t scale;
	uint8_t op;
	uint32_t bytes;
	uint64_t words[WORDS];
};

static const uint8_t ops[] = { WIRE_ADD64, WIRE_ADD32, WIRE_OR64, WIRE_MAX_U64 };

static uint64_t combine_word(uint8_t op, uint64_t a, uint64_t b)
{
	if (op == WIRE_ADD64)
		return a + b;
	if (op == WIRE_ADD32)
		return ((a + b) & UINT32_MAX) | ((a >> 32) + (b >> 32)) << 32;
	if (op == WIRE_OR64)
		return a | b;
	return a > b ? a : b;
}

/* The engine accepted the vector. */
static void ledger_take(struct ledger *entry, uint64_t position, const union packet *packet,
                        uint32_t bytes)
{
	const struct wire_header *header = &packet->header;
	const uint64_t *words = packet->words + 3;

	if (!entry->taken || entry->position != position || header->scale > entry->scale) {
		*entry = (struct ledger){ .position = position,
			                  .scale = header->scale,
			                  .op = header->op,
			                  .bytes = bytes };
		memcpy(entry->words, words, bytes);
	} else {
		demand(header->scale == entry->scale && header->op == entry->op);
		demand(bytes == entry->bytes);
		for (uint32_t i = 0; i < bytes / 8; i++)
			entry->words[i] = combine_word(entry->op, entry->words[i], words[i]);
	}
	demand(!(entry->taken & child_bit(header->child)));
	entry->taken |= child_bit(header->child);
}

/* Near the operations that are under way, where the bugs are; or anywhere. */
static uint32_t draw_pos(struct fuzz_input *input, const struct engine_pool *pool)
{
	uint8_t step = fuzz_byte(input);

	if (step == 255)
		return (uint32_t)two_bytes(input) << 16 | two_bytes(input);
	return (uint32_t)((const struct slot_lane *)pool->lane)->low + (step & 31) - 8;
}

static uint32_t draw_packet(struct fuzz_input *input, const struct engine_pool *pool,
                            union packet *packet)
{
	uint32_t bytes = fuzz_byte(input) % (WORDS + 2) * 8;
	uint8_t form = fuzz_byte(input);

	packet->header = (struct wire_header){ .magic = WIRE_MAGIC,
		                               .type = WIRE_DATA,
		                               .flags = form & 0x80 ? fuzz_byte(input) : 0,
		                               .child = form % (CHILDREN_MAX + 1),
		                               .op = ops[form >> 4 & 3],
		                               .scale = fuzz_byte(input) % 3,
		                               .from = fuzz_byte(input) & 31,
		                               .to = form & 0x40 ? fuzz_byte(input) : WIRE_ALL };
	packet->header.pos = draw_pos(input, pool);
	packet->header.ack = draw_pos(input, pool);
	if (packet->header.from & 16) /* mostly as a worker sends it */
		packet->header.ack = packet->header.pos;
	for (uint32_t i = 0; i < bytes / 8; i++)
		packet->words[3 + i] = fuzz_byte(input) * 0x0101010101010101ull;
	return bytes;
}

static void check_sum(const struct engine_pool *pool, const struct ledger *entry,
                      const struct engine_packet *out)
{
	demand(entry->taken == pool->lane->members);
	demand(!out->bytes || out->bytes == WIRE_HEADER + entry->bytes);
	demand(!out->bytes || !memcmp(out->data + WIRE_HEADER, entry->words, entry->bytes));
}

static void give_packet(struct fuzz_input *input, const struct engine_pool *pool,
                        struct ledger *ledger)
{
	static struct engine_packet out[2];
	union packet packet;
	uint32_t bytes = draw_packet(input, pool, &packet), index;
	uint64_t low = ((struct slot_lane *)pool->lane)->low, position;
	enum engine_verdict verdict;

	if (wire_parse(&packet, WIRE_HEADER + bytes) != WIRE_SOUND)
		return;
	index = packet.header.pos % pool->lane->cells;
	/* An acknowledgement in the same packet may clear the slot before the vector is judged. */
	verdict = engine_slot.take(pool, &packet.header, bytes, out);
	position = engine_slot.position(pool, &packet.header);
	if (verdict == ENGINE_ADDED || verdict == ENGINE_COMPLETE)
		ledger_take(&ledger[index], position, &packet, bytes);
	if (verdict == ENGINE_COMPLETE || verdict == ENGINE_FINISHED)
		check_sum(pool, &ledger[index], &out[1]);
	demand(((struct slot_lane *)pool->lane)->low >= low);
	pool_check(pool, out);
	for (uint32_t i = 0; i < pool->lane->cells; i++) {
		const struct slot_cell *cell = state_at(pool, i);

		if (!cell->arrived)
			continue;
		demand(cell->arrived == ledger[i].taken && cell->position == ledger[i].position);
		demand(!memcmp(engine_cell(pool, i)->sum, ledger[i].words, cell->bytes));
	}
}

static void run_engine(struct fuzz_input *input)
{
	struct ledger ledger[SLOTS_LIMIT] = { 0 };
	struct engine_lane lane;
	struct engine_pool pool;
	uint8_t form = fuzz_byte(input);

	pool_open(&pool, &lane, 1 + form % CHILDREN_MAX, 1u << (form >> 4) % 5);
	while (input->at < input->end) {
		if (fuzz_byte(input) == 1)
			lane.left |= child_bit(fuzz_byte(input) % CHILDREN_MAX) & lane.members;
		else
			give_packet(input, &pool, ledger);
	}
	free(pool.cells);
}

/* ---- workers ---- */

/* A collective, the same on all workers. */
struct call {
	size_t count;
	trib_type type;
	trib_op op;
	uint8_t from, to;
	bool copy;
	uint8_t seed;
};

struct worker;

/* A worker's part in it. */
struct part {
	struct worker *worker;
	const struct call *call;
	bool finished;
	void *source, *target;
};

struct worker {
	unsigned rank, ranks;
	struct stream stream;
	struct slot_stream slots;
	struct part parts[ROUNDS_MAX];
	unsigned posted, finished;
	bool liar; /* of the aggregator: results mean nothing */
};

static const trib_type types[] = { TRIB_F32, TRIB_I32, TRIB_I64, TRIB_F32,
	                           TRIB_U8,  TRIB_F64, TRIB_F16, TRIB_BF16 };

static struct call draw_call(struct fuzz_input *input)
{
	uint8_t form = fuzz_byte(input);
	struct call call = { .count = fuzz_byte(input) % (COUNT_MAX + 1),
		             .type = types[form % 8],
		             .op = (trib_op)(form >> 3 & 3),
		             .from = WIRE_ALL,
		             .to = WIRE_ALL,
		             .seed = fuzz_byte(input) };

	if (form >> 5 == 1) {
		call.copy = true;
		call.type = TRIB_U8;
		call.from = 0;
	} else if (form >> 5 == 2) {
		call.to = 0;
	}
	return call;
}

/* Whole numbers, so that sums of floats are exact. Some ranks have larger ones, or none at all. */
static double value_of(const struct call *call, unsigned rank, size_t i)
{
	unsigned r = (call->seed + 1u) * 31 + rank * 17 + (unsigned)i * 7;

	if (call->seed % 8 == 1 && r % 11 == 0 && number_is_float(call->type))
		return r % 3 == 0 ? (double)NAN : r % 3 == 1 ? HUGE_VAL : -HUGE_VAL;
	return (double)(r % 8) * (call->seed % 4 == 2 && rank == 1 ? 8 : 1);
}

static void put_value(const struct call *call, void *to, size_t i, double value)
{
	float single = (float)value;
	uint32_t bits;

	memcpy(&bits, &single, 4);
	switch (call->type) {
	case TRIB_F64:
		((double *)to)[i] = value;
		break;
	case TRIB_F32:
		((float *)to)[i] = single;
		break;
	case TRIB_BF16: /* these values need few bits */
		((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
		break;
	case TRIB_F16: { /* small whole numbers, and special values */
		int exponent = (int)(bits >> 23 & 255) - 112;

		((uint16_t *)to)[i] =
			(uint16_t)(bits >> 16 & 0x8000) |
			(uint16_t)(value == 0       ? 0
		                   : exponent >= 31 ? 0x7c00 | (isnan(value) ? 0x200 : 0)
		                                    : exponent << 10 | (int)(bits >> 13 & 0x3ff));
		break;
	}
	case TRIB_I64:
		((int64_t *)to)[i] = (int64_t)value;
		break;
	case TRIB_I32:
		((int32_t *)to)[i] = (int32_t)value;
		break;
	default:
		((uint8_t *)to)[i] = (uint8_t)value;
	}
}

/* What all ranks have to get; *exact: it has only one right value. */
static double result_of(const struct call *call, unsigned ranks, size_t i, bool *exact)
{
	double result = value_of(call, 0, i);

	*exact = call->copy || call->op != TRIB_AVG;
	for (unsigned rank = 1; rank < ranks && !call->copy; rank++) {
		double value = value_of(call, rank, i);

		if (call->op == TRIB_SUM || call->op == TRIB_AVG)
			result += value;
		else if (isnan(value) || isnan(result))
			*exact = false;
		else if (call->op == TRIB_MIN ? value < result : value > result)
			result = value;
	}
	return result;
}

static bool is_nan(trib_type type, const uint8_t *element)
{
	uint64_t bits = 0;
	unsigned mantissa = type == TRIB_F16    ? 10
	                    : type == TRIB_BF16 ? 7
	                    : type == TRIB_F32  ? 23
	                                        : 52;
	uint64_t magnitude = (1ull << (8 * trib_type_size(type) - 1)) - 1;

	memcpy(&bits, element, trib_type_size(type));
	return (bits & magnitude) > (magnitude >> mantissa << mantissa);
}

static void check_result(const struct worker *worker, const struct part *part)
{
	size_t size = trib_type_size(part->call->type);

	for (size_t i = 0; part->target && i < part->call->count; i++) {
		const uint8_t *got = (const uint8_t *)part->target + i * size;
		_Alignas(8) uint8_t want[8];
		bool exact;
		double result = result_of(part->call, worker->ranks, i, &exact);

		if (!exact)
			continue;
		put_value(part->call, want, 0, result);
		demand(isnan(result) ? is_nan(part->call->type, got) : !memcmp(got, want, size));
	}
}

static void on_finished(void *context, struct round *round)
{
	struct worker *worker = context;
	struct part *part = round->owner;

	demand(round->finished == round_fragments(round) && !part->finished);
	part->finished = true;
	worker->finished++;
	if (!worker->liar)
		check_result(worker, part);
}

static void worker_open(struct worker *worker, unsigned rank, unsigned ranks, uint32_t slots,
                        bool liar)
{
	*worker = (struct worker){ .rank = rank, .ranks = ranks, .liar = liar };
	stream_init(&worker->stream, 0, rank, ranks, slots, PAYLOAD);
	worker->stream.on_finished = on_finished;
	worker->stream.context = worker;
	demand(slot_stream_init(&worker->slots, &worker->stream, slots, PAYLOAD));
}

static void worker_close(struct worker *worker)
{
	stream_clear(&worker->stream);
	slot_stream_free(&worker->slots);
	for (unsigned i = 0; i < worker->posted; i++) {
		free(worker->parts[i].source);
		free(worker->parts[i].target);
	}
}

static void worker_post(struct worker *worker, const struct call *call, uint64_t now)
{
	struct part *part = &worker->parts[worker->posted++];
	size_t bytes = call->count * trib_type_size(call->type);
	struct round_spec spec = { .count = call->count,
		                   .type = call->type,
		                   .op = call->op,
		                   .copy = call->copy,
		                   .from = call->from,
		                   .to = call->to,
		                   .small = (uint8_t)worker->stream.workers,
		                   .slot = true,
		                   .owner = part };
	struct round *round;

	*part = (struct part){ .worker = worker, .call = call, .source = malloc(bytes + 1) };
	demand(part->source);
	for (size_t i = 0; i < call->count; i++)
		put_value(call, part->source, i, value_of(call, worker->rank, i));
	if (call->to == WIRE_ALL || call->to == worker->rank)
		demand((part->target = malloc(bytes ? bytes : 1)));
	spec.source = part->source;
	spec.target = part->target;
	round = round_new(&spec, worker->rank, PAYLOAD);
	demand(round);
	slot_stream_post(&worker->slots, round, now);
}

/* The next packet that is due; 0: none. */
static uint32_t worker_next(struct worker *worker, uint64_t now, union packet *packet)
{
	uint32_t bytes = slot_stream_next(&worker->slots, now, packet);

	if (!bytes)
		return 0;
	demand(bytes <= WIRE_HEADER + PAYLOAD && packet->header.child == worker->rank);
	demand(wire_parse(packet, bytes) == WIRE_SOUND);
	return bytes;
}

static void worker_check(const struct worker *worker)
{
	const struct slot_flow *flow = &worker->slots.flow;

	demand(flow->low <= flow->unacked && flow->unacked <= flow->done);
	demand(flow->done <= flow->unsent && flow->unsent <= flow->next);
	demand(flow->next <= flow->low + flow->slots && flow->next <= worker->stream.next_base);
	demand(worker->finished <= worker->posted);
}

/* ---- an aggregator that lies ---- */

static void give_lie(struct fuzz_input *input, struct worker *worker, uint64_t now)
{
	const struct slot_flow *flow = &worker->slots.flow;
	uint8_t bend = fuzz_byte(input), step = fuzz_byte(input);
	uint64_t position = flow->done + (step & 15) - (step & 0x10 ? 8 : 0);
	const struct slot_entry *entry = &flow->entries[position % flow->slots];
	uint32_t bytes = bend & 1 ? fuzz_byte(input) % (WORDS + 1) * 8 : entry->bytes;
	union packet *packet = calloc(1, WIRE_HEADER + bytes);

	demand(packet);
	packet->header = (struct wire_header){ .magic = WIRE_MAGIC,
		                               .type = WIRE_RESULT,
		                               .child = WIRE_ALL,
		                               .flags = entry->shape,
		                               .op = entry->op,
		                               .pos = (uint32_t)position,
		                               .ack = (uint32_t)flow->low,
		                               .scale = entry->scale,
		                               .to = WIRE_ALL };
	if (bend & 2)
		packet->header.ack += fuzz_byte(input);
	if (bend & 4)
		packet->header.scale = two_bytes(input);
	if (bend & 8)
		packet->header.from = fuzz_byte(input) & 31;
	if (bend & 16)
		packet->header.op = fuzz_byte(input) % WIRE_OPS_END;
	if (bend & 32)
		packet->header.flags = fuzz_byte(input);
	if (bend & 64)
		packet->header.pos = (uint32_t)two_bytes(input) << 16 | two_bytes(input);
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)(&packet->header + 1))[i] = bend & 128 ? fuzz_byte(input) : step;
	if (wire_parse(packet, WIRE_HEADER + bytes) == WIRE_SOUND)
		slot_stream_take(&worker->slots, &packet->header, bytes, now);
	free(packet);
}

static void run_liar(struct fuzz_input *input)
{
	static struct worker worker;
	static struct call calls[ROUNDS_MAX];
	uint8_t form = fuzz_byte(input);
	unsigned ranks = 1 + form % 64;
	uint64_t now = SECOND;
	union packet packet;

	worker_open(&worker, fuzz_byte(input) % ranks, ranks, 1u << (form >> 6), true);
	while (input->at < input->end) {
		switch (fuzz_byte(input) % 4) {
		case 0:
			if (worker.posted == ROUNDS_MAX)
				break;
			calls[worker.posted] = draw_call(input);
			worker_post(&worker, &calls[worker.posted], now);
			break;
		case 1:
			now += two_bytes(input) * 5000ull;
			while (worker_next(&worker, now, &packet))
				;
			break;
		default:
			give_lie(input, &worker, now);
		}
		worker_check(&worker);
	}
	worker_close(&worker);
}

/* ---- nobody lies ---- */

struct letter {
	unsigned to; /* a worker, or CHILDREN_MAX: the aggregator */
	uint32_t bytes;
	union packet packet;
};

struct world {
	struct engine_lane lane;
	struct engine_pool pool;
	struct worker workers[CHILDREN_MAX];
	unsigned ranks, n_calls, n_letters;
	struct call calls[ROUNDS_MAX];
	struct letter letters[PACKETS_MAX];
	uint64_t now;
};

/* If the network is full, it loses the packet. */
static void mail(struct world *world, unsigned to, const void *packet, uint32_t bytes)
{
	struct letter *letter = &world->letters[world->n_letters];

	if (world->n_letters == PACKETS_MAX)
		return;
	world->n_letters++;
	letter->to = to;
	letter->bytes = bytes;
	memcpy(&letter->packet, packet, bytes);
}

static void aggregator_takes(struct world *world, const struct letter *letter)
{
	static struct engine_packet out[2];
	enum engine_verdict verdict = engine_slot.take(&world->pool, &letter->packet.header,
	                                               letter->bytes - WIRE_HEADER, out);

	/* Workers that do not lie never see these. */
	demand(verdict != ENGINE_MISMATCH && verdict != ENGINE_AHEAD && verdict != ENGINE_STRANGER);
	pool_check(&world->pool, out);
	for (unsigned i = 0; i < 2; i++)
		for (uint64_t to = out[i].bytes ? out[i].to : 0; to; to &= to - 1) {
			((struct wire_header *)out[i].data)->magic = WIRE_MAGIC;
			mail(world, (unsigned)__builtin_ctzll(to), out[i].data, out[i].bytes);
		}
}

static void lose(struct world *world, unsigned i)
{
	world->letters[i] = world->letters[world->n_letters - 1];
	world->n_letters--;
}

static void deliver(struct world *world, unsigned i, bool stays)
{
	struct letter letter = world->letters[i];
	struct worker *worker = &world->workers[letter.to % CHILDREN_MAX];

	if (!stays)
		lose(world, i);
	demand(wire_parse(&letter.packet, letter.bytes) == WIRE_SOUND);
	if (letter.to == CHILDREN_MAX) {
		aggregator_takes(world, &letter);
		return;
	}
	demand(slot_stream_take(&worker->slots, &letter.packet.header, letter.bytes - WIRE_HEADER,
	                        world->now));
	worker_check(worker);
}

static void worker_sends(struct world *world, struct worker *worker)
{
	union packet packet;
	uint32_t bytes = worker_next(worker, world->now, &packet);

	if (bytes)
		mail(world, CHILDREN_MAX, &packet, bytes);
}

static void worker_calls(struct world *world, struct worker *worker, struct fuzz_input *input)
{
	if (worker->posted == ROUNDS_MAX)
		return;
	if (worker->posted == world->n_calls)
		world->calls[world->n_calls++] = draw_call(input);
	worker_post(worker, &world->calls[worker->posted], world->now);
}

/* From now on packets arrive: all rounds end. */
static void finish_all(struct world *world, struct fuzz_input *input)
{
	unsigned left = 1;

	for (unsigned w = 0; w < world->ranks; w++)
		while (world->workers[w].posted < world->n_calls)
			worker_calls(world, &world->workers[w], input);
	for (unsigned turn = 0; left; turn++) {
		demand(turn < 5000);
		left = 0;
		world->now += SECOND / 10;
		for (unsigned w = 0; w < world->ranks; w++) {
			worker_sends(world, &world->workers[w]);
			left += world->n_calls - world->workers[w].finished;
		}
		while (world->n_letters)
			deliver(world, 0, false);
	}
}

static void run_honest(struct fuzz_input *input)
{
	static struct world world;
	uint8_t form = fuzz_byte(input);
	uint32_t slots = 1u << (form >> 4) % 4;

	world.ranks = 1 + form % CHILDREN_MAX;
	world.n_calls = world.n_letters = 0;
	world.now = SECOND;
	pool_open(&world.pool, &world.lane, world.ranks, slots);
	for (unsigned w = 0; w < world.ranks; w++)
		worker_open(&world.workers[w], w, world.ranks, slots, false);
	while (input->at < input->end) {
		uint8_t what = fuzz_byte(input), which = fuzz_byte(input);
		struct worker *worker = &world.workers[which % world.ranks];

		if (what % 8 == 0)
			worker_calls(&world, worker, input);
		else if (what % 8 < 4)
			worker_sends(&world, worker);
		else if (what % 8 == 4)
			world.now += which * SECOND / 1000;
		else if (world.n_letters && what % 8 == 5 && which & 1)
			lose(&world, which % world.n_letters);
		else if (world.n_letters)
			deliver(&world, which % world.n_letters, what % 8 == 6);
	}
	finish_all(&world, input);
	for (unsigned w = 0; w < world.ranks; w++)
		worker_close(&world.workers[w]);
	free(world.pool.cells);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	switch (fuzz_byte(&input) % 3) {
	case 0:
		run_engine(&input);
		break;
	case 1:
		run_liar(&input);
		break;
	default:
		run_honest(&input);
	}
	return 0;
}
