/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of a lane with an aggregator that lies: any sequence of well-formed results and
 * statuses, in any order, between new rounds and sending. Nothing outside the buffers may be
 * touched. Every packet sent must be valid, and the stream must keep its invariants.
 */
#include "fuzz.h"
#include "wire/parse.h"
#include "worker/dense/stream.h"

#include <string.h>

#define PAYLOAD 256u
#define ROUNDS_MAX 12

struct bench {
	struct stream stream;
	struct fuzz_input input;
	uint64_t now;
	unsigned rounds, finished;
	void *buffers[2 * ROUNDS_MAX];
};

static uint16_t two_bytes(struct bench *bench)
{
	uint16_t low = fuzz_byte(&bench->input);

	return (uint16_t)(low | fuzz_byte(&bench->input) << 8);
}

static void on_finished(void *context, struct round *round)
{
	struct bench *bench = context;

	demand(round->finished == round_fragments(round));
	bench->finished++;
	demand(bench->finished <= bench->rounds);
}

/* A buffer of the exact size, so that a sanitizer detects accesses outside it. */
static void *buffer_new(struct bench *bench, size_t bytes)
{
	void **slot = &bench->buffers[0];
	uint8_t *buffer = malloc(bytes ? bytes : 1);

	while (*slot)
		slot++;
	demand(buffer);
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = (uint8_t)(i * 37);
	if (bytes >= 8 && fuzz_byte(&bench->input) & 1)
		memset(buffer, 0xff, 8); /* NaN in every float type */
	return *slot = buffer;
}

static void post(struct bench *bench)
{
	uint8_t form = fuzz_byte(&bench->input);
	size_t count = two_bytes(bench) % 4000; /* with f64: two fragments of exponents */
	struct round_spec spec = { .count = count,
		                   .type = (trib_type)(form % 10),
		                   .op = (trib_op)(form / 10 % 4),
		                   .from = WIRE_ALL,
		                   .to = WIRE_ALL };
	struct round *round;
	size_t bytes;

	if (bench->rounds == ROUNDS_MAX)
		return;
	form = fuzz_byte(&bench->input);
	if (form % 4 == 1) {
		spec.copy = true;
		spec.from = form / 4 % bench->stream.workers;
	} else if (form % 4 == 2) {
		spec.to = form / 4 % bench->stream.workers;
	}
	bytes = count * (spec.copy ? 1 : trib_type_size(spec.type));
	spec.source = buffer_new(bench, bytes);
	if (form % 4 == 3) /* in place */
		spec.target = (void *)(uintptr_t)spec.source;
	else if (spec.to == WIRE_ALL || spec.to == bench->stream.child)
		spec.target = buffer_new(bench, bytes);
	round = round_new(&spec, bench->stream.child, PAYLOAD);
	demand(round);
	bench->rounds++;
	stream_post(&bench->stream, round, bench->now);
}

static struct round *round_at(struct bench *bench, uint64_t position)
{
	struct round *round = bench->stream.first;

	while (round && position >= round->base + round_fragments(round))
		round = round->next;
	return round && position >= round->base ? round : NULL;
}

static uint64_t some_position(struct bench *bench)
{
	uint8_t step = fuzz_byte(&bench->input);

	if (step == 255)
		return two_bytes(bench) * 0x100000001ull << 9;
	return (bench->stream.done + (step & 0x7f) - (step & 0x80 ? 64 : 0)) & WIRE_POSITION_MASK;
}

/* A result as the aggregator would send it, except for the fields that the input changes. */
static void give_result(struct bench *bench)
{
	uint64_t position = wire_widen((uint32_t)some_position(bench), bench->stream.done);
	struct round *round = round_at(bench, position);
	uint8_t bend = fuzz_byte(&bench->input);
	uint32_t bytes = round ? round_bytes(round, (uint32_t)(position - round->base)) : 8;
	struct wire_header *header;

	if (bend & 1)
		bytes = fuzz_byte(&bench->input) % (PAYLOAD / 8 + 2) * 8;
	header = calloc(1, WIRE_HEADER + bytes);
	demand(header);
	header->type = WIRE_RESULT;
	header->child = WIRE_ALL;
	header->pos = (uint32_t)position;
	header->ack = (uint32_t)bench->stream.low + (bend & 2 ? fuzz_byte(&bench->input) : 0);
	header->scale = bend & 4 ? two_bytes(bench) : fuzz_byte(&bench->input) % 80;
	header->from = header->to = WIRE_ALL;
	if (round) {
		uint32_t index = (uint32_t)(position - round->base);

		header->flags = round->shape;
		header->from = round->from;
		header->to = index < round->exponents ? WIRE_ALL : round->to;
		header->op = index < round->exponents                     ? round->exponent_op
		             : index < round->exponents + round->specials ? WIRE_OR64
		                                                          : round->op;
	}
	if (bend & 8)
		header->op = fuzz_byte(&bench->input) % WIRE_OPS_END;
	if (bend & 16)
		header->from = fuzz_byte(&bench->input) % WIRE_CHILDREN_MAX;
	if (bend & 32)
		header->flags = fuzz_byte(&bench->input);
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)(header + 1))[i] = bend & 64 ? fuzz_byte(&bench->input) : bend;
	header->magic = WIRE_MAGIC;
	if (wire_parse(header, WIRE_HEADER + bytes) == WIRE_SOUND)
		demand(stream_on_result(&bench->stream, header, bytes, bench->now));
	free(header);
}

