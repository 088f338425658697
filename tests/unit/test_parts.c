/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of floats as several integers in a word, compared with exact sums: the bound of
 * docs/numbers.md holds for every number of workers, width of the integers and kind of input.
 */
#include "number/fixed.h"
#include "number/parts_loops.h"

#include "number_inputs.h"
#include "short.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const trib_type types[] = { TRIB_F16, TRIB_BF16, TRIB_F32, TRIB_F8E4M3, TRIB_F8E5M2 };
static const unsigned crowds[] = { 1, 2, 3, 4, 7, 8, 16, 64, 1000, 4096 };
static const unsigned widths[] = { 8, 6, 4, 3, 2 };

#define LENGTH 101u /* two sub-blocks, and one of a few elements */

struct sum {
	struct parts parts;
	struct wide exact[LENGTH];
	int tops[LENGTH]; /* all workers' finite magnitudes of the sub-block are below 2^this */
	uint8_t classes[LENGTH];
	uint64_t words[LENGTH];
};

static uint64_t inputs[4096][LENGTH];

/* The exponent of the smallest power of two above the magnitude, for normal numbers. */
static int top_of(trib_type type, uint64_t bits)
{
	int exponent = (int)((bits & (sign_of(type) - 1)) >> mantissa_of(type));

	return exponent + 1 - bias_of(type);
}

static void sum_make(struct sum *sum, const struct parts *parts, enum mode mode)
{
	const trib_type type = parts->type;
	const unsigned per_word = parts->per_word, workers = parts->workers;
	const struct parts kept = *parts;
	uint64_t words[LENGTH];
	uint8_t own[LENGTH];

	memset(sum, 0, sizeof(*sum));
	sum->parts = kept;
	for (size_t i = 0; i < LENGTH; i++)
		sum->tops[i] = -10000;
	for (unsigned w = 0; w < workers; w++) {
		for (size_t i = 0; i < LENGTH; i++) {
			uint64_t bits = invent(type, mode, w);
			int *top = &sum->tops[i / PARTS_BLOCK];

			put(type, inputs[w], i, bits);
			wide_add(&sum->exact[i], value_of(type, bits));
			*top = top_of(type, bits) > *top ? top_of(type, bits) : *top;
		}
		assert_false(parts_classify(type, inputs[w], LENGTH, own));
		for (size_t i = 0; i < parts_classes(LENGTH); i++)
			sum->classes[i] = own[i] > sum->classes[i] ? own[i] : sum->classes[i];
	}
	for (unsigned w = 0; w < workers; w++) {
		if (kept.dither) /* each worker has its own */
			sum->parts.dither = kept.dither + w * 2 + 1;
		parts_encode(&sum->parts, inputs[w], LENGTH, sum->classes, words);
		for (size_t i = 0; i < parts_bytes(per_word, LENGTH) / 8; i++)
			sum->words[i] += words[i];
	}
}

/* How far the sum before it is rounded to the type may be from the exact one. */
static long double bound_of(const struct sum *sum, size_t i)
{
	trib_type type = sum->parts.type;
	int bits = 64 / (int)sum->parts.per_word - 1, unit;

	while (sum->parts.workers > 1u << (64 / (int)sum->parts.per_word - 1 - bits))
		bits--;
	unit = sum->tops[i / PARTS_BLOCK] - bits;
	if (unit <= smallest_of(type)) {
		assert_int_equal(parts_unit_exponent(&sum->parts, sum->classes[i / PARTS_BLOCK]),
		                 smallest_of(type));
		return 0;
	}
	assert_int_equal(parts_unit_exponent(&sum->parts, sum->classes[i / PARTS_BLOCK]), unit);
	return ldexpl((long double)sum->parts.workers, unit) /
	       (bits <= mantissa_of(type) || sum->parts.dither ? 1 : 2);
}

