/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside kernel only: planes of a weaved group become bytes, with shifts and masks. For processors
 * without a faster way; the file that includes this defines CODES_BYTES, the bytes of a vector.
 * Each 16 bytes of a vector belong to one group, so a vector of 32 bytes works on two.
 *
 * Planes are merged in pairs: bits to fields of two bits, these to fields of four. A shift moves
 * pairs of bytes, and a mask removes what comes from the neighbour.
 */
#ifndef TRIB_GLM_CODES_UNPACK_H
#define TRIB_GLM_CODES_UNPACK_H

#include <stdint.h>

typedef uint8_t codes_u8 __attribute__((vector_size(CODES_BYTES)));
typedef uint16_t codes_u16 __attribute__((vector_size(CODES_BYTES)));

#define CODES_INLINE static inline __attribute__((always_inline))

CODES_INLINE codes_u8 codes_left(codes_u8 v, const int by)
{
	return (codes_u8)((codes_u16)v << by);
}

CODES_INLINE codes_u8 codes_right(codes_u8 v, const int by)
{
	return (codes_u8)((codes_u16)v >> by);
}

/* Fields of `width` bits become fields of twice that: those at even places, those at odd places.
 * `mask` has the even fields. `has_high` is false where the higher bits are all zero. */
CODES_INLINE void codes_merge(codes_u8 high, codes_u8 low, const bool has_high, const int width,
                              const uint8_t mask, codes_u8 *even, codes_u8 *odd)
{
	if (has_high) {
		/* The odd fields of `low` and the even ones of `high` change places. */
		codes_u8 differ = (codes_right(low, width) ^ high) & mask;

		*even = low ^ codes_left(differ, width);
		*odd = high ^ differ;
	} else {
		*even = low & mask;
		*odd = codes_right(low, width) & mask;
	}
}

/* Up to four planes, highest bit first: out[i] has the codes of blocks i and i + 4 of 16 columns,
 * as the lower and the upper half of a byte. */
CODES_INLINE void codes_halves(const codes_u8 *planes, const uint32_t bits, codes_u8 out[4])
{
	const codes_u8 *lowest = planes + bits - 1;
	codes_u8 low[2], high[2] = { planes[0], planes[0] };

	codes_merge(bits > 1 ? lowest[-1] : lowest[0], lowest[0], bits > 1, 1, 0x55, &low[0],
	            &low[1]);
	if (bits > 2)
		codes_merge(planes[0], lowest[-2], bits > 3, 1, 0x55, &high[0], &high[1]);
	codes_merge(high[0], low[0], bits > 2, 2, 0x33, &out[0], &out[2]);
	codes_merge(high[1], low[1], bits > 2, 2, 0x33, &out[1], &out[3]);
}

/* out[k]: the codes of block k, columns 16*k to 16*k + 15. */
CODES_INLINE void codes_unpack(const codes_u8 *planes, const uint32_t bits, codes_u8 out[8])
{
	codes_u8 low[4], high[4];

	codes_halves(bits > 4 ? planes + bits - 4 : planes, bits > 4 ? 4 : bits, low);
	if (bits > 4)
		codes_halves(planes, bits - 4, high);
	for (uint32_t i = 0; i < 4; i++)
		codes_merge(bits > 4 ? high[i] : low[i], low[i], bits > 4, 4, 0x0f, &out[i],
		            &out[i + 4]);
}

/* Calls WORK(bits) with a number that the compiler knows. */
#define CODES_FOR_BITS(bits, WORK) \
	switch (bits) {            \
	case 1:                    \
		WORK(1);           \
		break;             \
	case 2:                    \
		WORK(2);           \
		break;             \
	case 3:                    \
		WORK(3);           \
		break;             \
	case 4:                    \
		WORK(4);           \
		break;             \
	case 5:                    \
		WORK(5);           \
		break;             \
	case 6:                    \
		WORK(6);           \
		break;             \
	case 7:                    \
		WORK(7);           \
		break;             \
	default:                   \
		WORK(8);           \
		break;             \
	}

#endif
