/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pure parts of the plugin for NCCL: messages over several streams, what processes tell each
 * other first, and sums with a scale for each element.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "coll/element_sum.h"
#include "common/greeting.h"
#include "link/link_stripes.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (1u << 20)
#define WIRE_BYTES (64u << 20) /* of all messages */

/* A byte stream in memory. */
struct pipe {
	uint8_t *bytes;
	size_t in, out;
};

/* Moves up to `most` bytes between the stripes of one end and a pipe. */
static bool step(struct stripes *stripes, unsigned stream, struct pipe *pipe, size_t most)
{
	struct iovec pieces[2];
	unsigned n = stripes_next(stripes, stream, pieces);
	size_t moved = 0;

	for (unsigned i = 0; i < n && most; i++) {
		size_t bytes = pieces[i].iov_len < most ? pieces[i].iov_len : most;

		if (stripes->sends) {
			assert_true(pipe->in + bytes <= WIRE_BYTES);
			memcpy(pipe->bytes + pipe->in, pieces[i].iov_base, bytes);
			pipe->in += bytes;
		} else {
			bytes = bytes < pipe->in - pipe->out ? bytes : pipe->in - pipe->out;
			memcpy(pieces[i].iov_base, pipe->bytes + pipe->out, bytes);
			pipe->out += bytes;
		}
		moved += bytes;
		most -= bytes;
		if (bytes < pieces[i].iov_len)
			break;
	}
	if (moved)
		assert_int_equal(stripes_moved(stripes, stream, moved), TRIB_OK);
	return moved;
}

static size_t message_size(uint64_t *random)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 65535, 65536, 131071, 131072, 262143, 300001 };
	uint64_t drawn = random_next(random);

	return drawn % 4 ? sizes[drawn % (sizeof(sizes) / sizeof(sizes[0]))] : drawn % (ROOM - 64);
}

/* Messages of many sizes arrive whole and in order, however the streams move. */
static void exchange(unsigned streams, uint64_t seed)
{
	enum { MESSAGES = 60 };
	struct stripes from, to;
	struct pipe pipes[STRIPES_MAX] = { 0 };
	uint8_t *source = malloc(ROOM), *target = malloc(MESSAGES * (size_t)ROOM);
	size_t sizes[MESSAGES];
	unsigned sent = 0, freed = 0, asked = 0, taken = 0;
	uint64_t random = seed;

	assert_true(source && target);
	for (size_t i = 0; i < ROOM; i++)
		source[i] = (uint8_t)random_next(&random);
	for (unsigned i = 0; i < MESSAGES; i++)
		sizes[i] = message_size(&random);
	for (unsigned i = 0; i < streams; i++)
		assert_non_null(pipes[i].bytes = malloc(WIRE_BYTES));
	stripes_init(&from, streams, true);
	stripes_init(&to, streams, false);
	while (taken < MESSAGES) {
		uint64_t drawn = random_next(&random);
		unsigned stream = drawn % streams;
		size_t most = drawn >> 8 & 1 ? ROOM : drawn >> 16 & 0xffff;

		if (sent < MESSAGES && drawn & 0x10000000 &&
		    stripes_post(&from, source + sent, sizes[sent]) >= 0)
			sent++;
		if (asked < MESSAGES && drawn & 0x20000000 &&
		    stripes_post(&to, target + asked * (size_t)ROOM, ROOM) >= 0)
			asked++;
		step(&from, stream, &pipes[stream], most);
		step(&to, stream, &pipes[stream], most);
		if (freed < sent && stripes_done(&from, freed % NCCL_REQUESTS_MAX))
			stripes_release(&from, freed++ % NCCL_REQUESTS_MAX);
		if (taken < asked && stripes_done(&to, taken % NCCL_REQUESTS_MAX)) {
			assert_int_equal(stripes_release(&to, taken % NCCL_REQUESTS_MAX),
			                 sizes[taken]);
			assert_memory_equal(target + taken * (size_t)ROOM, source + taken,
			                    sizes[taken]);
			taken++;
		}
	}
	for (unsigned i = 0; i < streams; i++) {
		assert_int_equal(pipes[i].in, pipes[i].out);
		free(pipes[i].bytes);
	}
	free(source);
	free(target);
}