static void sum_check(struct sum *sum)
{
	trib_type type = sum->parts.type;
	uint64_t result[LENGTH], average[LENGTH];

	parts_decode(&sum->parts, sum->words, LENGTH, sum->classes, false, result);
	parts_decode(&sum->parts, sum->words, LENGTH, sum->classes, true, average);
	for (size_t i = 0; i < LENGTH; i++) {
		long double bound = bound_of(sum, i), workers = sum->parts.workers;
		long double value = value_of(type, get(type, result, i));
		long double mean = value_of(type, get(type, average, i));
		struct wide rest = sum->exact[i];
		long double exact =
			wide_negative(&rest) ? -wide_magnitude(rest) : wide_magnitude(rest);

		if (!isfinite(value)) {
			assert_false(isfinite(round_to(
				type, exact + copysignl(bound, isnan(value) ? exact : value))));
		} else {
			wide_add(&rest, -value);
			assert_true(wide_magnitude(rest) <=
			            bound + ldexpl(1, place_of(type, value) - 1));
		}
		assert_true(isfinite(mean));
		assert_true(fabsl(mean - exact / workers) <=
		            (bound / workers + ldexpl(1, place_of(type, mean) - 1)) * 1.0000001L);
	}
}

static void test_bound(void **state)
{
	static struct sum sum;

	(void)state;
	seed = 1;
	for (size_t t = 0; t < countof(types); t++)
		for (size_t p = 0; p < countof(widths); p++)
			for (size_t c = 0; c < countof(crowds); c++)
				for (unsigned i = 0; i < 2 * MODES; i++) {
					struct parts parts = { types[t], widths[p], crowds[c],
						               i & 1 && widths[p] == 8 ? 2 * i
						                                       : 0 };

					if (parts_bits(widths[p], crowds[c]) < 3 ||
					    (i & 1 && widths[p] != 8) ||
					    (crowds[c] > (test_is_short() ? 16 : 1000) &&
					     types[t] != TRIB_BF16))
						continue;
					sum_make(&sum, &parts, i / 2);
					sum_check(&sum);
				}
}

/* A class of its own, and bits enough: one number comes back as it was. */
static void test_one_number(void **state)
{
	(void)state;
	for (size_t t = 0; t < countof(types); t++)
		for (uint32_t bits = 0; size_of(types[t]) <= 2 && bits < sign_of(types[t]) * 2;
		     bits++) {
			struct parts parts = { types[t], size_of(types[t]) == 1 ? 8 : 4, 1, 0 };
			uint16_t element = (uint16_t)bits, back = 0;
			uint64_t word;
			uint8_t klass;

			if (parts_classify(types[t], &element, 1, &klass)) {
				assert_true(is_special(types[t], bits));
				continue;
			}
			assert_false(is_special(types[t], bits));
			parts_encode(&parts, &element, 1, &klass, &word);
			parts_decode(&parts, &word, 1, &klass, bits & 1, &back);
			assert_int_equal(back, bits == sign_of(types[t]) ? 0 : bits);
		}
}

/* NaN and infinities do not count for the class, and leave the others alone. */
static void test_special(void **state)
{
	(void)state;
	for (size_t t = 0; t < countof(types); t++) {
		trib_type type = types[t];
		struct parts parts = { type, 4, 2, 0 };
		uint64_t elements[LENGTH] = { 0 }, back[LENGTH], words[LENGTH];
		uint64_t one = (uint64_t)bias_of(type) << mantissa_of(type);
		uint8_t classes[LENGTH], finite[LENGTH];

		for (size_t i = 0; i < LENGTH; i++)
			put(type, elements, i, one);
		assert_false(parts_classify(type, elements, LENGTH, finite));
		put(type, elements, 1, infinity_of(type));
		put(type, elements, 50, infinity_of(type) | sign_of(type));
		put(type, elements, 100, nan_of(type));
		assert_true(parts_classify(type, elements, LENGTH, classes));
		assert_memory_equal(classes, finite, parts_classes(LENGTH));
		parts_encode(&parts, elements, LENGTH, classes, words);
		parts_decode(&parts, words, LENGTH, classes, false, back);
		for (size_t i = 0; i < LENGTH; i++)
			if (i != 1 && i != 50 && i != 100)
				assert_int_equal(get(type, back, i), one);
	}
}

