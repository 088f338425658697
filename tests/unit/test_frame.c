/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on a stream: however the stream is cut into pieces, the same packets come out, whole,
 * aligned and in order. Bytes that are not a frame are detected at the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/tcp.h"
#include "wire/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAM_MAX 200000u

struct pipe {
	int ends[2];
	struct tcp_rx rx;
	struct tcp_tail tail;
	uint8_t *taken; /* all frames in a row */
	size_t bytes;
	unsigned frames;
	enum wire_fault fault;
};

static void pipe_open(struct pipe *pipe)
{
	memset(pipe, 0, sizeof(*pipe));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pipe->ends), 0);
	assert_true(tcp_rx_init(&pipe->rx));
	pipe->taken = malloc(STREAM_MAX);
	assert_non_null(pipe->taken);
}

static void pipe_close(struct pipe *pipe)
{
	close(pipe->ends[0]);
	close(pipe->ends[1]);
	tcp_rx_free(&pipe->rx);
	free(pipe->taken);
}

/* As an aggregator's thread does. */
static int pipe_take(struct pipe *pipe)
{
	int n = tcp_receive(&pipe->rx, &pipe->tail, pipe->ends[1]);
	uint32_t at = 0, bytes;

	if (n <= 0)
		return n;
	for (;; at += bytes) {
		const uint8_t *frame = pipe->rx.data + at;

		pipe->fault = wire_frame(frame, pipe->rx.bytes - at, &bytes);
		if (pipe->fault != WIRE_SOUND || !bytes)
			break;
		assert_int_equal((uintptr_t)frame % 8, 0);
		assert_true(pipe->bytes + bytes <= STREAM_MAX);
		memcpy(pipe->taken + pipe->bytes, frame, bytes);
		pipe->bytes += bytes;
		pipe->frames++;
	}
	if (pipe->fault == WIRE_SOUND)
		tcp_keep(&pipe->rx, &pipe->tail, at);
	return n;
}

static void pipe_push(struct pipe *pipe, const uint8_t *data, size_t bytes)
{
	while (bytes) {
		size_t piece = bytes < 32768 ? bytes : 32768;

		assert_int_equal(write(pipe->ends[0], data, piece), (ssize_t)piece);
		while (pipe_take(pipe) > 0)
			;
		data += piece;
		bytes -= piece;
	}
}

static uint32_t frame_put(uint8_t *to, uint32_t payload, uint8_t value)
{
	memset(to, value, WIRE_HEADER + payload);
	wire_seal_frame(to, WIRE_HEADER + payload);
	return WIRE_HEADER + payload;
}

static size_t frames_put(uint8_t *to)
{
	static const uint32_t payloads[] = { 0, 8, 1432, 152, WIRE_PAYLOAD_MAX, 0, 16 };
	size_t bytes = 0;

	for (unsigned i = 0; i < sizeof(payloads) / sizeof(*payloads); i++)
		bytes += frame_put(to + bytes, payloads[i], (uint8_t)(i + 1));
	return bytes;
}

static void test_cut_anywhere(void **state)
{
	static _Alignas(8) uint8_t stream[32768];
	size_t bytes = frames_put(stream);

	(void)state;
	for (size_t cut = 0; cut <= bytes; cut++) {
		struct pipe pipe;

		pipe_open(&pipe);
		pipe_push(&pipe, stream, cut);
		assert_true(pipe.bytes <= cut);
		pipe_push(&pipe, stream + cut, bytes - cut);
		assert_int_equal(pipe.frames, 7);
		assert_int_equal(pipe.tail.bytes, 0);
		assert_int_equal(pipe.bytes, bytes);
		assert_memory_equal(pipe.taken, stream, bytes);
		pipe_close(&pipe);
	}
}

static void test_pieces(void **state)
{
	static _Alignas(8) uint8_t stream[32768];
	size_t bytes = frames_put(stream);
	static const size_t pieces[] = { 1, 7, 8, 39, 40, 41, 4096, sizeof(stream) };

	(void)state;
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		struct pipe pipe;

		pipe_open(&pipe);
		for (size_t at = 0; at < bytes; at += pieces[i])
			pipe_push(&pipe, stream + at,
			          bytes - at < pieces[i] ? bytes - at : pieces[i]);
		assert_int_equal(pipe.frames, 7);
		assert_int_equal(pipe.bytes, bytes);
		assert_memory_equal(pipe.taken, stream, bytes);
		pipe_close(&pipe);
	}
}

/* Frames before the bad one are taken. The bad one is detected with its eighth byte. */
static void test_hostile(void **state)
{
	static const struct {
		uint16_t magic;
		uint32_t length;
		enum wire_fault fault;
	} cases[] = {
		{ WIRE_MAGIC, 0, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, 8, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, WIRE_HEADER - 8, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, WIRE_HEADER + 1, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, WIRE_HEADER + 4, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, WIRE_FRAME_MAX + 8, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, UINT32_MAX, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, UINT32_MAX - 7, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC, 1u << 31, WIRE_FAULT_LENGTH },
		{ WIRE_MAGIC + 1, WIRE_HEADER, WIRE_FAULT_MAGIC },
		{ 0, 0, WIRE_FAULT_MAGIC },
	};
	static _Alignas(8) uint8_t stream[4096];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t bytes = frame_put(stream, 64, 3);
		struct wire_header bad = { .magic = cases[i].magic, .check = cases[i].length };
		struct pipe pipe;

		memcpy(stream + bytes, &bad, WIRE_FRAME_START);
		pipe_open(&pipe);
		pipe_push(&pipe, stream, bytes + WIRE_FRAME_START - 1);
		assert_int_equal(pipe.fault, WIRE_SOUND);
		pipe_push(&pipe, stream + bytes + WIRE_FRAME_START - 1, 1);
		assert_int_equal(pipe.fault, cases[i].fault);
		assert_int_equal(pipe.frames, 1);
		pipe_close(&pipe);
	}
}

static void test_end(void **state)
{
	static _Alignas(8) uint8_t stream[4096];
	struct pipe pipe;

	(void)state;
	pipe_open(&pipe);
	assert_int_equal(pipe_take(&pipe), 0);
	pipe_push(&pipe, stream, 0);
	frame_put(stream, 64, 3);
	pipe_push(&pipe, stream, 50);
	assert_int_equal(shutdown(pipe.ends[0], SHUT_WR), 0);
	assert_int_equal(pipe_take(&pipe), -EPIPE);
	assert_int_equal(pipe.frames, 0);
	pipe_close(&pipe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
