/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number module compared with references that share no code with it: exact sums in very wide
 * fixed point, and rounding in long double.
 */
#include "base/random_bits.h"
#include "number/format.h"
#include "number/wide.h"
#include "number_inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const trib_type floats[] = { TRIB_F16, TRIB_BF16,   TRIB_F32,
	                            TRIB_F64, TRIB_F8E4M3, TRIB_F8E5M2 };
static const unsigned crowds[] = { 1, 2, 3, 4, 7, 8, 64, 1000, 4096 };

#define LENGTH 24

/* Sums the vectors of N workers as the network does, and compares with the documented bound. */
static void sum_within_bound(trib_type type, unsigned workers, enum mode mode)
{
	static uint64_t inputs[4096][LENGTH];
	uint64_t integers[LENGTH], sums[LENGTH], result[LENGTH], average[LENGTH];
	struct wide exact[LENGTH];
	int bits = bits_for(type, workers), unit;
	__int128 total[LENGTH] = { 0 };
	long double bound;
	uint16_t klass = 0;

	memset(exact, 0, sizeof(exact));
	for (unsigned w = 0; w < workers; w++) {
		bool special;
		uint16_t own;

		for (size_t i = 0; i < LENGTH; i++) {
			put(type, inputs[w], i, invent(type, mode, w));
			wide_add(&exact[i], value_of(type, get(type, inputs[w], i)));
		}
		own = number_classify(type, inputs[w], LENGTH, &special);
		assert_false(special);
		klass = own > klass ? own : klass;
	}
	unit = unit_exponent(type, klass, workers);
	for (unsigned w = 0; w < workers; w++) {
		number_encode(type, inputs[w], LENGTH, klass, workers, integers);
		for (size_t i = 0; i < LENGTH; i++) {
			int64_t integer = integer_at(type, integers, i);

			assert_true(llabs(integer) <= (int64_t)((1ull << bits) - 1));
			total[i] += integer;
		}
	}
	for (size_t i = 0; i < LENGTH; i++) {
		if (type == TRIB_F64) {
			assert_true(total[i] == (int64_t)total[i]);
			((int64_t *)sums)[i] = (int64_t)total[i];
		} else {
			assert_true(total[i] == (int32_t)total[i]);
			((int32_t *)sums)[i] = (int32_t)total[i];
		}
	}
	number_decode(type, sums, LENGTH, klass, workers, false, result);
	number_decode(type, sums, LENGTH, klass, workers, true, average);

	bound = ldexpl((long double)workers, unit - 1) * (bits <= mantissa_of(type) ? 2 : 1);
	if (unit == smallest_of(type))
		bound = 0; /* every element is a multiple of the unit */
	for (size_t i = 0; i < LENGTH; i++) {
		long double sum = value_of(type, get(type, result, i));
		long double mean = value_of(type, get(type, average, i));

		if (!isfinite(sum)) {
			assert_true(isnan(sum) || (sum < 0) == wide_negative(&exact[i]));
			assert_false(isfinite(round_to(type, wide_magnitude(exact[i]) + bound)));
		} else {
			wide_add(&exact[i], -sum);
			assert_true(wide_magnitude(exact[i]) <=
			            bound + ldexpl(1, place_of(type, sum) - 1));
		}
		if (type != TRIB_F64)
			assert_true(is_same(
				mean,
				round_to(type, ldexpl((long double)total[i], unit) / workers)));
		else
			assert_true(fabsl(mean - ldexpl((long double)total[i], unit) / workers) <=
			            ldexpl(1, place_of(type, mean)));
	}
}

static void test_bound(void **state)
{
	(void)state;
	seed = 1;
	for (size_t t = 0; t < countof(floats); t++)
		for (size_t c = 0; c < countof(crowds); c++)
			for (enum mode mode = 0; mode < MODES; mode++)
				for (int repeat = crowds[c] < 100 ? 8 : 1; repeat > 0; repeat--)
					sum_within_bound(floats[t], crowds[c], mode);
}