/* Buffers may lie anywhere, and any class may come from the network. */
static void test_anywhere(void **state)
{
	static uint8_t in[LENGTH * 4 + 8], out[LENGTH * 4 + 8], words[LENGTH * 4 + 24];
	uint8_t classes[LENGTH], same[LENGTH * 4];

	(void)state;
	seed = 2;
	for (size_t t = 0; t < countof(types); t++)
		for (size_t p = 0; p < countof(widths); p++)
			for (unsigned offset = 0; offset < 8; offset++)
				for (unsigned n = 1; n <= LENGTH; n += 1 + offset) {
					struct parts parts = { types[t], widths[p], 3, 0 };
					size_t bytes = n * size_of(types[t]);

					for (size_t i = 0; i < n; i++)
						put(types[t], in + offset, i,
						    invent(types[t], ORDINARY, 0));
					parts_classify(types[t], in + offset, n, classes);
					parts_encode(&parts, in + offset, n, classes,
					             words + offset);
					parts_decode(&parts, words + offset, n, classes, n & 1,
					             out + offset);
					memcpy(same, in + offset, bytes);
					assert_true(parts_bytes(widths[p], n) <=
					            sizeof(words) - offset);
					for (unsigned k = 0; k < countof(classes); k++)
						classes[k] = (uint8_t)draw();
					parts_encode(&parts, in + offset, n, classes,
					             words + offset);
					parts_decode(&parts, words + offset, n, classes, n & 1,
					             out + offset);
					assert_memory_equal(same, in + offset, bytes);
				}
}

/* Takes an integer out of its word: 0 is left there. */
static int part_take(const struct parts *parts, uint64_t *words, size_t i)
{
	const unsigned width = 64 / parts->per_word, shift = width * (i % parts->per_word);
	uint64_t *word = &words[i / parts->per_word], halves = 0;
	int part;

	for (unsigned k = 0; k < parts->per_word; k++)
		halves |= 1ull << (k * width + width - 1);
	part = (int)((int64_t)((*word + halves) >> shift & ((2ull << (width - 1)) - 1)) -
	             (1ll << (width - 1)));
	*word -= (uint64_t)(int64_t)part << shift;
	return part;
}

/*
 * The loops for SIMD units give the same bits as the code that goes element by element. Only the
 * integer of a NaN or of an infinity may differ, as long as it fits.
 */
static void loops_agree(const struct parts_loops *loops, struct sum *sum, enum mode mode)
{
	const struct parts *parts = &sum->parts;
	uint64_t slow[LENGTH] = { 0 }, fast[LENGTH] = { 0 };
	const int most = (1 << parts_bits(parts->per_word, parts->workers)) - 1;
	const size_t special = draw() % LENGTH;
	uint8_t classes[2][LENGTH] = { { 0 } };

	sum_make(sum, parts, mode);
	if (mode == ORDINARY)
		put(parts->type, inputs[0], special,
		    (draw() % 2 ? infinity_of(parts->type) : nan_of(parts->type)) |
		            (draw() % 2 ? sign_of(parts->type) : 0));
	assert_int_equal(parts_classify_by(NULL, parts->type, inputs[0], LENGTH, classes[0]),
	                 parts_classify_by(loops, parts->type, inputs[0], LENGTH, classes[1]));
	assert_memory_equal(classes[0], classes[1], sizeof(classes[0]));
	parts_encode_by(NULL, parts, inputs[0], LENGTH, sum->classes, slow);
	parts_encode_by(loops, parts, inputs[0], LENGTH, sum->classes, fast);
	if (mode == ORDINARY) {
		assert_true(abs(part_take(parts, slow, special)) <= most);
		assert_true(abs(part_take(parts, fast, special)) <= most);
	}
	assert_memory_equal(slow, fast, sizeof(slow));
	for (int average = 0; average < 2; average++) {
		parts_decode_by(NULL, parts, sum->words, LENGTH, sum->classes, average, slow);
		parts_decode_by(loops, parts, sum->words, LENGTH, sum->classes, average, fast);
		assert_memory_equal(slow, fast, sizeof(slow));
	}
}

