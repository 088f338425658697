/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside number, but for narrow.h: the float formats, and access to their bits. Floats are
 * taken apart with integer operations, so that results are the same on every
 * machine, whatever the process does with denormals (FTZ, DAZ).
 *
 * Everything is inline and called with a constant type: each loop is compiled
 * once a type, and vectorized.
 */
#ifndef TRIB_NUMBER_FORMAT_H
#define TRIB_NUMBER_FORMAT_H

#include "number/number.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* For buffers of any alignment and of any declared type. */
typedef uint16_t loose_u16 __attribute__((aligned(1), may_alias));
typedef uint32_t loose_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t loose_u64 __attribute__((aligned(1), may_alias));
typedef int32_t loose_i32 __attribute__((aligned(1), may_alias));
typedef int64_t loose_i64 __attribute__((aligned(1), may_alias));

struct format {
	int mantissa; /* stored bits of it */
	int bias;
	int highest;  /* finite magnitudes are below 2^highest */
	int sum_bits; /* magnitude bits of the integer it is added as */
	uint64_t sign;
	uint64_t
		infinity; /* magnitudes below are finite; equal to `nan`: there are no infinities */
	uint64_t nan;     /* the quiet NaN that results use */
};

ALWAYS_INLINE struct format format_of(trib_type type)
{
	switch (type) {
	case TRIB_F16:
		return (struct format){ 10, 15, 16, 31, 0x8000, 0x7c00, 0x7e00 };
	case TRIB_BF16:
		return (struct format){ 7, 127, 128, 31, 0x8000, 0x7f80, 0x7fc0 };
	case TRIB_F8E4M3:
		return (struct format){ 3, 7, 9, 31, 0x80, 0x7f, 0x7f };
	case TRIB_F8E5M2:
		return (struct format){ 2, 15, 16, 31, 0x80, 0x7c, 0x7e };
	case TRIB_F64:
		return (struct format){ 52,         1023,           1024,          63,
			                1ull << 63, 0x7ffull << 52, 0xfffull << 51 };
	default:
		return (struct format){ 23, 127, 128, 31, 1u << 31, 0x7f800000, 0x7fc00000 };
	}
}

/*
 * Calls `function` with a float type of up to 32 bits as a constant, so that the compiler makes a
 * loop for each.
 */
#define WITH_TYPE(type, function, ...)                                \
	((type) == TRIB_F16      ? function(TRIB_F16, __VA_ARGS__)    \
	 : (type) == TRIB_BF16   ? function(TRIB_BF16, __VA_ARGS__)   \
	 : (type) == TRIB_F8E4M3 ? function(TRIB_F8E4M3, __VA_ARGS__) \
	 : (type) == TRIB_F8E5M2 ? function(TRIB_F8E5M2, __VA_ARGS__) \
	                         : function(TRIB_F32, __VA_ARGS__))

/* Magnitudes from this one on are NaN. */
ALWAYS_INLINE uint64_t format_first_nan(trib_type type)
{
	struct format format = format_of(type);

	return format.infinity == format.nan ? format.nan : format.infinity + 1;
}

/* Is the range of exponents smaller than f32's? Then every number of the type is a normal f32. */
ALWAYS_INLINE bool format_is_narrow(trib_type type)
{
	return format_of(type).bias < 127;
}

/* The smallest denormal is 2^this. */
ALWAYS_INLINE int format_smallest(trib_type type)
{
	struct format format = format_of(type);

	return 1 - format.bias - format.mantissa;
}

/* The bits of 2^exponent, from the smallest denormal on; if it is not finite, of infinity. */
ALWAYS_INLINE uint64_t format_power(trib_type type, int exponent)
{
	struct format format = format_of(type);
	uint64_t bits = (uint64_t)(exponent + format.bias) << format.mantissa;

	if (exponent <= -format.bias)
		return 1ull << (exponent - format_smallest(type));
	return bits < format.infinity ? bits : format.infinity;
}

/*
 * All ones if a < b, else 0; both below 2^31 (2^63). gcc turns comparisons into branches
 * and then does not vectorize.
 */
ALWAYS_INLINE uint32_t below32(uint32_t a, uint32_t b)
{
	return (uint32_t)((int32_t)(a - b) >> 31);
}

ALWAYS_INLINE uint64_t below64(uint64_t a, uint64_t b)
{
	return (uint64_t)((int64_t)(a - b) >> 63);
}

ALWAYS_INLINE uint32_t choose32(uint32_t mask, uint32_t yes, uint32_t no)
{
	return (yes & mask) | (no & ~mask);
}

ALWAYS_INLINE uint64_t choose64(uint64_t mask, uint64_t yes, uint64_t no)
{
	return (yes & mask) | (no & ~mask);
}

/* The bits of an element of a float type of up to 32 bits. */
ALWAYS_INLINE uint32_t load32(trib_type type, const void *elements, size_t i)
{
	if (format_of(type).sign == 0x80)
		return ((const uint8_t *)elements)[i];
	return type == TRIB_F32 ? ((const loose_u32 *)elements)[i]
	                        : ((const loose_u16 *)elements)[i];
}

ALWAYS_INLINE void store32(trib_type type, void *elements, size_t i, uint32_t bits)
{
	if (format_of(type).sign == 0x80)
		((uint8_t *)elements)[i] = (uint8_t)bits;
	else if (type == TRIB_F32)
		((loose_u32 *)elements)[i] = bits;
	else
		((loose_u16 *)elements)[i] = (uint16_t)bits;
}

static inline uint32_t f32_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline float f32_from(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint64_t f64_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline double f64_from(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* 2^exponent, which must be a normal number. */
static inline float f32_power(int exponent)
{
	return f32_from((uint32_t)(127 + exponent) << 23);
}

static inline double f64_power(int exponent)
{
	return f64_from((uint64_t)(1023 + exponent) << 52);
}

static inline int ceil_log2(unsigned n)
{
	return n > 1 ? 32 - __builtin_clz(n - 1) : 0;
}

/*
 * Class 0 ends at 2^class_floor: so low that even the fewest bits there are
 * (for NUMBER_WORKERS_MAX) reach down to the smallest denormal.
 */
static inline int class_floor(trib_type type)
{
	int fewest_bits = format_of(type).sum_bits - ceil_log2(NUMBER_WORKERS_MAX);
	int floor = format_smallest(type) + fewest_bits;

	return (floor - NUMBER_CLASS_STEP + 1) / NUMBER_CLASS_STEP * NUMBER_CLASS_STEP;
}

/* Finite magnitudes of a class are below 2^class_top. */
static inline int class_top(trib_type type, uint16_t klass)
{
	int top = class_floor(type) + NUMBER_CLASS_STEP * klass;
	int highest = format_of(type).highest;

	/* A class from the network may be higher than any finite number has. */
	return top < highest ? top : highest;
}

/*
 * The scale of a class for a sum over `workers`: an encoded unit is worth 2^unit_exponent(). It is
 * fast if the compiler knows the type.
 */
ALWAYS_INLINE int unit_exponent(trib_type type, uint16_t klass, unsigned workers)
{
	int unit = class_top(type, klass) - (format_of(type).sum_bits - ceil_log2(workers));

	return unit > format_smallest(type) ? unit : format_smallest(type);
}

#endif
