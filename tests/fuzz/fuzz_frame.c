/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame reader. The first byte of an input says how to cut the rest, a stream, into pieces. In
 * every other run the magic numbers are corrected, because a fuzzer rarely finds them. Cut or
 * whole, the stream must give the same frames and the same error, and no byte outside it is read.
 */
#include "fuzz.h"
#include "path/tcp.h"
#include "wire/frame.h"

#include <string.h>

struct reading {
	uint64_t sum; /* digest of all frames */
	size_t bytes; /* sum over all frames */
	enum wire_fault fault;
};

static void frame_take(struct reading *reading, const uint8_t *frame, uint32_t bytes)
{
	demand((uintptr_t)frame % 8 == 0);
	demand(bytes >= WIRE_HEADER && bytes <= WIRE_FRAME_MAX && bytes % 8 == 0);
	demand(bytes < WIRE_CONTROL || wire_parse_frame(frame, bytes) != WIRE_FAULT_LENGTH);
	demand(wire_parse_frame(frame, bytes) != WIRE_FAULT_CHECK);
	for (uint32_t i = 0; i < bytes; i++)
		reading->sum = (reading->sum ^ frame[i]) * 0x100000001b3ull;
	reading->bytes += bytes;
}

/*
 * Reads the stream in pieces of `piece` bytes, each after the unread rest of the last, as
 * tcp_receive does.
 */
static struct reading read_stream(const uint8_t *data, size_t size, size_t piece)
{
	static struct tcp_tail tail;
	struct reading reading = { 0 };

	tail.bytes = 0;
	for (size_t from = 0; from < size && reading.fault == WIRE_SOUND; from += piece) {
		size_t n = size - from < piece ? size - from : piece;
		/* The exact size, so that a sanitizer detects reads beyond the end. */
		struct tcp_rx rx = { .data = malloc(tail.bytes + n),
			             .bytes = tail.bytes + (uint32_t)n };
		uint32_t at = 0, bytes;

		demand(rx.data);
		memcpy(rx.data, tail.data, tail.bytes);
		memcpy(rx.data + tail.bytes, data + from, n);
		for (;; at += bytes) {
			reading.fault = wire_frame(rx.data + at, rx.bytes - at, &bytes);
			if (reading.fault != WIRE_SOUND || !bytes)
				break;
			frame_take(&reading, rx.data + at, bytes);
		}
		if (reading.fault == WIRE_SOUND)
			tcp_keep(&rx, &tail, at);
		demand(tail.bytes < WIRE_FRAME_MAX);
		free(rx.data);
	}
	return reading;
}

static void stream_try(const uint8_t *data, size_t size, size_t piece)
{
	struct reading whole = read_stream(data, size, size ? size : 1);
	struct reading cut = read_stream(data, size, piece);

	demand(whole.sum == cut.sum && whole.bytes == cut.bytes && whole.fault == cut.fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size ? data[0] + 1u : 1;
	uint8_t *copy;

	if (!size)
		return 0;
	size--;
	copy = malloc(size ? size : 1);
	demand(copy);
	memcpy(copy, data + 1, size);
	stream_try(copy, size, piece);
	for (size_t at = 0; at + WIRE_FRAME_START <= size;) {
		uint16_t magic = WIRE_MAGIC;
		uint32_t length;

		memcpy(copy + at, &magic, sizeof(magic));
		memcpy(&length, copy + at + 4, sizeof(length));
		length = WIRE_HEADER + length % 64 * 8;
		memcpy(copy + at + 4, &length, sizeof(length));
		at += length;
	}
	stream_try(copy, size, piece);
	free(copy);
	return 0;
}
