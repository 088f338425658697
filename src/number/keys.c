/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floats as integers of the same order, for MIN and MAX. A float's bits are
 * sign and magnitude: flipping the magnitude of the negative ones gives two's
 * complement, less one, so that -0 lies just below +0. The flip undoes itself.
 */
#include "number/format.h"

ALWAYS_INLINE void to_keys32(trib_type type, const void *restrict elements, size_t n, bool for_max,
                             void *restrict keys)
{
	const int32_t magnitude_bits = (int32_t)(format_of(type).sign - 1);
	const int32_t first_nan = (int32_t)format_first_nan(type);
	const int32_t nan_key = for_max ? INT32_MAX : INT32_MIN;
	loose_i32 *restrict out = keys;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits = load32(type, elements, i);
		int32_t wide = (int32_t)(bits | -(bits & (uint32_t)format_of(type).sign));
		int32_t key = wide ^ (wide >> 31 & magnitude_bits);

		out[i] = (wide & magnitude_bits) >= first_nan ? nan_key : key;
	}
}

ALWAYS_INLINE void from_keys32(trib_type type, const void *restrict keys, size_t n,
                               void *restrict elements)
{
	const int32_t magnitude_bits = (int32_t)(format_of(type).sign - 1);
	const int32_t first_nan = (int32_t)format_first_nan(type);
	const uint32_t nan = (uint32_t)format_of(type).nan;
	const loose_i32 *restrict in = keys;

	for (size_t i = 0; i < n; i++) {
		int32_t key = in[i];
		uint32_t bits = (uint32_t)(key ^ (key >> 31 & magnitude_bits));

		store32(type, elements, i, key >= first_nan || key <= ~first_nan ? nan : bits);
	}
}

static void to_keys64(const void *restrict elements, size_t n, bool for_max, void *restrict keys)
{
	const int64_t infinity = (int64_t)format_of(TRIB_F64).infinity;
	const int64_t nan_key = for_max ? INT64_MAX : INT64_MIN;
	const loose_i64 *restrict in = elements;
	loose_i64 *restrict out = keys;

	for (size_t i = 0; i < n; i++) {
		int64_t key = in[i] ^ (in[i] >> 63 & INT64_MAX);

		out[i] = (in[i] & INT64_MAX) > infinity ? nan_key : key;
	}
}

static void from_keys64(const void *restrict keys, size_t n, void *restrict elements)
{
	const int64_t infinity = (int64_t)format_of(TRIB_F64).infinity;
	const int64_t nan = (int64_t)format_of(TRIB_F64).nan;
	const loose_i64 *restrict in = keys;
	loose_i64 *restrict out = elements;

	for (size_t i = 0; i < n; i++) {
		int64_t bits = in[i] ^ (in[i] >> 63 & INT64_MAX);

		out[i] = in[i] > infinity || in[i] < ~infinity ? nan : bits;
	}
}

void number_to_keys(trib_type type, const void *elements, size_t n, bool for_max, void *keys)
{
	if (type == TRIB_F64)
		to_keys64(elements, n, for_max, keys);
	else if (number_is_float(type))
		WITH_TYPE(type, to_keys32, elements, n, for_max, keys);
}

void number_from_keys(trib_type type, const void *keys, size_t n, void *elements)
{
	if (type == TRIB_F64)
		from_keys64(keys, n, elements);
	else if (number_is_float(type))
		WITH_TYPE(type, from_keys32, keys, n, elements);
}