/* The largest number of workers, all with values that round up to the top of a class. */
static void test_no_overflow(void **state)
{
	(void)state;
	for (size_t t = 0; t < countof(floats); t++) {
		trib_type type = floats[t];

		for (unsigned workers = 1; workers <= NUMBER_WORKERS_MAX;
		     workers = workers < 300 ? workers + 1 : workers * 2 - workers % 7) {
			int64_t limit = type == TRIB_F64 ? INT64_MAX : INT32_MAX;

			for (unsigned e = 1; e < 2u * (unsigned)bias_of(type) + 2;
			     e += workers % 13 + 1) {
				uint64_t element, integer = 0;
				bool special;

				put(type, &element, 0, ((uint64_t)e << mantissa_of(type)) - 1);
				number_encode(type, &element, 1,
				              number_classify(type, &element, 1, &special), workers,
				              &integer);
				assert_true((__int128)workers * integer_at(type, &integer, 0) <=
				            limit);
			}
		}
	}
}

static void test_classes(void **state)
{
	(void)state;
	seed = 2;
	for (size_t t = 0; t < countof(floats); t++) {
		trib_type type = floats[t];
		uint64_t zeros[2] = { 0 }, pair[2];
		uint16_t before = 0;
		bool special;

		put(type, zeros, 1, sign_of(type));
		assert_int_equal(number_classify(type, zeros, 2, &special), 0);
		assert_false(special);
		assert_int_equal(number_classify(type, zeros, 0, &special), 0);
		for (unsigned workers = 1; workers <= NUMBER_WORKERS_MAX; workers *= 2)
			assert_int_equal(unit_exponent(type, 0, workers), smallest_of(type));

		/* Every power of two and its neighbours, upwards. */
		for (uint64_t bits = 1; bits < infinity_of(type);
		     bits += bits < 1ull << mantissa_of(type) ? bits : 1ull << mantissa_of(type))
			for (uint64_t near = bits - 1; near <= bits; near++) {
				uint16_t klass;

				put(type, pair, 0, near | (draw() & sign_of(type)));
				put(type, pair, 1, draw() % 2 ? infinity_of(type) : nan_of(type));
				klass = number_classify(type, pair, 2, &special);
				assert_true(special);
				assert_true(klass >= before);
				assert_true(value_of(type, near) <
				            ldexpl(1, unit_exponent(type, klass, 1) +
				                              bits_for(type, 1)));
				/* The class is no higher than needed. */
				if (klass > before && near >= 1ull << mantissa_of(type) &&
				    unit_exponent(type, klass, NUMBER_WORKERS_MAX) >
				            smallest_of(type))
					assert_true(value_of(type, near) >=
					            ldexpl(1, unit_exponent(type, klass,
					                                    NUMBER_WORKERS_MAX) +
					                              bits_for(type,
					                                       NUMBER_WORKERS_MAX) -
					                              NUMBER_CLASS_STEP));
				before = klass;
			}
	}
}

/* Every pattern of a short type, each at its own class and all at the highest. */
static void every_pattern(trib_type type)
{
	const unsigned patterns = 1u << (8 * size_of(type));
	char *all = malloc(patterns * size_of(type));
	int32_t *integers = malloc(patterns * sizeof(*integers));
	uint16_t highest;
	bool special;
	int unit;

	for (unsigned h = 0; h < patterns; h++) {
		char *element = all + h * size_of(type);
		uint64_t back = 0;
		uint16_t klass;
		int32_t integer;

		put(type, all, h, h);
		klass = number_classify(type, element, 1, &special);
		assert_int_equal(special, is_special(type, h));
		number_encode(type, element, 1, klass, 1, &integer);
		number_decode(type, &integer, 1, klass, 1, h & 1, &back);
		if (special)
			assert_int_equal(integer, 0);
		else
			assert_int_equal(back, h == sign_of(type) ? 0 : h);
	}
	highest = number_classify(type, all, patterns, &special);
	assert_true(special);
	unit = unit_exponent(type, highest, 8);
	number_encode(type, all, patterns, highest, 8, integers);
	for (unsigned h = 0; h < patterns; h++)
		assert_true(integers[h] ==
		            (is_special(type, h) ? 0 : rintl(ldexpl(value_of(type, h), -unit))));
	free(integers);
	free(all);
}

static void test_every_pattern(void **state)
{
	(void)state;
	for (size_t t = 0; t < countof(floats); t++)
		if (size_of(floats[t]) <= 2)
			every_pattern(floats[t]);
}

