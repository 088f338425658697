/* SPDX-License-Identifier: Apache-2.0 */
#include "number/parts.h"

#include "number/fixed.h"
#include "number/parts_loops.h"

#if defined(HAVE_PARTS_AVX2)
#include <cpuid.h>
#elif defined(HAVE_PARTS_BFCVT)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

int parts_bits(unsigned per_word, unsigned workers)
{
	return 64 / (int)per_word - 1 - ceil_log2(workers);
}

/* The least B with which a type is summed in short integers: see `trib bench numbers`. */
static int least_bits(trib_type type, unsigned bits)
{
	if (bits == 8)
		return 3;
	if (trib_type_size(type) == 1)
		return type == TRIB_F8E4M3 ? 7 : 6;
	return type == TRIB_F16 ? 12 : type == TRIB_BF16 ? 11 : 9;
}

unsigned parts_choose(trib_type type, unsigned workers, unsigned bits)
{
	static const unsigned choices[] = { 8, 6, 4, 3 };

	if (!number_is_float(type) || type == TRIB_F64)
		return 0;
	if (!bits)
		bits = trib_type_size(type) == 1 ? 10 : 8 * (unsigned)trib_type_size(type);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (choices[i] == 6 && trib_type_size(type) > 1)
			continue; /* too few bits for it */
		if (64 / choices[i] >= bits &&
		    parts_bits(choices[i], workers) >= least_bits(type, bits))
			return choices[i];
	}
	return 0;
}

/* The exponent field of the largest finite magnitude; the field of special values does not count.
 */
ALWAYS_INLINE uint8_t classify(trib_type type, const void *elements, size_t n, int32_t *largest)
{
	const int32_t infinity = (int32_t)format_of(type).infinity;
	const int32_t magnitude_bits = (int32_t)(format_of(type).sign - 1);
	int32_t finite_largest = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t magnitude = (int32_t)load32(type, elements, i) & magnitude_bits;
		int32_t finite = magnitude < infinity ? magnitude : 0;

		*largest = magnitude > *largest ? magnitude : *largest;
		finite_largest = finite > finite_largest ? finite : finite_largest;
	}
	return (uint8_t)(finite_largest >> format_of(type).mantissa);
}

/* The same of any sub-block, and whether there are NaN or infinities. */
static uint8_t class_of(trib_type type, const void *elements, size_t n, bool *special)
{
	int32_t largest = 0;
	uint8_t klass = WITH_TYPE(type, classify, elements, n, &largest);

	*special |= largest >= (int32_t)format_of(type).infinity;
	return klass;
}

bool parts_classify_by(const struct parts_loops *loops, trib_type type, const void *elements,
                       size_t n, uint8_t *classes)
{
	const int32_t infinity = (int32_t)format_of(type).infinity;
	const uint8_t highest = (uint8_t)(format_of(type).infinity >> format_of(type).mantissa);
	const size_t bytes = PARTS_BLOCK * trib_type_size(type);
	const uint8_t *in = elements;
	bool special = false;

	if (loops && loops->classify(type, elements, n, classes) < infinity)
		return false;
	for (size_t block = 0; block * PARTS_BLOCK < n; block++) {
		size_t left = n - block * PARTS_BLOCK;

		if (!loops || classes[block] == highest)
			classes[block] =
				class_of(type, in + block * bytes,
			                 left < PARTS_BLOCK ? left : PARTS_BLOCK, &special);
	}
	return special;
}

bool parts_classify(trib_type type, const void *elements, size_t n, uint8_t *classes)
{
	return parts_classify_by(parts_loops_best(), type, elements, n, classes);
}

/* Finite magnitudes of a class are below 2^this. A class from the network may be any byte. */
static int top_of(trib_type type, uint8_t klass)
{
	int top = klass + 1 - format_of(type).bias, highest = format_of(type).highest;

	return top < highest ? top : highest;
}

int parts_unit_exponent(const struct parts *parts, uint8_t klass)
{
	int unit = top_of(parts->type, klass) - parts_bits(parts->per_word, parts->workers);

	return unit > format_smallest(parts->type) ? unit : format_smallest(parts->type);
}

/* Calls `function` with the number of parts as a constant, so that the compiler unrolls its loops.
 */
#define WITH_PARTS(per_word, function, ...)           \
	((per_word) == 8   ? function(8, __VA_ARGS__) \
	 : (per_word) == 6 ? function(6, __VA_ARGS__) \
	 : (per_word) == 4 ? function(4, __VA_ARGS__) \
	 : (per_word) == 3 ? function(3, __VA_ARGS__) \
	                   : function(2, __VA_ARGS__))

