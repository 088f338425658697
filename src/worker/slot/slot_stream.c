/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slot/slot_stream.h"

#include "number/number.h"

#include <stdlib.h>
#include <string.h>

bool slot_stream_init(struct slot_stream *slots, struct stream *stream, uint32_t n,
                      uint32_t payload)
{
	*slots = (struct slot_stream){ .stream = stream, .payload = payload };
	slots->entries = calloc(n, sizeof(*slots->entries));
	slots->payloads = calloc(n, payload);
	if (!slots->entries || !slots->payloads) {
		slot_stream_free(slots);
		return false;
	}
	slot_flow_init(&slots->flow, slots->entries, n, stream->child);
	return true;
}

void slot_stream_free(struct slot_stream *slots)
{
	free(slots->entries);
	free(slots->payloads);
	slots->entries = NULL;
	slots->payloads = NULL;
}

static uint8_t *payload_of(const struct slot_stream *slots, uint64_t position)
{
	return slots->payloads + (position & (slots->flow.slots - 1)) * slots->payload;
}

static uint32_t pad8(size_t bytes)
{
	return (uint32_t)((bytes + 7) & ~(size_t)7);
}

/* Fills the last word up. Gives the bytes with the padding. */
static uint32_t pad(uint8_t *out, size_t bytes)
{
	uint32_t whole = pad8(bytes);

	if (bytes < whole)
		memset(out + bytes, 0, whole - bytes);
	return whole;
}

static uint16_t class_of(uint16_t scale)
{
	return scale & (SLOT_SPECIAL - 1);
}

/* ---- encoding ---- */

/* Bytes of the counts of n elements' special values. */
static uint32_t counts_bytes(const struct round *round, size_t n)
{
	unsigned per = round_counts_per(round->workers);

	return (uint32_t)((n + per - 1) / per * 8);
}

/* Two counts for each element: of +inf or NaN, and of -inf or NaN. */
static uint32_t put_specials(const struct round *round, const uint8_t *source, size_t n,
                             uint8_t *out)
{
	unsigned per = round_counts_per(round->workers), bits = round_count_bits(round->workers);
	uint8_t mask[WIRE_PAYLOAD_MAX / 4] = { 0 };
	uint64_t *words = (uint64_t *)(void *)out;

	number_mask(round->type, source, n, mask, 0);
	memset(out, 0, counts_bytes(round, n));
	for (size_t i = 0; i < 2 * n; i++)
		if (mask[i / 8] >> i % 8 & 1)
			words[i / 2 / per] |= 1ull << i % (2 * (size_t)per) * bits;
	return counts_bytes(round, n);
}

/* At the scale `least`, or a higher one if the vector needs it. */
static uint32_t encode_scaled(const struct round *round, uint32_t block, uint16_t least,
                              uint16_t *scale, uint8_t *out)
{
	size_t first, n = round_block(round, block, &first);
	const uint8_t *source = round->source + first * round->element;
	size_t bytes = n * round->wire_element;
	bool special = false;
	uint16_t klass = number_classify(round->type, source, n, &special);
	uint32_t whole;

	if (klass < class_of(least))
		klass = class_of(least);
	*scale = klass | (uint16_t)(special ? SLOT_SPECIAL : least & SLOT_SPECIAL);
	number_encode(round->type, source, n, klass, round->workers, out);
	if (round->wire_element == 4)
		number_pair(out, n);
	whole = pad(out, bytes);
	if (*scale & SLOT_SPECIAL)
		whole += put_specials(round, source, n, out + whole);
	if (round->residual) /* what 32 bits lack is not worth keeping */
		memset(round->residual + first, 0, n * sizeof(*round->residual));
	return whole;
}

static uint32_t encode(const struct round *round, uint32_t block, uint16_t least, uint16_t *scale,
                       uint8_t *out)
{
	size_t first, n = round_block(round, block, &first);
	size_t bytes = n * round->wire_element;

	*scale = 0;
	if (n == 0)
		return 0; /* a barrier */
	if (!round->contributes) {
		memset(out, 0, pad8(bytes));
		return pad8(bytes);
	}
	if (round->coding == ROUND_SCALED)
		return encode_scaled(round, block, least, scale, out);
	if (round->coding == ROUND_KEYS)
		number_to_keys(round->type, round->source + first * round->element, n,
		               round->for_max, out);
	else
		memcpy(out, round->source + first * round->element, bytes);
	return pad(out, bytes);
}

/* ---- decoding ---- */

static void take_specials(const struct round *round, const uint8_t *counts, size_t n, uint8_t *out)
{
	unsigned per = round_counts_per(round->workers), bits = round_count_bits(round->workers);
	const uint64_t *words = (const uint64_t *)(const void *)counts;
	uint8_t mask[WIRE_PAYLOAD_MAX / 4] = { 0 };

	for (size_t i = 0; i < 2 * n; i++)
		if (words[i / 2 / per] >> i % (2 * (size_t)per) * bits & ((1ull << bits) - 1))
			mask[i / 8] |= (uint8_t)(1 << i % 8);
	number_unmask(round->type, mask, 0, n, out);
}

