/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/pisa/pisa_engine.h"

#include "pisa/pisa_slot.h"
#include "plane/pisa/switch_lane.h"

#define WORD_BYTES 4u /* of a register */

/* A lane's switch. */
struct slot_switch {
	struct switch_lane base;
	struct pisa_slot slot;
};

static struct pisa_slot *slot_of(const struct engine_pool *pool)
{
	return &((struct slot_switch *)switch_of(pool))->slot;
}

/* ---- the size of the program ---- */

/* The longest payload: every eight words take a recirculation. */
static enum pisa_rule fit_payload(struct pisa_slot *slot, struct pisa_slot_size *size,
                                  const struct pisa_limits *limits, char *why)
{
	const uint32_t chunk = PISA_SLOT_WORDS * WORD_BYTES;
	enum pisa_rule rule = pisa_slot_build(slot, size, limits, why);

	while (rule == PISA_RULE_RECIRCULATION && size->payload >= WIRE_PAYLOAD_MIN + chunk) {
		size->payload = (size->payload - 1) / chunk * chunk;
		rule = pisa_slot_build(slot, size, limits, why);
	}
	return rule;
}

static int fit(unsigned children, uint32_t *payload, uint32_t *cells, char *why)
{
	struct pisa_slot *slot = calloc(1, sizeof(*slot));
	struct pisa_slot_size size = { ENGINE_CELLS_MIN, *payload, children };
	const struct pisa_limits limits = pisa_limits_default();
	enum pisa_rule rule;

	if (!slot) {
		snprintf(why, ENGINE_WHY_MAX, "There is no memory for a switch.");
		return 0;
	}
	rule = fit_payload(slot, &size, &limits, why);
	if (rule == PISA_OBEYS && *cells > ENGINE_CELLS_MIN) {
		size.slots = *cells;
		while ((rule = pisa_slot_build(slot, &size, &limits, why)) == PISA_RULE_MEMORY &&
		       size.slots > ENGINE_CELLS_MIN)
			size.slots /= 2;
	}
	free(slot);
	if (rule != PISA_OBEYS)
		return 0;
	*payload = size.payload;
	*cells = size.slots;
	return 1;
}

/* ---- a lane ---- */

static int open_switch(const struct engine_pool *pool)
{
	const struct engine_lane *lane = pool->lane;
	const struct pisa_slot_size size = {
		.slots = lane->cells,
		.payload = lane->payload,
		.children = 64 - (unsigned)__builtin_clzll(lane->members | 1),
	};
	const struct pisa_limits limits = pisa_limits_default();
	struct slot_switch *it = switch_new(pool, sizeof(*it));

	if (!it || pisa_slot_build(&it->slot, &size, &limits, it->base.why) != PISA_OBEYS)
		return 0; /* fit() has found a size that the loader takes */
	it->base.registers = malloc(pisa_slot_memory(&it->slot));
	if (!it->base.registers)
		return 0;
	pisa_slot_start(&it->slot, &limits, (uint32_t)lane->members, it->base.registers);
	return 1;
}

/* ---- packets ---- */

static uint64_t position_of(const struct engine_pool *pool, const struct wire_header *packet)
{
	return pisa_slot_position(slot_of(pool), packet->pos);
}

/* What a user called: the switch names operations as packets do. */
static const char *op_words(uint8_t op)
{
	return op <= WIRE_ADD64 ? "a sum" : op <= WIRE_MIN_U64 ? "a minimum" : "a maximum";
}

static enum engine_verdict refuse(struct switch_lane *it, const struct wire_header *packet,
                                  const struct pisa_slot_answer *answer)
{
	char what[24] = "";

	if (answer->fate == PISA_REFUSED)
		snprintf(what, sizeof(what), "%s: ", op_words(packet->op));
	return switch_refuse(it, what, answer->why);
}