static void test_stripes(void **state)
{
	(void)state;
	for (unsigned streams = 1; streams <= STRIPES_MAX; streams += 3)
		for (uint64_t seed = 1; seed <= 2; seed++)
			exchange(streams, seed * 100 + streams);
}

/* At most NCCL_REQUESTS_MAX messages at once; the next one waits for the oldest. */
static void test_stripes_full(void **state)
{
	struct stripes stripes;
	uint8_t byte = 0;

	(void)state;
	stripes_init(&stripes, 2, false);
	for (int i = 0; i < NCCL_REQUESTS_MAX; i++)
		assert_int_equal(stripes_post(&stripes, &byte, 1), i);
	assert_int_equal(stripes_post(&stripes, &byte, 1), -1);
	assert_int_equal(stripes_post(&stripes, &byte, 1ull << 50), -1);
}

static trib_status take_header(uint64_t header, size_t room)
{
	static uint8_t buffer[64];
	struct stripes stripes;
	struct iovec pieces[2];

	stripes_init(&stripes, 3, false);
	assert_int_equal(stripes_post(&stripes, buffer, room), 0);
	assert_int_equal(stripes_next(&stripes, 1, pieces), 0);
	assert_int_equal(stripes_next(&stripes, 0, pieces), 1);
	assert_int_equal(pieces[0].iov_len, STRIPE_HEADER);
	memcpy(pieces[0].iov_base, &header, sizeof(header));
	return stripes_moved(&stripes, 0, STRIPE_HEADER);
}

static void test_stripes_hostile(void **state)
{
	(void)state;
	assert_int_equal(take_header(32ull << 16 | 0x7274, 32), TRIB_OK);
	assert_int_equal(take_header(33ull << 16 | 0x7274, 32), TRIB_ERR_MISMATCH);
	assert_non_null(strstr(trib_last_error(), "33 bytes"));
	assert_int_equal(take_header(UINT64_MAX, 32), TRIB_ERR_REFUSED);
}

static void sample(struct handle *handle, const char *address)
{
	memset(handle, 0, sizeof(*handle));
	handle->kind = GREETING_LINK;
	memset(handle->cookie, 7, sizeof(handle->cookie));
	assert_int_equal(udp_resolve(address, 1, &handle->address), TRIB_OK);
}

static void test_handle(void **state)
{
	static const char *const addresses[] = { "10.1.2.3:456", "[fd00::7]:1" };
	struct handle in, out;
	uint8_t bytes[NCCL_HANDLE_BYTES];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		sample(&in, addresses[i]);
		handle_write(&in, bytes);
		assert_int_equal(handle_read(bytes, &out), TRIB_OK);
		assert_true(udp_same(&in.address, &out.address));
		assert_memory_equal(in.cookie, out.cookie, sizeof(in.cookie));
		assert_int_equal(out.attempt, 0);
		handle_set_attempt(bytes, 99);
		assert_int_equal(handle_read(bytes, &out), TRIB_OK);
		assert_int_equal(out.attempt, 99);
	}
	bytes[4]++;
	assert_int_equal(handle_read(bytes, &out), TRIB_ERR_ARGUMENT);
	assert_non_null(strstr(trib_last_error(), "version 2"));
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(handle_read(bytes, &out), TRIB_ERR_ARGUMENT);
}

static void test_hello(void **state)
{
	struct hello hello = { .stripe = 1, .stripes = 2 };
	struct handle handle;
	struct note note;

	(void)state;
	sample(&handle, "127.0.0.1:5");
	hello_write(&hello, &handle);
	assert_int_equal(hello_check(&hello, &handle), TRIB_OK);
	hello.stripe = 2;
	assert_int_equal(hello_check(&hello, &handle), TRIB_ERR_REFUSED);
	hello.stripe = 1;
	hello.cookie[3]++;
	assert_int_equal(hello_check(&hello, &handle), TRIB_ERR_REFUSED);
	note_write(&note, NOTE_JOIN, false, "why\n");
	assert_int_equal(note_check(&note, NOTE_JOIN), TRIB_OK);
	assert_string_equal(note.text, "why?");
	assert_int_equal(note_check(&note, NOTE_USE), TRIB_ERR_REFUSED);
}