/* Every sum that there can be, in every class, divided by the workers. */
static void decodes_agree(const struct parts_loops *loops, trib_type type, unsigned workers)
{
	struct parts parts = { type, 4, workers, 0 };
	unsigned step = size_of(type) == 1 ? 7 : type == TRIB_F16 ? 3 : 31;
	uint64_t words[PARTS_BLOCK / 4], slow[PARTS_BLOCK], fast[PARTS_BLOCK];

	for (unsigned klass = 0; klass < 2u * (unsigned)bias_of(type) + 1; klass += step)
		for (int first = -32767; first < 32768 - (int)PARTS_BLOCK; first += PARTS_BLOCK) {
			uint8_t byte = (uint8_t)klass;

			for (int i = 0; i < (int)PARTS_BLOCK / 4; i++)
				words[i] = (uint64_t)(int64_t)(first + 4 * i) +
				           ((uint64_t)(int64_t)(first + 4 * i + 1) << 16) +
				           ((uint64_t)(int64_t)(first + 4 * i + 2) << 32) +
				           ((uint64_t)(int64_t)(first + 4 * i + 3) << 48);
			parts_decode_by(NULL, &parts, words, PARTS_BLOCK, &byte, true, slow);
			parts_decode_by(loops, &parts, words, PARTS_BLOCK, &byte, true, fast);
			assert_memory_equal(slow, fast, PARTS_BLOCK * size_of(type));
		}
}

/* Every element that a class can have, in several classes. */
static void encodes_agree(const struct parts_loops *loops, trib_type type, unsigned workers)
{
	const struct parts parts = { type, 4, workers, 0 };
	const unsigned step = type == TRIB_F16 ? 3 : 31, count = 2 * (unsigned)sign_of(type);
	uint64_t elements[PARTS_BLOCK], slow[PARTS_BLOCK], fast[PARTS_BLOCK];

	for (unsigned klass = 0; klass < 2u * (unsigned)bias_of(type) + 1; klass += step)
		for (unsigned first = 0; first < count; first += PARTS_BLOCK) {
			uint8_t byte = (uint8_t)klass;

			for (unsigned i = 0; i < PARTS_BLOCK; i++) {
				uint32_t bits = (first + i) % count;
				uint64_t magnitude = bits & (sign_of(type) - 1);

				put(type, elements, i,
				    magnitude >> mantissa_of(type) <= klass ? bits : 0);
			}
			parts_encode_by(NULL, &parts, elements, PARTS_BLOCK, &byte, slow);
			parts_encode_by(loops, &parts, elements, PARTS_BLOCK, &byte, fast);
			assert_memory_equal(slow, fast, PARTS_BLOCK * 2);
		}
}

static void test_loops(void **state)
{
	static const unsigned divisors[] = { 1, 2, 3, 5, 7, 8, 13, 31, 64 };
	static struct sum sum;
	const struct parts_loops *all[] = { &parts_loops_plain, parts_loops_best() };

	(void)state;
	seed = 3;
	for (size_t k = 0; k < countof(all); k++)
		for (size_t t = 0; t < countof(types); t++) {
			for (size_t c = 0; c < countof(divisors); c++) {
				for (unsigned i = 0; i < (test_is_short() ? 8 : 40) * MODES; i++) {
					sum.parts = (struct parts){
						types[t], i & 1 ? 4 : 8, divisors[c],
						i & 2 && !(i & 1) ? (uint32_t)draw() : 0
					};
					if (parts_bits(sum.parts.per_word, divisors[c]) > 0)
						loops_agree(all[k], &sum, i / 4 % MODES);
				}
				if (!test_is_short() || c % 3 == 0)
					decodes_agree(all[k], types[t], divisors[c]);
				if (size_of(types[t]) == 2 && (!test_is_short() || c % 3 == 0))
					encodes_agree(all[k], types[t], divisors[c]);
			}
		}
}

