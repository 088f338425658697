/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number owns the conversion of floats to the integers that the network adds, and back.
 * It must not touch anything else. Pure: no I/O, no state.
 *
 * The network adds integers. f32, and small vectors of shorter floats, become int32, f64
 * becomes int64 (parts.h has shorter integers), scaled by a power of two that all workers share for
 * a block of elements. The scale is named by a *class*: the block's largest finite magnitude,
 * rounded up to the next 2^(NUMBER_CLASS_STEP * k). Workers take the maximum of their classes, so
 * no element exceeds the scale and N workers cannot overflow: with B = 31 - ceil(log2 N) bits (63
 * for f64) every scaled element is below 2^B in magnitude.
 *
 * Error bound, for a sum over N workers of a block whose class has the top
 * 2^t: |result - exact sum| <= N * 2^(t - B) / 2, plus one rounding to the
 * result type. (Twice that before the rounding where B is less than an
 * element's own bits: f32 from 129 workers, f64 from 1025. There a magnitude
 * within half a unit of 2^t becomes the largest integer below 2^B.)
 *
 * Classes are coarse on purpose: a worker that must send before it knows
 * everyone's class guesses its own, and is right most of the time.
 *
 * NaN and infinities are sent as two bits an element beside the sum, which
 * the network ORs: 01 +inf, 10 -inf, 11 NaN. Or-ing these is IEEE addition.
 *
 * MIN and MAX need no scale: floats become integers of the same order.
 *
 * The floating-point environment must round to nearest, which is the default of a process.
 * It may flush denormals. Buffers need no alignment, and an input must not overlap an
 * output.
 */
#ifndef TRIB_NUMBER_NUMBER_H
#define TRIB_NUMBER_NUMBER_H

#include "tributary.h"

#include <stdbool.h>

#define NUMBER_CLASS_STEP 4
#define NUMBER_WORKERS_MAX 65536

static inline bool number_is_float(trib_type type)
{
	return type >= TRIB_F16;
}

/* trib_type_size() without a call: bytes of an element in memory. */
static inline size_t number_size(trib_type type)
{
	static const unsigned char size[] = {
		[TRIB_I8] = 1,  [TRIB_I32] = 4, [TRIB_I64] = 8,    [TRIB_U8] = 1,
		[TRIB_U32] = 4, [TRIB_U64] = 8, [TRIB_F16] = 2,    [TRIB_BF16] = 2,
		[TRIB_F32] = 4, [TRIB_F64] = 8, [TRIB_F8E4M3] = 1, [TRIB_F8E5M2] = 1,
	};

	return (unsigned)type < sizeof(size) ? size[type] : 0;
}

/* Bytes that one element of `type` takes on the wire: 1, 4 or 8. */
static inline size_t number_wire_size(trib_type type)
{
	switch (type) {
	case TRIB_I8:
	case TRIB_U8:
		return 1;
	case TRIB_I64:
	case TRIB_U64:
	case TRIB_F64:
		return 8;
	default:
		return 4;
	}
}

/* Is every class of this float type below 256? */
static inline bool number_class_is_byte(trib_type type)
{
	return type != TRIB_F64;
}

/*
 * The class of n float elements. It ignores NaN and infinities and reports them in
 * *special. Class 0 holds zeros and magnitudes so small that they are exact. Monotonic: a
 * block with a larger maximum never has a lower class.
 */
uint16_t number_classify(trib_type type, const void *elements, size_t n, bool *special);

/*
 * Floats to int32 (f64: int64), little-endian, at the scale of `klass`, which must not be
 * below the elements' own class. Elements too large for it, NaN and infinities become 0.
 * Rounds to nearest, ties to even.
 */
void number_encode(trib_type type, const void *elements, size_t n, uint16_t klass, unsigned workers,
                   void *out);

/*
 * The same, but adds to the integers. Not for f64, nor for more than 128 workers, whose integers
 * may have to be clamped.
 */
void number_encode_more(trib_type type, const void *elements, size_t n, uint16_t klass,
                        unsigned workers, void *out);

/*
 * Two int32 in one int64, high * 2^32 + low, in place: sums of such pairs are
 * pairs of sums as long as neither overflows, which scaled floats never do. So
 * one 64-bit addition does the work of two. If n is odd, the last one stays unpaired.
 */
void number_pair(void *integers, size_t n);
void number_unpair(const void *pairs, size_t n, void *integers);

/*
 * Sums back to floats; `average` divides by `workers`. Rounds once; an f64 average rounds
 * twice. A zero sum is +0.
 */
void number_decode(trib_type type, const void *sums, size_t n, uint16_t klass, unsigned workers,
                   bool average, void *elements);

/*
 * ORs two bits an element (see above) into `mask`, starting at bit 2 * first. Bit b is bit
 * b % 8 of byte b / 8.
 */
void number_mask(trib_type type, const void *elements, size_t n, void *mask, size_t first);

/* Writes NaN and infinities where `mask` has them; leaves the other elements. */
void number_unmask(trib_type type, const void *mask, size_t first, size_t n, void *elements);

/*
 * MIN and MAX: floats to int32/int64 keys whose signed order is the floats'
 * order: -0 below +0, and NaN the largest (for_max) or smallest key. The conversion back
 * gives the same float; every NaN becomes the same quiet NaN.
 */
void number_to_keys(trib_type type, const void *elements, size_t n, bool for_max, void *keys);
void number_from_keys(trib_type type, const void *keys, size_t n, void *elements);

/* Integer average after the sum: divides in place, towards zero. */
void number_divide(trib_type type, void *elements, size_t n, unsigned workers);

#endif