/* Decoding rounds once: random sums of all sizes, at all scales. */
static void test_decode_rounds_once(void **state)
{
	(void)state;
	seed = 3;
	for (size_t t = 0; t < countof(floats); t++) {
		trib_type type = floats[t];
		int highest = (int)number_classify(type, &(uint64_t){ infinity_of(type) - 1 }, 1,
		                                   &(bool){ false });

		assert_int_equal(number_class_is_byte(type), highest < 256);
		for (int trial = 0; trial < 100000; trial++) {
			unsigned workers = 1 + (0xffff >> draw() % 17);
			uint16_t klass = (uint16_t)(draw() % (unsigned)(highest + 1));
			int64_t sum = (int64_t)draw() >> (type == TRIB_F64 ? 1 : 33);
			bool average = type != TRIB_F64 && draw() & 1;
			long double exact;
			uint64_t back = 0;

			workers -= (unsigned)draw() % workers;
			sum >>= draw() % 30;
			if (draw() % 4 == 0) /* a tie, or close to it */
				sum = (sum | 0xfff) + 1 + (int64_t)(draw() % 3) - 1;
			if (average && draw() % 4 == 0) /* a quotient with few bits */
				sum = sum / 65536 / workers * workers;
			exact = ldexpl((long double)sum, unit_exponent(type, klass, workers));
			if (average)
				exact /= workers;
			number_decode(type, &sum, 1, klass, workers, average, &back);
			assert_true(is_same(value_of(type, get(type, &back, 0)),
			                    round_to(type, exact)));
		}
	}
}

static void test_specials(void **state)
{
	(void)state;
	for (size_t t = 0; t < countof(floats); t++) {
		trib_type type = floats[t];
		uint64_t infinity = infinity_of(type), sign = sign_of(type);
		const uint64_t values[] = {
			0,
			sign,
			1,
			sign | 1,
			infinity,
			sign | infinity,
			infinity - 1,
			nan_of(type),
			sign | nan_of(type),
			sign - 1,
			sign | (sign - 1),
		};

		for (size_t a = 0; a < countof(values); a++)
			for (size_t b = 0; b < countof(values); b++)
				for (size_t first = 0; first < 9; first++) {
					long double sum = value_of(type, values[a]) +
					                  value_of(type, values[b]);
					uint64_t left, right, result[3], untouched;
					uint8_t mask[4] = { 0 };

					put(type, &left, 0, values[a]);
					put(type, &right, 0, values[b]);
					put(type, &untouched, 0, 3);
					for (size_t i = 0; i < 3; i++)
						put(type, result, i, 3);
					number_mask(type, &left, 1, mask, first + 1);
					number_mask(type, &right, 1, mask, first + 1);
					number_unmask(type, mask, first, 3, result);
					assert_int_equal(get(type, result, 0), 3);
					assert_int_equal(get(type, result, 2), 3);
					if (isnan(sum))
						assert_true(isnan(
							value_of(type, get(type, result, 1))));
					else if (isinf(sum))
						assert_true(value_of(type, get(type, result, 1)) ==
						            sum);
					else
						assert_int_equal(get(type, result, 1), 3);
				}
	}
}

static void check_key_pair(trib_type type, uint64_t a, uint64_t b, bool for_max)
{
	uint64_t pair[2], keys[2], back[2];
	long double x = value_of(type, a), y = value_of(type, b);
	int64_t p, q;

	put(type, pair, 0, a);
	put(type, pair, 1, b);
	number_to_keys(type, pair, 2, for_max, keys);
	number_from_keys(type, keys, 2, back);
	p = integer_at(type, keys, 0);
	q = integer_at(type, keys, 1);
	if (isnan(x)) {
		assert_true(for_max ? p >= q : p <= q);
		assert_true((p == q) == (isnan(y) != 0));
		assert_true(isnan(value_of(type, get(type, back, 0))));
		return;
	}
	assert_int_equal(get(type, back, 0), a);
	if (isnan(y))
		return;
	if (x == 0 && y == 0)
		assert_int_equal((p > q) - (p < q), (a < b) - (a > b)); /* -0 has the larger bits */
	else
		assert_int_equal((p > q) - (p < q), (x > y) - (x < y));
}

