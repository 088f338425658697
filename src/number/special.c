/* SPDX-License-Identifier: Apache-2.0 */
/* NaN and infinities, which have no fixed-point value, as two bits an element. */
#include "number/format.h"

#define PLUS_INFINITY 1
#define MINUS_INFINITY 2
#define NOT_A_NUMBER 3

static uint64_t load(trib_type type, const void *elements, size_t i)
{
	return type == TRIB_F64 ? ((const loose_u64 *)elements)[i] : load32(type, elements, i);
}

static void store(trib_type type, void *elements, size_t i, uint64_t bits)
{
	if (type == TRIB_F64)
		((loose_u64 *)elements)[i] = bits;
	else
		store32(type, elements, i, (uint32_t)bits);
}

void number_mask(trib_type type, const void *elements, size_t n, void *mask, size_t first)
{
	const struct format format = format_of(type);
	const uint64_t first_nan = format_first_nan(type);
	uint8_t *bytes = mask;

	for (size_t i = 0; i < n; i++) {
		uint64_t bits = load(type, elements, i);
		uint64_t magnitude = bits & (format.sign - 1);
		unsigned kind;

		if (magnitude < format.infinity)
			continue;
		if (magnitude >= first_nan)
			kind = NOT_A_NUMBER;
		else
			kind = bits & format.sign ? MINUS_INFINITY : PLUS_INFINITY;
		bytes[(first + i) / 4] |= (uint8_t)(kind << (first + i) % 4 * 2);
	}
}

void number_unmask(trib_type type, const void *mask, size_t first, size_t n, void *elements)
{
	const struct format format = format_of(type);
	const uint8_t *bytes = mask;

	for (size_t i = 0; i < n; i++) {
		switch (bytes[(first + i) / 4] >> (first + i) % 4 * 2 & 3) {
		case PLUS_INFINITY:
			store(type, elements, i, format.infinity);
			break;
		case MINUS_INFINITY:
			store(type, elements, i, format.sign | format.infinity);
			break;
		case NOT_A_NUMBER:
			store(type, elements, i, format.nan);
			break;
		}
	}
}
