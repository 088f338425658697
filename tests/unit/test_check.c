/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum: it follows docs/wire/checksum.md, the checksum of a sum follows from those of its
 * parts, and it detects errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "short.h"
#include "wire/checksum.h"
#include "wire/parse.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))

#define WORDS_MAX (WIRE_PACKET_MAX / 8)

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
	return random_next(&random_state);
}

static void randomize(uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		words[i] = next_random();
}

/* A direct implementation of docs/wire/checksum.md. */
static void test_check_as_documented(void **state)
{
	static const uint64_t k[3] = { 0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull,
		                       0x94d049bb133111ebull };
	static uint64_t words[WORDS_MAX];

	(void)state;
	for (size_t n = 5; n <= WORDS_MAX; n++) {
		uint64_t r[6] = { 0 }, u[3], h;

		randomize(words, n);
		for (size_t j = 0; j < n - 5; j++)
			r[j % 6] += r[(j + 1) % 6] + words[5 + j];
		for (size_t j = 0; j < 5; j++)
			r[j] += r[j + 1] + (j ? words[j] : (uint32_t)words[j]);
		r[5] += r[0] + n * 8;
		for (size_t i = 0; i < 3; i++) {
			u[i] = r[2 * i] * k[i];
			u[i] = ((u[i] ^ u[i] >> 32) + r[2 * i + 1]) * k[(i + 1) % 3];
		}
		h = ((u[0] ^ u[0] >> 32) + (u[1] ^ u[1] >> 29) + (u[2] ^ u[2] >> 35)) * k[2];
		assert_int_equal(wire_check(words, n * 8), (uint32_t)(h >> 32));
		words[0] ^= 0xffffffff00000000ull; /* the field itself is not included */
		assert_int_equal(wire_check(words, n * 8), (uint32_t)(h >> 32));
	}
}

/* A fragment's checksum is that of the whole packet, including the fields that are not sent. */
static void test_check_of_a_fragment(void **state)
{
	static uint64_t words[WORDS_MAX], whole[WORDS_MAX + 2];

	(void)state;
	for (size_t n = 3; n <= WORDS_MAX; n++) {
		struct wire_unsent unsent = { next_random(), next_random() };
		uint32_t right;

		randomize(words, n);
		memcpy(whole, words, 24);
		memcpy(whole + 3, &unsent, 16);
		memcpy(whole + 5, words + 3, (n - 3) * 8);
		right = wire_check_fragment(words, n * 8, &unsent);
		assert_int_equal(right, wire_check_end(wire_check_words(whole + 5, n - 3), whole,
		                                       whole + 3, n * 8));
		/* Every bit counts. */
		for (unsigned bit = 0; bit < 64; bit++) {
			struct wire_unsent other = unsent;

			other.proof ^= 1ull << bit;
			assert_int_not_equal(wire_check_fragment(words, n * 8, &other), right);
			other.proof = unsent.proof;
			other.pos ^= 1ull << bit;
			assert_int_not_equal(wire_check_fragment(words, n * 8, &other), right);
		}
	}
}

/* The ring of a sum of two payloads from their rings. */
static void ring_add(struct wire_check *sum, const struct wire_check *check)
{
	sum->r0 += check->r0;
	sum->r1 += check->r1;
	sum->r2 += check->r2;
	sum->r3 += check->r3;
	sum->r4 += check->r4;
	sum->r5 += check->r5;
}

/* The checksum of a sum is the sum of its parts' checksums, in words of 64 bits. */
static void test_check_of_a_sum(void **state)
{
	static uint64_t parts[3][WORDS_MAX], sum[WORDS_MAX];

	(void)state;
	for (size_t n = 5; n <= WORDS_MAX; n++) {
		struct wire_check ring = { 0 };

		randomize(sum, 5);
		memset(sum + 5, 0, (n - 5) * 8);
		for (size_t part = 0; part < countof(parts); part++) {
			struct wire_check check;

			randomize(parts[part], n);
			check = wire_check_words(parts[part] + 5, n - 5);
			ring_add(&ring, &check);
			for (size_t i = 5; i < n; i++)
				sum[i] += parts[part][i];
		}
		assert_int_equal(wire_check_end(ring, sum, sum + 3, n * 8), wire_check(sum, n * 8));
	}
}

/*
 * The same bit wrong in two words, as with a bad memory line. The high bits are the weakest: the
 * highest returns to its place after 63 words.
 */