static void decode_scaled(const struct round *round, const uint8_t *in, size_t n, uint16_t scale,
                          uint8_t *out)
{
	uint64_t sums[WIRE_PAYLOAD_MAX / 8];
	const void *integers = in;

	if (round->wire_element == 4) {
		number_unpair(in, n, sums);
		integers = sums;
	}
	number_decode(round->type, integers, n, class_of(scale), round->workers, round->average,
	              out);
	if (scale & SLOT_SPECIAL)
		take_specials(round, in + pad8(n * round->wire_element), n, out);
}

static void decode(const struct round *round, uint32_t block, uint16_t scale, const uint8_t *in)
{
	size_t first, n = round_block(round, block, &first);
	uint8_t *out;

	if (!round->target || n == 0)
		return;
	out = round->target + first * round->element;
	if (round->coding == ROUND_SCALED) {
		decode_scaled(round, in, n, scale, out);
	} else if (round->coding == ROUND_KEYS) {
		number_from_keys(round->type, in, n, out);
	} else {
		memcpy(out, in, n * round->element);
		if (round->average)
			number_divide(round->type, out, n, round->workers);
	}
}

/* The bytes that a result of this scale has. */
static uint32_t result_bytes(const struct round *round, uint32_t block, uint16_t scale)
{
	size_t first, n = round_block(round, block, &first);
	uint32_t bytes = pad8(n * round->wire_element);

	return scale & SLOT_SPECIAL ? bytes + counts_bytes(round, n) : bytes;
}

/* ---- operations ---- */

void slot_stream_post(struct slot_stream *slots, struct round *round, uint64_t now)
{
	struct stream *stream = slots->stream;

	round->workers = stream->workers;
	stream_append(stream, round);
	if (stream->first == round)
		stream->progress_at = now;
}

/* Posts operations while there are free slots. */
static void feed(struct slot_stream *slots, uint64_t now)
{
	struct slot_flow *flow = &slots->flow;

	while (flow->next < slots->stream->next_base && slot_flow_has_room(flow, now)) {
		const struct round *round = stream_find(slots->stream, flow->next);
		uint8_t *payload = payload_of(slots, flow->next);
		uint16_t scale;
		uint32_t bytes =
			encode(round, (uint32_t)(flow->next - round->base), 0, &scale, payload);

		slot_flow_post(flow, round->op, round->shape, round->kind, scale, payload,
		               (uint16_t)bytes);
	}
}

uint32_t slot_stream_next(struct slot_stream *slots, uint64_t now, void *packet)
{
	struct wire_header *header = packet;
	const void *payload;
	uint32_t bytes;

	feed(slots, now);
	bytes = slot_flow_next(&slots->flow, now, header, &payload);
	if (!bytes)
		return 0;
	header->magic = WIRE_MAGIC;
	header->type = WIRE_DATA;
	if (payload)
		memcpy(header + 1, payload, bytes - WIRE_HEADER);
	slots->stream->stats.sent++;
	slots->stream->stats.resent += header->flags & WIRE_RESENT ? 1 : 0;
	return bytes;
}

/* A rank has a higher scale: the vector is sent again, at that scale. */
static void encode_again(struct slot_stream *slots, const struct slot_event *event)
{
	const struct round *round = stream_find(slots->stream, event->position);
	uint8_t *payload = payload_of(slots, event->position);
	uint16_t scale;
	uint32_t bytes;

	if (!round || round->coding != ROUND_SCALED)
		return;
	bytes = encode(round, (uint32_t)(event->position - round->base), event->scale, &scale,
	               payload);
	slot_flow_encoded(&slots->flow, event->position, scale, payload, (uint16_t)bytes);
}

static bool take_sum(struct slot_stream *slots, const struct slot_event *event,
                     const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	struct round *round = stream_find(slots->stream, event->position);
	uint32_t block, before;

	if (!round)
		return true;
	block = (uint32_t)(event->position - round->base);
	if (bytes != result_bytes(round, block, header->scale))
		return false;
	before = round->finished;
	decode(round, block, header->scale, (const uint8_t *)(header + 1));
	round_finish(round, block);
	slots->stream->stats.results++;
	slots->stream->low = slots->flow.low;
	stream_settle(slots->stream, round, before, now);
	return true;
}

bool slot_stream_take(struct slot_stream *slots, const struct wire_header *header, uint32_t bytes,
                      uint64_t now)
{
	struct slot_event event = slot_flow_take(&slots->flow, header, bytes, now);

	switch (event.kind) {
	case SLOT_RESULT:
		return take_sum(slots, &event, header, bytes, now);
	case SLOT_ENCODE:
		encode_again(slots, &event);
		break;
	case SLOT_DISAGREE:
		return false;
	case SLOT_NOTHING:
		slots->stream->low = slots->flow.low;
		break;
	}
	return true;
}