/* The sum of a vector over three ranks, as the plugin makes it. */
static void sum(trib_type type, const void *const in[3], size_t n, bool average, void *out)
{
	size_t class_bytes = trib_type_size(element_class_type(type));
	bool wide = element_integer_type(type) == TRIB_I64;
	uint8_t *classes[3], *integers[3];

	for (int r = 0; r < 3; r++) {
		assert_non_null(classes[r] = malloc(n * class_bytes));
		assert_non_null(integers[r] = malloc(n * 8));
		element_classify(type, in[r], n, classes[r]);
	}
	for (size_t i = 0; i < n; i++)
		for (int r = 1; r < 3; r++)
			if (class_bytes == 1) {
				if (classes[r][i] > classes[0][i])
					classes[0][i] = classes[r][i];
			} else if (((int32_t *)(void *)classes[r])[i] >
			           ((int32_t *)(void *)classes[0])[i]) {
				((int32_t *)(void *)classes[0])[i] =
					((int32_t *)(void *)classes[r])[i];
			}
	for (int r = 0; r < 3; r++)
		element_encode(type, in[r], n, classes[0], 3, integers[r]);
	for (size_t i = 0; i < n; i++)
		for (int r = 1; r < 3; r++)
			if (wide)
				((uint64_t *)(void *)integers[0])[i] +=
					((uint64_t *)(void *)integers[r])[i];
			else
				((uint32_t *)(void *)integers[0])[i] +=
					((uint32_t *)(void *)integers[r])[i];
	element_decode(type, integers[0], n, classes[0], 3, average, out);
	for (int r = 0; r < 3; r++) {
		free(classes[r]);
		free(integers[r]);
	}
}

/* No element is less precise because of another one. The largest error over all elements. */
static void test_element_precision(void **state)
{
	enum { N = 4096 };
	static float in[3][N], out[N];
	const void *const vectors[3] = { in[0], in[1], in[2] };
	uint64_t random = 5;
	double worst = 0;

	(void)state;
	for (size_t i = 0; i < N; i++)
		for (int r = 0; r < 3; r++) {
			int exponent = (int)(random_next(&random) % 250) - 125;
			double mantissa = (double)(random_next(&random) % 2000) / 1000 - 1;

			in[r][i] = (float)ldexp(mantissa, exponent);
		}
	sum(TRIB_F32, vectors, N, false, out);
	for (size_t i = 0; i < N; i++) {
		double exact = (double)in[0][i] + in[1][i] + in[2][i], largest = 0;

		for (int r = 0; r < 3; r++)
			largest = fmax(largest, fabs((double)in[r][i]));
		if (largest > 0 && fabs(out[i] - exact) / largest > worst)
			worst = fabs(out[i] - exact) / largest;
	}
	printf("largest error: 2^%.1f of an element's largest addend\n", log2(worst));
	assert_true(worst < 0x1p-22);
}

static void test_element_special(void **state)
{
	float a[] = { INFINITY, -INFINITY, NAN, INFINITY, 1, FLT_MAX, 0 };
	float b[] = { 1, -2, 3, -INFINITY, 2, FLT_MAX, -0.0f };
	float c[] = { 1, -INFINITY, 3, 4, 3, FLT_MAX, 0 }, out[7];
	const void *const vectors[3] = { a, b, c };
	double d[] = { 1e-300, 1e300, INFINITY }, e[] = { 2e-300, -1e300, 1 },
	       f[] = { 3e-300, 1e-10, 1 }, wide[3];
	const void *const doubles[3] = { d, e, f };

	(void)state;
	sum(TRIB_F32, vectors, 7, false, out);
	assert_true(isinf(out[0]) && out[0] > 0 && isinf(out[1]) && out[1] < 0);
	assert_true(isnan(out[2]) && isnan(out[3]) && out[4] == 6 && isinf(out[5]));
	assert_true(out[6] == 0 && !signbit(out[6]));
	sum(TRIB_F32, vectors, 7, true, out);
	assert_true(out[4] == 2 && out[5] == FLT_MAX);
	sum(TRIB_F64, doubles, 3, false, wide);
	assert_true(fabs(wide[0] - 6e-300) < 1e-314 && isinf(wide[2]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stripes),         cmocka_unit_test(test_stripes_full),
		cmocka_unit_test(test_stripes_hostile), cmocka_unit_test(test_handle),
		cmocka_unit_test(test_hello),           cmocka_unit_test(test_element_precision),
		cmocka_unit_test(test_element_special),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