static void test_keys(void **state)
{
	(void)state;
	seed = 4;
	for (size_t t = 0; t < countof(floats); t++) {
		trib_type type = floats[t];
		uint64_t infinity = infinity_of(type), sign = sign_of(type), all = sign * 2 - 1;
		const uint64_t edges[] = { 0,
			                   1,
			                   infinity - 1,
			                   infinity,
			                   nan_of(type),
			                   sign - 1,
			                   sign,
			                   sign + 1,
			                   sign | (infinity - 1),
			                   sign | infinity,
			                   sign | nan_of(type),
			                   all };

		for (size_t a = 0; a < countof(edges); a++)
			for (size_t b = 0; b < countof(edges); b++) {
				check_key_pair(type, edges[a], edges[b], true);
				check_key_pair(type, edges[a], edges[b], false);
			}
		for (unsigned i = 0; i < 65536; i++) /* the short types: all values */
			check_key_pair(type, size_of(type) <= 2 ? i & all : draw() & all,
			               draw() & all, i & 1);
	}
}

/* Any length and any alignment. Nothing is written beyond the end. */
static void test_odd_places(void **state)
{
	(void)state;
	seed = 5;
	for (size_t t = 0; t < countof(floats); t++) {
		trib_type type = floats[t];
		size_t size = size_of(type), wire = number_wire_size(type);

		for (size_t n = 0; n < 40; n++)
			for (size_t offset = 0; offset < 9; offset++) {
				uint64_t straight[40], integers[41], copy[41];
				char shifted[340], back[340];
				bool special;
				uint16_t klass;

				for (size_t i = 0; i < n; i++)
					put(type, straight, i, invent(type, ANY_BITS, 0));
				memset(shifted, 0xff, sizeof(shifted)); /* NaN all around */
				memset(back, 0x55, sizeof(back));
				memset(integers, 0x55, sizeof(integers));
				memcpy(shifted + offset, straight, n * size);
				klass = number_classify(type, shifted + offset, n, &special);
				assert_false(special);
				assert_int_equal(klass,
				                 number_classify(type, straight, n, &special));

				number_encode(type, shifted + offset, n, klass, 3, integers);
				assert_int_equal(((uint8_t *)integers)[n * wire], 0x55);
				for (size_t i = 0; i < n; i++) {
					number_encode(type, (char *)straight + i * size, 1, klass,
					              3, copy);
					assert_memory_equal((char *)integers + i * wire, copy,
					                    wire);
				}
				number_decode(type, integers, n, klass, 3, n & 1, back + offset);
				assert_int_equal(back[offset + n * size], 0x55);
				for (size_t i = 0; i < n; i++) {
					number_decode(type, (char *)integers + i * wire, 1, klass,
					              3, n & 1, copy);
					assert_memory_equal(back + offset + i * size, copy, size);
				}
				number_to_keys(type, shifted + offset, n, true, integers);
				assert_int_equal(((uint8_t *)integers)[n * wire], 0x55);
				number_from_keys(type, integers, n, back + offset);
				assert_int_equal(back[offset + n * size], 0x55);
				assert_memory_equal(back + offset, straight, n * size);
			}
	}
}

#define CHECK_DIVIDE(type, integer)                                                     \
	do {                                                                            \
		char buffer[sizeof(integer) * 50 + 1];                                  \
		integer before[50], after;                                              \
		for (int i = 0; i < 50; i++)                                            \
			before[i] = (integer)(draw() >> draw() % 64);                   \
		memcpy(buffer + 1, before, sizeof(before));                             \
		number_divide(type, buffer + 1, 50, workers);                           \
		for (size_t i = 0; i < 50; i++) {                                       \
			memcpy(&after, buffer + 1 + i * sizeof(after), sizeof(after));  \
			assert_true(after == (integer)((__int128)before[i] / workers)); \
		}                                                                       \
	} while (0)

static void test_divide(void **state)
{
	(void)state;
	seed = 6;
	for (unsigned workers = 1; workers <= NUMBER_WORKERS_MAX; workers = workers * 3 / 2 + 1) {
		CHECK_DIVIDE(TRIB_I8, int8_t);
		CHECK_DIVIDE(TRIB_I32, int32_t);
		CHECK_DIVIDE(TRIB_I64, int64_t);
		CHECK_DIVIDE(TRIB_U8, uint8_t);
		CHECK_DIVIDE(TRIB_U32, uint32_t);
		CHECK_DIVIDE(TRIB_U64, uint64_t);
	}
}

/*
 * A digest of all results for random blocks. It is the same on every machine, with every compiler,
 * and whatever happens to denormals.
 */