/* The payload is in place already. */
static void put_answer(const struct pisa_slot *slot, const struct pisa_slot_answer *answer,
                       struct engine_packet *out)
{
	if (!answer->to)
		return;
	memcpy(out->data, &answer->header, sizeof(answer->header));
	out->to = answer->to;
	out->bytes = WIRE_HEADER + answer->bytes;
	out->position = pisa_slot_position(slot, answer->header.pos);
}

static enum engine_verdict take(const struct engine_pool *pool, const struct wire_header *packet,
                                uint32_t bytes, struct engine_packet out[2])
{
	static const uint8_t verdicts[SLOT_VERDICTS_END + 1] = {
		[SLOT_ADDED] = ENGINE_ADDED,       [SLOT_COMPLETE] = ENGINE_COMPLETE,
		[SLOT_RAISED] = ENGINE_ADDED,      [SLOT_DUPLICATE] = ENGINE_DUPLICATE,
		[SLOT_FINISHED] = ENGINE_FINISHED, [SLOT_LOWER] = ENGINE_LOWER,
		[SLOT_STALE] = ENGINE_STALE,       [SLOT_AHEAD] = ENGINE_AHEAD,
		[SLOT_MISMATCH] = ENGINE_MISMATCH, [SLOT_STRANGER] = ENGINE_STRANGER,
		[SLOT_VERDICTS_END] = ENGINE_ACK,
	};
	struct pisa_slot *slot = slot_of(pool);
	struct pisa_slot_answer answer;
	uint8_t *payload = out[0].data + WIRE_HEADER;

	out[0].bytes = out[1].bytes = 0;
	if (packet->child >= WIRE_CHILDREN_MAX || !(pool->lane->members & child_bit(packet->child)))
		return ENGINE_STRANGER;
	if (bytes > WIRE_PAYLOAD_MAX)
		return ENGINE_MISMATCH;
	memcpy(payload, packet + 1, bytes);
	slot->left = (uint32_t)pool->lane->left;
	pisa_slot_take(slot, packet, payload, bytes, &answer);
	if (answer.fate == PISA_REFUSED || answer.fate == PISA_BROKEN)
		return refuse(switch_of(pool), packet, &answer);
	put_answer(slot, &answer, &out[0]);
	return (enum engine_verdict)verdicts[answer.verdict];
}

/* ---- for people ---- */

/* The control plane reads registers. */
static struct engine_view view(const struct engine_pool *pool, const struct wire_header *packet)
{
	const struct pisa_slot *slot = slot_of(pool);
	uint32_t at = packet->pos % slot->size.slots;
	uint32_t position = (uint32_t)pisa_peek(&slot->sw, SLOT_A_POSITION, at) + at;
	uint64_t mark = pisa_peek(&slot->sw, SLOT_A_MARK, at);

	return (struct engine_view){ .position = pisa_slot_position(slot, position),
		                     .arrived = mark >> 32,
		                     .bytes = mark & 0xffff,
		                     .op = (uint8_t)pisa_peek(&slot->sw, SLOT_A_FORM, at),
		                     .from = WIRE_ALL };
}

static uint64_t waiting(const struct engine_pool *pool)
{
	return pisa_slot_waiting(slot_of(pool));
}

static void count(const struct engine_pool *pool, struct engine_counts *to)
{
	switch_count(&slot_of(pool)->sw, switch_of(pool), to);
}

static void use(const struct engine_pool *pool, struct engine_use *to)
{
	switch_use(slot_of(pool)->sw.program, &slot_of(pool)->sw.limits, to);
}

const struct engine engine_slot_pisa = {
	.name = "slot",
	.number = ENGINE_SLOT,
	.calls = 1,
	.open = open_switch,
	.position = position_of,
	.take = take,
	.view = view,
	.waiting = waiting,
	.fit = fit,
	.close = switch_close,
	.why = switch_why,
	.count = count,
	.use = use,
};

const struct engine *const pisa_engines[ENGINES_MAX] = {
	[ENGINE_SLOT] = &engine_slot_pisa, [ENGINE_SPARSE] = &engine_sparse_pisa
};