/* The integers of a sub-block to words. Those that the sub-block lacks are 0. */
ALWAYS_INLINE void pack_words(unsigned per_word, const int32_t *integers, size_t words,
                              loose_u64 *out)
{
	const unsigned width = 64 / per_word;

	for (size_t i = 0; i < words; i++) {
		uint64_t word = 0;

		for (unsigned k = 0; k < per_word; k++)
			word += (uint64_t)(int64_t)integers[i * per_word + k] << k * width;
		out[i] = word;
	}
}

static void pack(unsigned per_word, const int32_t *integers, size_t n, void *out)
{
	WITH_PARTS(per_word, pack_words, integers, parts_bytes(per_word, n) / 8, out);
}

/*
 * A negative part borrows from the part above it. With half of its range added to each part none
 * is negative, and the parts lie side by side as plain bits.
 */
ALWAYS_INLINE void unpack_words(unsigned per_word, const loose_u64 *in, size_t words,
                                int32_t *integers)
{
	const unsigned width = 64 / per_word;
	const uint64_t half = 1ull << (width - 1), mask = (1ull << width) - 1;
	uint64_t halves = 0;

	for (unsigned k = 0; k < per_word; k++)
		halves |= half << k * width;
	for (size_t i = 0; i < words; i++)
		for (unsigned k = 0; k < per_word; k++)
			integers[i * per_word + k] =
				(int32_t)((int64_t)((in[i] + halves) >> k * width & mask) -
			                  (int64_t)half);
}

/* `integers` has room for a sub-block. */
static void unpack(unsigned per_word, const void *in, size_t n, int32_t *integers)
{
	WITH_PARTS(per_word, unpack_words, in, parts_bytes(per_word, n) / 8, integers);
}

/* Elements that are not below 2^top become the largest integer. NaN does, too. */
static void limit_large(trib_type type, const void *elements, size_t n, int top, int bits,
                        int32_t *integers)
{
	const uint32_t ceiling = (uint32_t)format_power(type, top);
	const uint32_t sign = (uint32_t)format_of(type).sign;
	const int32_t limit = (int32_t)((1u << bits) - 1);

	for (size_t i = 0; i < n; i++) {
		uint32_t element = load32(type, elements, i), magnitude = element & (sign - 1);

		if (magnitude >= ceiling)
			integers[i] = element & sign && magnitude < format_first_nan(type) ? -limit
			                                                                   : limit;
	}
}

/* One sub-block, element by element. */
static void encode_slowly(const struct parts *parts, const void *elements, size_t n, uint8_t klass,
                          uint32_t seed, void *words)
{
	const int top = top_of(parts->type, klass), unit = parts_unit_exponent(parts, klass);
	const int bits = parts_bits(parts->per_word, parts->workers);
	int32_t integers[PARTS_BLOCK] = { 0 };

	if (parts->dither && parts->per_word == 8)
		fixed_dither(parts->type, elements, n, top, unit, seed, integers);
	else
		fixed_encode(parts->type, elements, n, top, unit, integers);
	fixed_clamp(integers, n, bits);
	limit_large(parts->type, elements, n, top, bits, integers);
	pack(parts->per_word, integers, n, words);
}

/* NULL: there are none for this number of parts. */
static const struct parts_loops *loops_for(const struct parts_loops *loops,
                                           const struct parts *parts)
{
	return parts->per_word == 4 || parts->per_word == 8 ? loops : NULL;
}

/* Loops are for units from 2^least on, and as long as 1.5 * 2^23 units are finite. */
static struct parts_units units_of(const struct parts *parts, int least)
{
	const int bits = parts_bits(parts->per_word, parts->workers), most = 127 - 24;
	struct parts_units units = { .zero = 1 - format_of(parts->type).bias - bits,
		                     .lowest = format_smallest(parts->type),
		                     .highest = top_of(parts->type, UINT8_MAX) - bits,
		                     .last = UINT8_MAX };

	if (units.lowest < least)
		units.first = least - units.zero;
	if (units.highest > most)
		units.last = most - units.zero;
	return units;
}