static uint64_t digest(bool flush)
{
	uint64_t hash = 0xcbf29ce484222325;

	seed = 7;
	for (int round = 0; round < 4000; round++) {
		trib_type type = floats[(size_t)round % countof(floats)];
		unsigned workers = 1 + (unsigned)draw() % (round % 3 ? 12 : NUMBER_WORKERS_MAX);
		enum mode mode = (enum mode)(draw() % MODES);
		uint64_t in[33], integers[33], out[33 * 4];
		uint16_t klass;
		bool special;

		memset(in, 0, sizeof(in));
		memset(integers, 0, sizeof(integers));
		memset(out, 0, sizeof(out));
		for (size_t i = 0; i < 33; i++)
			put(type, in, i, invent(type, mode, (unsigned)i));
		flush_denormals(flush);
		klass = (uint16_t)(number_classify(type, in, 33, &special) + draw() % 3);
		number_encode(type, in, 33, klass, workers, integers);
		number_decode(type, integers, 33, klass, workers, false, out);
		number_decode(type, integers, 33, klass, workers, true, out + 33);
		number_to_keys(type, in, 33, round & 4, out + 66);
		number_from_keys(type, out + 66, 33, out + 99);
		flush_denormals(false);
		hash = (hash ^ klass) * 0x100000001b3;
		for (size_t i = 0; i < 33; i++)
			hash = (hash ^ integers[i]) * 0x100000001b3;
		for (size_t i = 0; i < countof(out); i++)
			hash = (hash ^ out[i]) * 0x100000001b3;
	}
	return hash;
}

static void test_same_everywhere(void **state)
{
	(void)state;
	assert_int_equal(digest(false), 0x3605d023cb27a0c9);
	assert_int_equal(digest(true), digest(false));
}

/* Sums of pairs are pairs of sums, within the range of two's complement. */
static void test_pairs(void **state)
{
	static const int32_t edges[] = { 0, 1, -1, INT32_MAX, INT32_MIN, 77, -1000000 };
	const size_t n = countof(edges);

	(void)state;
	for (size_t i = 0; i < n * n * n * n; i++) {
		int32_t one[3] = { edges[i % n] / 2, edges[i / n % n] / 2, 5 };
		int32_t two[3] = { edges[i / n / n % n] / 2, edges[i / n / n / n] / 2, -7 };
		int32_t sum[3], back[3] = { 0 };
		uint64_t a, b;

		for (int k = 0; k < 3; k++)
			sum[k] = one[k] + two[k];
		number_pair(one, 3);
		number_pair(two, 3);
		memcpy(&a, one, 8);
		memcpy(&b, two, 8);
		a += b;
		memcpy(one, &a, 8);
		one[2] += two[2];
		number_unpair(one, 3, back);
		assert_memory_equal(back, sum, sizeof(sum));
	}
}

/* Of every length, and from every place: loops over several pairs end with single ones. */
static void test_many_pairs(void **state)
{
	int32_t one[72], back[72], pairs[72];

	(void)state;
	for (size_t n = 0; n < 64; n++)
		for (size_t at = 0; at < 8; at++) {
			for (size_t i = 0; i < n; i++)
				one[at + i] = (int32_t)bits_mix(n * 64 + at * 8 + i);
			memcpy(pairs, one, sizeof(one));
			number_pair(pairs + at, n);
			for (size_t i = 0; i + 1 < n; i += 2) {
				uint64_t low = (uint64_t)(int64_t)one[at + i], pair;

				memcpy(&pair, pairs + at + i, sizeof(pair));
				assert_true(pair ==
				            ((uint64_t)(uint32_t)one[at + i + 1] << 32) + low);
			}
			number_unpair(pairs + at, n, back + at);
			assert_memory_equal(back + at, one + at, n * sizeof(*one));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),       cmocka_unit_test(test_many_pairs),
		cmocka_unit_test(test_classes),     cmocka_unit_test(test_bound),
		cmocka_unit_test(test_no_overflow), cmocka_unit_test(test_every_pattern),
		cmocka_unit_test(test_specials),    cmocka_unit_test(test_decode_rounds_once),
		cmocka_unit_test(test_keys),        cmocka_unit_test(test_odd_places),
		cmocka_unit_test(test_divide),      cmocka_unit_test(test_same_everywhere),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	number_wide_off = true; /* all again, with the loops of processors without AVX2 */
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