/* A process may flush denormals to zero. It gets and gives the same bits as one that does not. */
static void test_flushed(void **state)
{
	static struct sum sum;

	(void)state;
	seed = 5;
	for (size_t t = 0; t < countof(types); t++)
		for (unsigned i = 0; i < 20 * MODES; i++) {
			uint64_t words[2][LENGTH] = { { 0 } }, back[2][LENGTH] = { { 0 } };
			uint8_t classes[2][LENGTH] = { { 0 } };

			unsigned per_word = widths[i % countof(widths)];

			sum.parts = (struct parts){ types[t], per_word, 2,
				                    per_word == 8 ? (uint32_t)draw() | 1 : 0 };
			sum_make(&sum, &sum.parts, i % MODES);
			for (int flush = 0; flush < 2; flush++) {
				flush_denormals(flush);
				parts_classify(types[t], inputs[0], LENGTH, classes[flush]);
				parts_encode(&sum.parts, inputs[0], LENGTH, sum.classes,
				             words[flush]);
				parts_decode(&sum.parts, sum.words, LENGTH, sum.classes, i & 1,
				             back[flush]);
				flush_denormals(false);
			}
			assert_memory_equal(classes[0], classes[1], sizeof(classes[0]));
			assert_memory_equal(words[0], words[1], sizeof(words[0]));
			assert_memory_equal(back[0], back[1], sizeof(back[0]));
		}
}

/* A digest of words and results. It is the same on every machine and with every compiler. */
static void test_same_everywhere(void **state)
{
	static struct sum sum;
	uint64_t hash = 0xcbf29ce484222325;

	(void)state;
	seed = 6;
	for (unsigned i = 0; i < 600; i++) {
		uint64_t back[2 * LENGTH] = { 0 };
		struct parts parts = { types[i % countof(types)], widths[i / 5 % countof(widths)],
			               1 + i / 25 % 4, i & 1 ? i : 0 };

		if (parts.per_word != 8)
			parts.dither = 0;
		sum_make(&sum, &parts, i / 7 % MODES);
		parts_decode(&parts, sum.words, LENGTH, sum.classes, false, back);
		parts_decode(&parts, sum.words, LENGTH, sum.classes, true, back + LENGTH);
		for (size_t k = 0; k < LENGTH; k++)
			hash = (hash ^ sum.words[k] ^ sum.classes[k]) * 0x100000001b3;
		for (size_t k = 0; k < countof(back); k++)
			hash = (hash ^ back[k]) * 0x100000001b3;
	}
	assert_int_equal(hash, 0x6623ea525329c469);
}

/* Chances of different elements have nothing in common. */
static void test_chances(void **state)
{
	double sum = 0, products = 0;
	enum { N = 100000 };

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		double one = (double)fixed_chance(77, i) - 0.5;
		double next = (double)fixed_chance(77 + i / 48 * 0x632be5abu, i + 1) - 0.5;

		sum += one;
		products += one * next;
	}
	assert_true(fabs(sum) < 5 * sqrt(N / 12.0));
	assert_true(fabs(products) < 5 * sqrt((double)N) / 12);
}

/* Rounded by chance, the mean is right, also for elements that are always below half a unit. */
static void test_mean(void **state)
{
	static const float values[] = { 1, 0.011f, -0.02f, 0.4f, -0.9f, 0 };
	enum { STEPS = 20000 };
	double sums[countof(values)] = { 0 };

	(void)state;
	for (uint32_t step = 0; step < STEPS; step++) {
		struct parts parts = { TRIB_F32, 8, 4, step * 0x9e3779b9u | 1 };
		uint64_t words[1];
		float back[countof(values)];
		uint8_t klass;

		parts_classify(TRIB_F32, values, countof(values), &klass);
		parts_encode(&parts, values, countof(values), &klass, words);
		parts_decode(&parts, words, countof(values), &klass, false, back);
		for (size_t i = 0; i < countof(values); i++)
			sums[i] += (double)back[i];
	}
	for (size_t i = 0; i < countof(values); i++) /* 1/16 is a unit: 5 deviations */
		assert_true(fabs(sums[i] / STEPS - (double)values[i]) < 5 * 0.5 / 16 / sqrt(STEPS));
}

