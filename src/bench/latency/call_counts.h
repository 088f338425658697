/* SPDX-License-Identifier: Apache-2.0 */
/* How many calls a run makes at a size. Pure. */
#ifndef TRIB_BENCH_LATENCY_CALL_COUNTS_H
#define TRIB_BENCH_LATENCY_CALL_COUNTS_H

#include <stdint.h>

#define CALL_COUNTS_BYTES 65536u /* up to so many bytes a call, a run makes all its calls */

/*
 * `wanted` calls, or fewer if each moves more than CALL_COUNTS_BYTES: half as many at
 * twice the size, but never below `least` (or `wanted`, if that is less).
 */
unsigned call_count(uint64_t wanted, uint64_t least, uint64_t bytes);

#endif
