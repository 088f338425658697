/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow: sums of 64-bit integers in half the bytes. Most vectors have small numbers, so workers
 * add 32 bits of each. A last number says how much room each worker's numbers need. Its sum tells
 * all workers alike whether every sum fits 32 bits. If not, they add the 64 bits. Pure.
 */
#ifndef TRIB_GLM_EXCHANGE_NARROW_H
#define TRIB_GLM_EXCHANGE_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NARROW_UNIT 16u          /* room is counted in multiples of 2^16 */
#define NARROW_ROOM (1 << 15)    /* of an i32 on each side of 0 */
#define NARROW_WORKERS (1 << 14) /* each needs a room of 1 at least, and the sum must fit i32 */

/* Fills n + 1 numbers. */
static inline void narrow_fill(const int64_t *data, size_t n, int32_t *narrow)
{
	uint64_t bits = 0; /* of all numbers; of a negative one, those of -1 - number */

	for (size_t i = 0; i < n; i++) {
		bits |= (uint64_t)(data[i] ^ (data[i] < 0 ? -1 : 0));
		narrow[i] = (int32_t)(uint32_t)data[i];
	}
	bits = (bits >> NARROW_UNIT) + 1;
	narrow[n] = bits > NARROW_ROOM ? NARROW_ROOM + 1 : (int32_t)bits;
}

/* Reads the sum of such vectors. False: a number may not fit, and `data` is as it was. */
static inline bool narrow_read(const int32_t *narrow, size_t n, int64_t *data)
{
	if (narrow[n] > NARROW_ROOM)
		return false;
	for (size_t i = 0; i < n; i++)
		data[i] = narrow[i];
	return true;
}

#endif