/* An element is its integer and its residual; fed again and again, nothing gets lost. */
static void test_residual(void **state)
{
	float elements[LENGTH], fed[LENGTH], residual[LENGTH] = { 0 }, back[LENGTH];
	double sums[LENGTH] = { 0 };
	uint64_t words[LENGTH];
	uint8_t classes[LENGTH];

	(void)state;
	seed = 4;
	for (size_t p = 0; p < countof(widths); p++) {
		struct parts parts = { TRIB_F32, widths[p], 4, 0 };

		memset(residual, 0, sizeof(residual));
		memset(sums, 0, sizeof(sums));
		for (size_t i = 0; i < LENGTH; i++)
			elements[i] = ldexpf((float)(int32_t)draw(), -31 - (int)(draw() % 12));
		for (int step = 1; step <= 100; step++) {
			for (size_t i = 0; i < LENGTH; i++)
				fed[i] = elements[i] + residual[i];
			parts_classify(TRIB_F32, fed, LENGTH, classes);
			parts_encode(&parts, fed, LENGTH, classes, words);
			parts_residual(&parts, fed, LENGTH, classes, words, residual);
			parts_decode(&parts, words, LENGTH, classes, false, back);
			for (size_t i = 0; i < LENGTH; i++) {
				int unit = parts_unit_exponent(&parts, classes[i / PARTS_BLOCK]);

				assert_true(back[i] + residual[i] == fed[i]);
				assert_true(fabsf(residual[i]) <= ldexpf(1, unit));
				sums[i] += (double)back[i];
				assert_true(fabs(sums[i] + (double)residual[i] -
				                 step * (double)elements[i]) < 1e-5);
			}
		}
	}
	/* NaN and infinities leave none. */
	for (size_t i = 0; i < LENGTH; i++)
		elements[i] = i % 3 ? 1 : i % 2 ? INFINITY : NAN;
	parts_classify(TRIB_F32, elements, LENGTH, classes);
	parts_encode(&(struct parts){ TRIB_F32, 8, 4, 0 }, elements, LENGTH, classes, words);
	parts_residual(&(struct parts){ TRIB_F32, 8, 4, 0 }, elements, LENGTH, classes, words,
	               residual);
	for (size_t i = 0; i < LENGTH; i++)
		assert_true(residual[i] == 0);
}

/* As many parts as the bits allow; wider ones with more workers. */
static void test_choice(void **state)
{
	(void)state;
	assert_int_equal(parts_choose(TRIB_BF16, 2, 16), 4);
	assert_int_equal(parts_choose(TRIB_BF16, 16, 16), 4);
	assert_int_equal(parts_choose(TRIB_BF16, 17, 16), 3);
	assert_int_equal(parts_choose(TRIB_BF16, 65536, 16), 0);
	assert_int_equal(parts_choose(TRIB_F16, 8, 16), 4);
	assert_int_equal(parts_choose(TRIB_F16, 9, 16), 3);
	assert_int_equal(parts_choose(TRIB_F16, 257, 16), 0);
	assert_int_equal(parts_choose(TRIB_F32, 4, 16), 4);
	assert_int_equal(parts_choose(TRIB_F32, 64, 16), 4);
	assert_int_equal(parts_choose(TRIB_F32, 4, 8), 8);
	assert_int_equal(parts_choose(TRIB_F32, 17, 8), 4);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 4, 0), 6);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 5, 0), 4);
	assert_int_equal(parts_choose(TRIB_F8E5M2, 8, 0), 6);
	assert_int_equal(parts_choose(TRIB_F8E5M2, 9, 0), 4);
	assert_int_equal(parts_choose(TRIB_F8E5M2, 4, 8), 8);
	assert_int_equal(parts_choose(TRIB_F8E5M2, 4, 16), 4);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 256, 0), 4);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 257, 0), 3);
	assert_int_equal(parts_choose(TRIB_F8E5M2, 512, 0), 4);
	assert_int_equal(parts_choose(TRIB_F8E5M2, 513, 0), 3);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 16, 8), 8);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 17, 8), 6);
	assert_int_equal(parts_choose(TRIB_F8E4M3, 65, 8), 4);
	for (trib_type type = TRIB_I8; type <= TRIB_F8E5M2; type++) {
		assert_int_equal(parts_choose(type, 2, 32), 0);
		if (type < TRIB_F16 || type == TRIB_F64)
			assert_int_equal(parts_choose(type, 2, 8), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),   cmocka_unit_test(test_one_number),
		cmocka_unit_test(test_special), cmocka_unit_test(test_anywhere),
		cmocka_unit_test(test_choice),  cmocka_unit_test(test_loops),
		cmocka_unit_test(test_mean),    cmocka_unit_test(test_residual),
		cmocka_unit_test(test_flushed), cmocka_unit_test(test_same_everywhere),
		cmocka_unit_test(test_chances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
