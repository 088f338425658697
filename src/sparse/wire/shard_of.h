/* SPDX-License-Identifier: Apache-2.0 */
/* shard_of: which parameter server has a key. All workers and servers must agree on it. */
#ifndef TRIB_SPARSE_WIRE_SHARD_OF_H
#define TRIB_SPARSE_WIRE_SHARD_OF_H

#include <stdint.h>

/* Spreads keys that follow each other over all bits: the finalizer of SplitMix64. */
static inline uint64_t key_mix(uint64_t key)
{
	key ^= key >> 30;
	key *= 0xbf58476d1ce4e5b9ull;
	key ^= key >> 27;
	key *= 0x94d049bb133111ebull;
	return key ^ key >> 31;
}

static inline uint32_t shard_of(uint64_t key, uint32_t shards)
{
	return shards > 1 ? (uint32_t)(key_mix(key) % shards) : 0;
}

#endif
