/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside parts_loops.c: elements of 16 bits in the vectors of the processor. Compilers do not find
 * these instructions in plain loops, or only some compilers do.
 *
 * PARTS_VECTOR is the number of elements in a vector. It is not defined if the compiler may not use
 * any of these instruction sets: then there are only the plain loops. VECTOR_F16 says that there
 * are instructions for f16.
 *
 * vector_encode() adds `steps` to the f32 of each element, and gives the low 16 bits of the sums.
 * vector_decode() makes an f32 of each 16 bits, with `above` as its upper half. It subtracts
 * `base`, divides by `workers` if `divides`, and rounds to the type, to nearest, ties to even.
 */
#ifndef TRIB_NUMBER_PARTS_VECTOR_H
#define TRIB_NUMBER_PARTS_VECTOR_H

#include "number/format.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define PARTS_VECTOR 8u
#define VECTOR_F16 1

typedef uint16x8_t vector;
typedef float32x4_t vector_f32;

ALWAYS_INLINE vector vector_load(const void *from)
{
	return vreinterpretq_u16_u8(vld1q_u8(from));
}

ALWAYS_INLINE void vector_store(void *to, vector v)
{
	vst1q_u8(to, vreinterpretq_u8_u16(v));
}

ALWAYS_INLINE vector vector_all(uint16_t bits)
{
	return vdupq_n_u16(bits);
}

ALWAYS_INLINE vector_f32 vector_all_f32(float value)
{
	return vdupq_n_f32(value);
}

ALWAYS_INLINE vector vector_and(vector a, vector b)
{
	return vandq_u16(a, b);
}

ALWAYS_INLINE vector vector_max(vector a, vector b)
{
	return vmaxq_u16(a, b);
}

ALWAYS_INLINE uint16_t vector_largest(vector v)
{
	return vmaxvq_u16(v);
}

ALWAYS_INLINE vector vector_min(vector a, vector b)
{
	return vminq_u16(a, b);
}

ALWAYS_INLINE vector vector_min_signed(vector a, vector b)
{
	return vreinterpretq_u16_s16(vminq_s16(vreinterpretq_s16_u16(a), vreinterpretq_s16_u16(b)));
}

ALWAYS_INLINE vector vector_add64(vector a, vector b)
{
	return vreinterpretq_u16_u64(vaddq_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}

ALWAYS_INLINE vector vector_sub64(vector a, vector b)
{
	return vreinterpretq_u16_u64(vsubq_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}

ALWAYS_INLINE vector vector_encode(trib_type type, vector v, vector_f32 steps)
{
	uint32x4_t pairs = vreinterpretq_u32_u16(v);
	float32x4_t low, high;

	if (type == TRIB_F16) {
		float16x8_t halves = vreinterpretq_f16_u16(v);

		low = vaddq_f32(vcvt_f32_f16(vget_low_f16(halves)), steps);
		high = vaddq_f32(vcvt_high_f32_f16(halves), steps);
		return vuzp1q_u16(vreinterpretq_u16_f32(low), vreinterpretq_u16_f32(high));
	}
	/* Every second element. No lane changes its width. */
	low = vaddq_f32(vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16)), steps);
	high = vaddq_f32(vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000))), steps);
	return vtrn1q_u16(vreinterpretq_u16_f32(low), vreinterpretq_u16_f32(high));
}

#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
ALWAYS_INLINE vector vector_to_bf16(float32x4_t low, float32x4_t high)
{
	return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(low), high));
}
#else
/* 0 if the upper half is odd, otherwise -1: with half a step more, ties go to the even one. */
ALWAYS_INLINE uint32x4_t vector_to_even(float32x4_t value)
{
	return vcgezq_s32(vshlq_n_s32(vreinterpretq_s32_f32(value), 15));
}

ALWAYS_INLINE vector vector_to_bf16(float32x4_t low, float32x4_t high)
{
	uint16x4_t first = vraddhn_u32(vreinterpretq_u32_f32(low), vector_to_even(low));

	return vraddhn_high_u32(first, vreinterpretq_u32_f32(high), vector_to_even(high));
}
#endif

ALWAYS_INLINE vector vector_decode(trib_type type, vector v, vector above, vector_f32 base,
                                   bool divides, vector_f32 workers)
{
	float32x4_t low = vsubq_f32(vreinterpretq_f32_u16(vzip1q_u16(v, above)), base);
	float32x4_t high = vsubq_f32(vreinterpretq_f32_u16(vzip2q_u16(v, above)), base);

	if (divides) {
		low = vdivq_f32(low, workers);
		high = vdivq_f32(high, workers);
	}
	if (type == TRIB_F16)
		return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high));
	return vector_to_bf16(low, high);
}

#elif defined(__SSE4_1__)
#include <immintrin.h>

#ifdef __AVX2__
#define PARTS_VECTOR 16u
#define MM(name) _mm256_##name
#define WHOLE(name) _mm256_##name##_si256
typedef __m256i vector;
typedef __m256 vector_f32;
typedef __m256i_u vector_anywhere;
#else
#define PARTS_VECTOR 8u
#define MM(name) _mm_##name
#define WHOLE(name) _mm_##name##_si128
typedef __m128i vector;
typedef __m128 vector_f32;
typedef __m128i_u vector_anywhere;
#endif
#if defined(__AVX2__) && defined(__F16C__)
#define VECTOR_F16 1
#else
#define VECTOR_F16 0
#endif
#define ODD 0xaa /* every second element */