static void test_check_finds_bit_pairs(void **state)
{
	uint64_t words[190];
	unsigned tried = 0, missed = 0;
	uint32_t right;

	(void)state;
	randomize(words, countof(words));
	right = wire_check(words, sizeof(words));
	for (unsigned bit = 0; bit < 64; bit++) {
		for (size_t i = 1; i < countof(words); i++) {
			words[i] ^= 1ull << bit;
			for (size_t j = i + 1; j < countof(words); j++) {
				words[j] ^= 1ull << bit;
				missed += wire_check(words, sizeof(words)) == right;
				tried++;
				words[j] ^= 1ull << bit;
			}
			words[i] ^= 1ull << bit;
		}
	}
	assert_in_range(missed, 0, tried / 5000);
}

/* Any two wrong bits: one pair in 300,000 may pass. */
static void test_check_finds_two_bits(void **state)
{
	uint64_t words[184];
	unsigned tried = (unsigned)test_cases("pairs of bits", 3000000), missed = 0;
	uint32_t right;

	(void)state;
	randomize(words, countof(words));
	right = wire_check(words, sizeof(words));
	for (unsigned i = 0; i < tried; i++) {
		uint64_t a = 64 + next_random() % (64 * countof(words) - 64);
		uint64_t b = 64 + next_random() % (64 * countof(words) - 64);

		if (a == b)
			continue;
		words[a / 64] ^= 1ull << a % 64;
		words[b / 64] ^= 1ull << b % 64;
		missed += wire_check(words, sizeof(words)) == right;
		words[a / 64] ^= 1ull << a % 64;
		words[b / 64] ^= 1ull << b % 64;
	}
	assert_in_range(missed, 0, tried / 100000);
}

/* A burst of `length` bits from bit `at` on: both ends are wrong, the bits between are random. */
static void burst(uint64_t *words, size_t at, unsigned length)
{
	uint64_t pattern =
		length > 1 ? (next_random() & ((1ull << length) - 1)) | 1ull << (length - 1) | 1
			   : 1;

	words[at / 64] ^= pattern << at % 64;
	if (at % 64 && at % 64 + length > 64)
		words[at / 64 + 1] ^= pattern >> (64 - at % 64);
}

static void test_check_finds(void **state)
{
	uint64_t words[190], right[190];
	size_t bytes = sizeof(words);
	typedef uint32_t __attribute__((may_alias)) half;
	half *halves = (half *)words;
	uint32_t check;

	(void)state;
	randomize(right, countof(right));
	memcpy(words, right, bytes);
	check = wire_check(right, bytes);
	for (size_t at = 64; at < 64 * countof(words); at++) { /* from the cookie on */
		for (unsigned length = 1; length <= 32; length++) {
			if (at + length > 64 * countof(words))
				continue;
			burst(words, at, length);
			assert_int_not_equal(wire_check(words, bytes), check);
			memcpy(&words[at / 64], &right[at / 64],
			       at / 64 + 1 < countof(words) ? 16 : 8);
		}
	}
	for (size_t at = 0; at < 32; at++) { /* magic, type, flags */
		words[0] ^= 1ull << at;
		assert_int_not_equal(wire_check(words, bytes), check);
		words[0] ^= 1ull << at;
	}
	/* The same error in two places, and swapped elements. */
	for (size_t distance = 1; distance < 40; distance++) {
		for (size_t i = 2; i + distance < 2 * countof(words); i++) {
			uint32_t error = (uint32_t)next_random() | 1;

			halves[i] ^= error;
			halves[i + distance] ^= error;
			assert_int_not_equal(wire_check(words, bytes), check);
			memcpy(words, right, bytes);
			uint32_t kept = halves[i];
			halves[i] = halves[i + distance];
			halves[i + distance] = kept;
			assert_int_not_equal(wire_check(words, bytes), check);
			memcpy(words, right, bytes);
		}
	}
	/* One word more or less, even if it is zero. */
	words[countof(words) - 1] = right[countof(words) - 1] = 0;
	check = wire_check(words, bytes);
	for (size_t n = 5; n < countof(words); n++)
		assert_int_not_equal(wire_check(words, n * 8), check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_as_documented),
		cmocka_unit_test(test_check_of_a_fragment),
		cmocka_unit_test(test_check_of_a_sum),
		cmocka_unit_test(test_check_finds_two_bits),
		cmocka_unit_test(test_check_finds),
		cmocka_unit_test(test_check_finds_bit_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
