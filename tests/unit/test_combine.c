/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way of combining two payloads, compared with 128-bit arithmetic element by element. Covers
 * every length up to a few words, and the edges of types.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "engine/combine.h"

#include <stdbool.h>
#include <string.h>

#define WORDS_MAX 130

enum kind { ADD, MIN, MAX, OR };

static const struct {
	uint8_t op;
	enum kind kind;
	unsigned bits;
	bool is_signed;
} ops[] = {
	{ WIRE_ADD8, ADD, 8, false },     { WIRE_ADD32, ADD, 32, false },
	{ WIRE_ADD64, ADD, 64, false },   { WIRE_MIN_I8, MIN, 8, true },
	{ WIRE_MIN_U8, MIN, 8, false },   { WIRE_MIN_I32, MIN, 32, true },
	{ WIRE_MIN_U32, MIN, 32, false }, { WIRE_MIN_I64, MIN, 64, true },
	{ WIRE_MIN_U64, MIN, 64, false }, { WIRE_MAX_I8, MAX, 8, true },
	{ WIRE_MAX_U8, MAX, 8, false },   { WIRE_MAX_I32, MAX, 32, true },
	{ WIRE_MAX_U32, MAX, 32, false }, { WIRE_MAX_I64, MAX, 64, true },
	{ WIRE_MAX_U64, MAX, 64, false }, { WIRE_MAX_U16, MAX, 16, false },
	{ WIRE_OR64, OR, 64, false },
};

static uint64_t random_state = 7;

static uint64_t next_random(void)
{
	return random_next(&random_state);
}

/* A random word, or only edge values: 0, 1, -1, the largest and the smallest. */
static uint64_t some_word(unsigned bits)
{
	uint64_t pick = next_random(), word = 0;

	if (pick & 1)
		return next_random();
	for (unsigned at = 0; at < 64; at += bits) {
		uint64_t top = 1ull << (bits - 1);
		uint64_t edges[] = { 0, 1, top, top - 1, (top - 1) * 2 + 1 };

		word |= edges[next_random() % 5] << at;
	}
	return word;
}

static __int128 element(uint64_t word, unsigned at, unsigned bits, bool is_signed)
{
	uint64_t raw = bits == 64 ? word : word >> at & ((1ull << bits) - 1);

	if (is_signed && raw >> (bits - 1))
		return (__int128)raw - ((__int128)1 << bits);
	return (__int128)raw;
}

static uint64_t expect_word(unsigned i, uint64_t a, uint64_t b)
{
	unsigned bits = ops[i].bits;
	uint64_t word = 0;

	for (unsigned at = 0; at < 64; at += bits) {
		__int128 x = element(a, at, bits, ops[i].is_signed);
		__int128 y = element(b, at, bits, ops[i].is_signed), z;

		switch (ops[i].kind) {
		case ADD:
			z = x + y;
			break;
		case MIN:
			z = x < y ? x : y;
			break;
		case MAX:
			z = x > y ? x : y;
			break;
		default:
			z = x | y;
		}
		word |= ((uint64_t)z & (bits == 64 ? ~0ull : (1ull << bits) - 1)) << at;
	}
	return word;
}

static void test_every_op(void **state)
{
	static uint64_t sum[WORDS_MAX + 1], in[WORDS_MAX], before[WORDS_MAX + 1];

	(void)state;
	assert_int_equal(sizeof(ops) / sizeof(ops[0]), WIRE_OPS_END);
	for (unsigned i = 0; i < WIRE_OPS_END; i++) {
		for (uint32_t words = 0; words <= WORDS_MAX; words++) {
			for (uint32_t w = 0; w <= words; w++)
				sum[w] = some_word(ops[i].bits);
			for (uint32_t w = 0; w < words; w++)
				in[w] = some_word(ops[i].bits);
			memcpy(before, sum, sizeof(sum));
			combine(ops[i].op, sum, in, words * 8);
			for (uint32_t w = 0; w < words; w++)
				assert_true(sum[w] == expect_word(i, before[w], in[w]));
			assert_true(sum[words] == before[words]);
		}
	}
}

/* Every packet that the parser accepts has an operation. Without one, nothing changes. */
static void test_no_op(void **state)
{
	uint64_t sum[2] = { 1, 2 }, in[2] = { 3, 4 };

	(void)state;
	for (unsigned op = WIRE_OPS_END; op < 256; op++)
		combine((uint8_t)op, sum, in, sizeof(sum));
	assert_int_equal(sum[0], 1);
	assert_int_equal(sum[1], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_op),
		cmocka_unit_test(test_no_op),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
