/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside number only: loops for two sizes of registers. A function that is WIDE is compiled for
 * AVX2, with all loops that are inlined there; its caller asks number_is_wide() first. Both give
 * the same bits: AVX2 has no instruction that rounds a product and a sum at once.
 */
#ifndef TRIB_NUMBER_WIDE_H
#define TRIB_NUMBER_WIDE_H

#include <stdbool.h>

extern bool number_wide_off; /* tests set it, to compare */

#ifdef __x86_64__
#define WIDE __attribute__((target("avx2")))

static inline bool number_is_wide(void)
{
	return __builtin_cpu_supports("avx2") && !number_wide_off;
}
#else
#define WIDE

static inline bool number_is_wide(void)
{
	return false;
}
#endif

#endif