static void give_status(struct bench *bench)
{
	size_t bytes = WIRE_CONTROL + sizeof(struct wire_status);
	struct wire_control *header = calloc(1, bytes);
	struct wire_status *status = (void *)(header + 1);
	uint8_t bend = fuzz_byte(&bench->input);

	demand(header);
	header->type = WIRE_STATUS;
	header->child = (uint8_t)bench->stream.child;
	header->pos = wire_pos(bench->stream.lane, some_position(bench));
	status->low = some_position(bench);
	status->base = some_position(bench);
	status->waiting = two_bytes(bench);
	status->bits = two_bytes(bench) % (WIRE_GROUP + 1);
	status->stamp = bend & 1 ? 0 : (uint32_t)(bench->now / 1000) - bend;
	memset(status->missing, bend & 2 ? 0xff : 0, sizeof(status->missing));
	if (bend & 4)
		status->missing[0] = two_bytes(bench);
	if (bend & 8)
		status->base = ~0ull - bend;
	if (bend & 16)
		status->low = ~0ull;
	wire_seal(header, bytes);
	demand(wire_parse(header, bytes) == WIRE_SOUND);
	stream_on_status(&bench->stream, header, bench->now);
	free(header);
}

/* The parser of the other end must accept every packet sent. */
static void packet_check(struct bench *bench, void *packet, uint32_t bytes)
{
	struct wire_header *header = packet;

	demand(bytes <= WIRE_HEADER + PAYLOAD);
	if (header->type != WIRE_DATA) {
		wire_seal(packet, bytes);
		demand(wire_lane(packet) == bench->stream.lane);
	}
	demand(wire_parse(packet, bytes) == WIRE_SOUND);
	demand(header->child == bench->stream.child);
	if (header->type == WIRE_DATA) {
		uint64_t position = stream_position(&bench->stream, header);
		struct round *round = round_at(bench, position);

		demand(round && round->contributes);
		demand(bytes ==
		       WIRE_HEADER + round_bytes(round, (uint32_t)(position - round->base)));
	}
}

static void send_some(struct bench *bench)
{
	unsigned n = fuzz_byte(&bench->input) % 32;
	uint64_t *packet = malloc(WIRE_HEADER + PAYLOAD);
	uint32_t bytes;

	demand(packet);
	for (unsigned i = 0; i < n; i++) {
		bytes = stream_next_report(&bench->stream, bench->now, packet);
		if (bytes)
			packet_check(bench, packet, bytes);
		bytes = stream_next(&bench->stream, bench->now, packet);
		if (bytes)
			packet_check(bench, packet, bytes);
	}
	if (n == 31) {
		bytes = stream_heartbeat(&bench->stream, bench->now, packet);
		packet_check(bench, packet, bytes);
	}
	free(packet);
}

static void invariants_check(struct bench *bench, uint64_t done_before)
{
	const struct stream *stream = &bench->stream;
	uint64_t next = stream->first ? stream->first->base : stream->next_base, todo = 0;

	demand(stream->done >= done_before && stream->done <= stream->next_base);
	demand(stream->low <= stream->done);
	for (const struct round *round = stream->first; round; round = round->next) {
		uint32_t n = round_fragments(round), finished = 0, again = 0;

		demand(round->base == next);
		next += n;
		for (uint32_t i = 0; i < n; i++) {
			finished += bitmap_get(round->have, i);
			again += bitmap_get(round->again, i);
			demand(!(bitmap_get(round->have, i) && bitmap_get(round->again, i)));
		}
		demand(finished == round->finished && again == round->todo);
		todo += again;
	}
	demand(next == stream->next_base && todo == stream->todo);
	demand(stream_wake(stream, bench->now) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bench bench;
	unsigned workers, lane;

	memset(&bench, 0, sizeof(bench));
	bench.input = (struct fuzz_input){ data, data + size };
	bench.now = 1000000000;
	workers = 1 + fuzz_byte(&bench.input) % 64;
	lane = fuzz_byte(&bench.input);
	stream_init(&bench.stream, lane % WIRE_LANES_MAX, fuzz_byte(&bench.input) % workers,
	            workers, 2 + fuzz_byte(&bench.input) * 8u, PAYLOAD);
	bench.stream.reliable = lane & 0x80;
	bench.stream.on_finished = on_finished;
	bench.stream.context = &bench;
	while (bench.input.at < bench.input.end) {
		uint64_t done = bench.stream.done;

		switch (fuzz_byte(&bench.input) % 8) {
		case 0:
			post(&bench);
			break;
		case 1:
			give_status(&bench);
			break;
		case 2:
		case 3:
			send_some(&bench);
			break;
		case 4:
			bench.now += two_bytes(&bench) * 5000ull;
			break;
		default:
			give_result(&bench);
		}
		invariants_check(&bench, done);
	}
	stream_clear(&bench.stream);
	for (unsigned i = 0; i < 2 * ROUNDS_MAX; i++)
		free(bench.buffers[i]);
	return 0;
}
