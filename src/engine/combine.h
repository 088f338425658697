/* SPDX-License-Identifier: Apache-2.0 */
/* Combines one payload with another, by the operation that the packet names. */
#ifndef TRIB_ENGINE_COMBINE_H
#define TRIB_ENGINE_COMBINE_H

#include "wire/packet.h"

/*
 * Minimum and maximum. BPF has no branch for types below 64 bits, whose difference
 * fits into 64 bits: the verifier follows both sides of every branch.
 */
#ifdef __bpf__
static inline int64_t combine_below_0(int64_t difference)
{
	int64_t mask = difference >> 63;

	__asm__("" : "+r"(mask)); /* else the compiler makes a branch of it */
	return difference & mask;
}

#define COMBINE_MIN(type, s, x) \
	(sizeof(type) < 8 ? (type)(s + combine_below_0((int64_t)x - s)) : x < s ? x : s)
#define COMBINE_MAX(type, s, x) \
	(sizeof(type) < 8 ? (type)(s - combine_below_0((int64_t)s - x)) : x > s ? x : s)
#else
#define COMBINE_MIN(type, s, x) (x < s ? x : s)
#define COMBINE_MAX(type, s, x) (x > s ? x : s)
#endif

/*
 * Every operation: its name, its element type, and the new value of s in the sum
 * for x in the packet.
 */
#define COMBINE_OPS(OP)                                         \
	OP(WIRE_ADD8, uint8_t, s + x)                           \
	OP(WIRE_ADD32, uint32_t, s + x)                         \
	OP(WIRE_ADD64, uint64_t, s + x)                         \
	OP(WIRE_MIN_I8, int8_t, COMBINE_MIN(int8_t, s, x))      \
	OP(WIRE_MIN_U8, uint8_t, COMBINE_MIN(uint8_t, s, x))    \
	OP(WIRE_MIN_I32, int32_t, COMBINE_MIN(int32_t, s, x))   \
	OP(WIRE_MIN_U32, uint32_t, COMBINE_MIN(uint32_t, s, x)) \
	OP(WIRE_MIN_I64, int64_t, COMBINE_MIN(int64_t, s, x))   \
	OP(WIRE_MIN_U64, uint64_t, COMBINE_MIN(uint64_t, s, x)) \
	OP(WIRE_MAX_I8, int8_t, COMBINE_MAX(int8_t, s, x))      \
	OP(WIRE_MAX_U8, uint8_t, COMBINE_MAX(uint8_t, s, x))    \
	OP(WIRE_MAX_I32, int32_t, COMBINE_MAX(int32_t, s, x))   \
	OP(WIRE_MAX_U32, uint32_t, COMBINE_MAX(uint32_t, s, x)) \
	OP(WIRE_MAX_I64, int64_t, COMBINE_MAX(int64_t, s, x))   \
	OP(WIRE_MAX_U64, uint64_t, COMBINE_MAX(uint64_t, s, x)) \
	OP(WIRE_MAX_U16, uint16_t, COMBINE_MAX(uint16_t, s, x)) \
	OP(WIRE_OR64, uint64_t, s | x)

/*
 * Plain loops over elements of equal size, which compilers turn into SIMD.
 * Pointers are 8-byte aligned, and `bytes` is a multiple of 8. The BPF program has
 * its own loops around the same expressions, with the checks that the verifier
 * needs.
 */
#define COMBINE_CASE(op, type, expression)                                      \
	case op:                                                                \
		for (uint32_t i = 0; i < bytes / (uint32_t)sizeof(type); i++) { \
			type s = ((type *)sum)[i], x = ((const type *)in)[i];   \
			((type *)sum)[i] = (type)(expression);                  \
		}                                                               \
		break;

static inline void combine(uint8_t op, void *restrict sum, const void *restrict in, uint32_t bytes)
{
	switch (op) {
		COMBINE_OPS(COMBINE_CASE)
	}
}

#undef COMBINE_CASE

/* Copies the first payload of a cell. */
static inline void combine_copy(void *restrict sum, const void *restrict in, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes / 8; i++)
		((uint64_t *)sum)[i] = ((const uint64_t *)in)[i];
}

#endif
