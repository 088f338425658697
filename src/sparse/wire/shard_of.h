/* SPDX-License-Identifier: Apache-2.0 */
/* shard_of: which parameter server has a key. All workers and servers must agree on it. */
#ifndef TRIB_SPARSE_WIRE_SHARD_OF_H
#define TRIB_SPARSE_WIRE_SHARD_OF_H

#include "base/random_bits.h"

#include <stdint.h>

static inline uint32_t shard_of(uint64_t key, uint32_t shards)
{
	return shards > 1 ? (uint32_t)(bits_mix(key) % shards) : 0;
}

#endif