void parts_encode_by(const struct parts_loops *loops, const struct parts *parts,
                     const void *elements, size_t n, const uint8_t *classes, void *words)
{
	const trib_type type = parts->type;
	const size_t bytes = PARTS_BLOCK * trib_type_size(type);
	const size_t word_bytes = PARTS_BLOCK / parts->per_word * 8;
	/* From this unit on, a denormal f32 is 0, flushed or not. */
	const int tiny = parts->dither ? FIXED_DITHER_TINY : 2 - format_of(type).bias;
	const int least = format_is_narrow(type) ? format_smallest(type) : tiny;
	const struct parts_units units = units_of(parts, least);
	const uint8_t *in = elements;
	uint8_t *out = words;

	loops = loops_for(loops, parts);
	for (size_t block = 0, run; n; block += run) {
		run = loops ? loops->encode(parts, &units, in, n, block, classes + block, out) : 0;
		if (!run) {
			encode_slowly(parts, in, n < PARTS_BLOCK ? n : PARTS_BLOCK, classes[block],
			              parts_seed(parts, block), out);
			run = 1;
		}
		in += run * bytes;
		out += run * word_bytes;
		n -= n < run * PARTS_BLOCK ? n : run * PARTS_BLOCK;
	}
}

void parts_encode(const struct parts *parts, const void *elements, size_t n, const uint8_t *classes,
                  void *words)
{
	parts_encode_by(parts_loops_best(), parts, elements, n, classes, words);
}

void parts_decode_by(const struct parts_loops *loops, const struct parts *parts, const void *words,
                     size_t n, const uint8_t *classes, bool average, void *elements)
{
	const trib_type type = parts->type;
	const unsigned divisor = average ? parts->workers : 1;
	const size_t bytes = PARTS_BLOCK * trib_type_size(type);
	const size_t word_bytes = PARTS_BLOCK / parts->per_word * 8;
	const int least = -126 + ceil_log2(divisor); /* from this unit on, no f32 is denormal */
	const struct parts_units units = units_of(parts, least);
	const uint8_t *in = words;
	uint8_t *out = elements;

	loops = loops_for(loops, parts);
	for (size_t block = 0, run; n; block += run) {
		run = loops ? loops->decode(parts, &units, in, n, classes + block, divisor, out)
		            : 0;
		if (!run) {
			size_t now = n < PARTS_BLOCK ? n : PARTS_BLOCK;
			int32_t sums[PARTS_BLOCK];

			unpack(parts->per_word, in, now, sums);
			fixed_decode(type, sums, now, parts_unit_exponent(parts, classes[block]),
			             parts->workers, average, out);
			run = 1;
		}
		in += run * word_bytes;
		out += run * bytes;
		n -= n < run * PARTS_BLOCK ? n : run * PARTS_BLOCK;
	}
}

void parts_decode(const struct parts *parts, const void *words, size_t n, const uint8_t *classes,
                  bool average, void *elements)
{
	parts_decode_by(parts_loops_best(), parts, words, n, classes, average, elements);
}

void parts_residual(const struct parts *parts, const void *elements, size_t n,
                    const uint8_t *classes, const void *words, float *residual)
{
	const size_t word_bytes = PARTS_BLOCK / parts->per_word * 8;
	const uint8_t *in = words;
	const loose_u32 *bits = elements;

	for (; n; in += word_bytes, classes++) {
		size_t now = n < PARTS_BLOCK ? n : PARTS_BLOCK;
		double unit = f64_power(parts_unit_exponent(parts, *classes));
		int32_t integers[PARTS_BLOCK] = { 0 };

		unpack(parts->per_word, in, now, integers);
		for (size_t i = 0; i < now; i++) {
			bool finite = (bits[i] & INT32_MAX) < format_of(TRIB_F32).infinity;

			residual[i] =
				finite ? (float)((double)f32_from(bits[i]) - integers[i] * unit)
				       : 0;
		}
		bits += now;
		residual += now;
		n -= now;
	}
}

#if defined(HAVE_PARTS_AVX2)
#define NEWER parts_loops_avx2

/* A virtual machine may have one without the other. */
static bool has_newer(void)
{
	unsigned a, b, c = 0, d;

	return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#elif defined(HAVE_PARTS_BFCVT)
#define NEWER parts_loops_bfcvt

static bool has_newer(void)
{
	return getauxval(AT_HWCAP2) & HWCAP2_BF16;
}
#endif

const struct parts_loops *parts_loops_best(void)
{
#ifdef NEWER
	static _Atomic int known; /* 1: no, 2: yes */

	if (!known)
		known = has_newer() ? 2 : 1;
	if (known == 2)
		return &NEWER;
#endif
	return &parts_loops_plain;
}
