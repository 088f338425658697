/* SPDX-License-Identifier: Apache-2.0 */
/* Classes and their scales; integer averages. */
#include "number/format.h"
#include "number/wide.h"

bool number_wide_off;

size_t trib_type_size(trib_type type)
{
	return number_size(type);
}

/* The class of one magnitude, given as its bits. */
static uint16_t class_of(trib_type type, uint64_t magnitude)
{
	struct format format = format_of(type);
	int exponent = (int)(magnitude >> format.mantissa);
	int top; /* the magnitude is below 2^top */

	if (exponent)
		top = exponent - format.bias + 1;
	else if (magnitude)
		top = format_smallest(type) + 64 - __builtin_clzll(magnitude);
	else
		return 0;
	top -= class_floor(type);
	return top > 0 ? (uint16_t)((top + NUMBER_CLASS_STEP - 1) / NUMBER_CLASS_STEP) : 0;
}

/*
 * Bits of magnitudes are ordered like the magnitudes, and what is special is
 * above all of them. Signed, because SIMD units compare that way.
 */
ALWAYS_INLINE uint16_t classify32(trib_type type, const void *elements, size_t n, bool *special)
{
	const int32_t infinity = (int32_t)format_of(type).infinity;
	const int32_t magnitude_bits = (int32_t)(format_of(type).sign - 1);
	int32_t largest = 0, largest_finite = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t magnitude = (int32_t)load32(type, elements, i) & magnitude_bits;
		int32_t finite = magnitude < infinity ? magnitude : 0;

		largest = magnitude > largest ? magnitude : largest;
		largest_finite = finite > largest_finite ? finite : largest_finite;
	}
	*special = largest >= infinity;
	return class_of(type, (uint64_t)largest_finite);
}

static uint16_t classify64(const void *elements, size_t n, bool *special)
{
	const loose_u64 *in = elements;
	const int64_t infinity = (int64_t)format_of(TRIB_F64).infinity;
	int64_t largest = 0, largest_finite = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t magnitude = (int64_t)(in[i] & INT64_MAX);
		int64_t finite = magnitude < infinity ? magnitude : 0;

		largest = magnitude > largest ? magnitude : largest;
		largest_finite = finite > largest_finite ? finite : largest_finite;
	}
	*special = largest >= infinity;
	return class_of(TRIB_F64, (uint64_t)largest_finite);
}

WIDE static uint16_t classify_wide(trib_type type, const void *elements, size_t n, bool *special)
{
	return WITH_TYPE(type, classify32, elements, n, special);
}

uint16_t number_classify(trib_type type, const void *elements, size_t n, bool *special)
{
	*special = false;
	if (!number_is_float(type))
		return 0;
	if (type == TRIB_F64)
		return classify64(elements, n, special);
	return number_is_wide() ? classify_wide(type, elements, n, special)
	                        : WITH_TYPE(type, classify32, elements, n, special);
}

#define DIVIDE(integer, divisor)                                                              \
	do {                                                                                  \
		typedef integer __attribute__((aligned(1), may_alias)) loose;                 \
		for (size_t i = 0; i < n; i++)                                                \
			((loose *)elements)[i] = (integer)(((loose *)elements)[i] / divisor); \
	} while (0)

void number_divide(trib_type type, void *elements, size_t n, unsigned workers)
{
	const int signed_workers = (int)workers;

	switch (type) {
	case TRIB_I8:
		DIVIDE(int8_t, signed_workers);
		break;
	case TRIB_I32:
		DIVIDE(int32_t, signed_workers);
		break;
	case TRIB_I64:
		DIVIDE(int64_t, signed_workers);
		break;
	case TRIB_U8:
		DIVIDE(uint8_t, workers);
		break;
	case TRIB_U32:
		DIVIDE(uint32_t, workers);
		break;
	case TRIB_U64:
		DIVIDE(uint64_t, workers);
		break;
	default: /* number_decode averages floats */
		break;
	}
}
