/* SPDX-License-Identifier: Apache-2.0 */
/* One payload into another, by the operation that the packet names. */
#ifndef TRIB_ENGINE_COMBINE_H
#define TRIB_ENGINE_COMBINE_H

#include "wire/packet.h"

/*
 * Plain loops over equal-sized elements: compilers turn them into SIMD. The
 * pointers are 8-byte aligned and `bytes` is a multiple of 8.
 */
#define COMBINE_LOOP(type, expression)                                        \
	do {                                                                  \
		type *restrict s = (type *)sum;                               \
		const type *restrict x = (const type *)in;                    \
		for (uint32_t i = 0; i < bytes / (uint32_t)sizeof(type); i++) \
			s[i] = (type)(expression);                            \
	} while (0)

static inline void combine(uint8_t op, void *restrict sum, const void *restrict in, uint32_t bytes)
{
	switch (op) {
	case WIRE_ADD8:
		COMBINE_LOOP(uint8_t, s[i] + x[i]);
		break;
	case WIRE_ADD32:
		COMBINE_LOOP(uint32_t, s[i] + x[i]);
		break;
	case WIRE_ADD64:
		COMBINE_LOOP(uint64_t, s[i] + x[i]);
		break;
	case WIRE_MIN_I8:
		COMBINE_LOOP(int8_t, x[i] < s[i] ? x[i] : s[i]);
		break;
	case WIRE_MIN_U8:
		COMBINE_LOOP(uint8_t, x[i] < s[i] ? x[i] : s[i]);
		break;
	case WIRE_MIN_I32:
		COMBINE_LOOP(int32_t, x[i] < s[i] ? x[i] : s[i]);
		break;
	case WIRE_MIN_U32:
		COMBINE_LOOP(uint32_t, x[i] < s[i] ? x[i] : s[i]);
		break;
	case WIRE_MIN_I64:
		COMBINE_LOOP(int64_t, x[i] < s[i] ? x[i] : s[i]);
		break;
	case WIRE_MIN_U64:
		COMBINE_LOOP(uint64_t, x[i] < s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_I8:
		COMBINE_LOOP(int8_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_U8:
		COMBINE_LOOP(uint8_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_I32:
		COMBINE_LOOP(int32_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_U32:
		COMBINE_LOOP(uint32_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_I64:
		COMBINE_LOOP(int64_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_U64:
		COMBINE_LOOP(uint64_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_MAX_U16:
		COMBINE_LOOP(uint16_t, x[i] > s[i] ? x[i] : s[i]);
		break;
	case WIRE_OR64:
		COMBINE_LOOP(uint64_t, s[i] | x[i]);
		break;
	}
}

/* The first payload of a cell. A loop, as BPF has no memcpy of a length it does not know. */
static inline void combine_copy(void *restrict sum, const void *restrict in, uint32_t bytes)
{
	COMBINE_LOOP(uint64_t, x[i]);
}

#undef COMBINE_LOOP
#endif