ALWAYS_INLINE vector vector_load(const void *from)
{
	return WHOLE(loadu)((const vector_anywhere *)from);
}

ALWAYS_INLINE void vector_store(void *to, vector v)
{
	WHOLE(storeu)((vector_anywhere *)to, v);
}

ALWAYS_INLINE vector vector_all(uint16_t bits)
{
	return MM(set1_epi16)((int16_t)bits);
}

ALWAYS_INLINE vector_f32 vector_all_f32(float value)
{
	return MM(set1_ps)(value);
}

ALWAYS_INLINE vector vector_and(vector a, vector b)
{
	return WHOLE(and)(a, b);
}

ALWAYS_INLINE vector vector_max(vector a, vector b)
{
	return MM(max_epu16)(a, b);
}

/* There is an instruction for the smallest one. */
ALWAYS_INLINE uint16_t vector_largest(vector v)
{
#ifdef __AVX2__
	__m128i half = _mm_max_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
#else
	__m128i half = v;
#endif
	__m128i inverse = _mm_xor_si128(half, _mm_set1_epi16(-1));

	return (uint16_t)~_mm_cvtsi128_si32(_mm_minpos_epu16(inverse));
}

ALWAYS_INLINE vector vector_min(vector a, vector b)
{
	return MM(min_epu16)(a, b);
}

ALWAYS_INLINE vector vector_min_signed(vector a, vector b)
{
	return MM(min_epi16)(a, b);
}

ALWAYS_INLINE vector vector_add64(vector a, vector b)
{
	return MM(add_epi64)(a, b);
}

ALWAYS_INLINE vector vector_sub64(vector a, vector b)
{
	return MM(sub_epi64)(a, b);
}

#if VECTOR_F16
ALWAYS_INLINE __m256i f16_sum(__m128i v, __m256 steps)
{
	__m256i sum = _mm256_castps_si256(_mm256_add_ps(_mm256_cvtph_ps(v), steps));

	return _mm256_blend_epi16(sum, _mm256_setzero_si256(), ODD);
}

ALWAYS_INLINE __m128i f16_rounded(__m256i bits, __m256 base, bool divides, __m256 workers)
{
	__m256 value = _mm256_sub_ps(_mm256_castsi256_ps(bits), base);

	if (divides)
		value = _mm256_div_ps(value, workers);
	return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
}
#endif

ALWAYS_INLINE vector vector_encode(trib_type type, vector v, vector_f32 steps)
{
	vector low, high;

#if VECTOR_F16
	if (type == TRIB_F16) {
		low = f16_sum(_mm256_castsi256_si128(v), steps);
		high = f16_sum(_mm256_extracti128_si256(v, 1), steps);
		return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
	}
#endif
	(void)type;
	/* No lane changes its width. */
	low = MM(slli_epi32)(v, 16);
	high = MM(blend_epi16)(vector_all(0), v, ODD);
#ifdef __AVX2__
	low = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(low), steps));
	high = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(high), steps));
#else
	low = _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(low), steps));
	high = _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(high), steps));
#endif
	return MM(blend_epi16)(low, MM(slli_epi32)(high, 16), ODD);
}

/* The bits of a bf16, in the lower half. */
ALWAYS_INLINE vector bf16_rounded(vector bits, vector_f32 base, bool divides, vector_f32 workers)
{
	vector to_even;
#ifdef __AVX2__
	__m256 value = _mm256_sub_ps(_mm256_castsi256_ps(bits), base);

	bits = _mm256_castps_si256(divides ? _mm256_div_ps(value, workers) : value);
#else
	__m128 value = _mm_sub_ps(_mm_castsi128_ps(bits), base);

	bits = _mm_castps_si128(divides ? _mm_div_ps(value, workers) : value);
#endif
	to_even = WHOLE(and)(MM(srli_epi32)(bits, 16), MM(set1_epi32)(1));
	bits = MM(add_epi32)(bits, MM(add_epi32)(to_even, MM(set1_epi32)(0x7fff)));
	return MM(srli_epi32)(bits, 16);
}

ALWAYS_INLINE vector vector_decode(trib_type type, vector v, vector above, vector_f32 base,
                                   bool divides, vector_f32 workers)
{
#if VECTOR_F16
	if (type == TRIB_F16) {
		__m256i ordered = _mm256_permute4x64_epi64(v, 0xd8);

		return _mm256_set_m128i(
			f16_rounded(_mm256_unpackhi_epi16(ordered, above), base, divides, workers),
			f16_rounded(_mm256_unpacklo_epi16(ordered, above), base, divides, workers));
	}
#endif
	(void)type;
	return MM(packus_epi32)(bf16_rounded(MM(unpacklo_epi16)(v, above), base, divides, workers),
	                        bf16_rounded(MM(unpackhi_epi16)(v, above), base, divides, workers));
}
#endif

#endif
