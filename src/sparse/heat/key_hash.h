/* SPDX-License-Identifier: Apache-2.0 */
/* key_hash: spreads the bits of a key over a word (the finalizer of splitmix64). */
#ifndef TRIB_SPARSE_KEY_HASH_H
#define TRIB_SPARSE_KEY_HASH_H

#include <stdint.h>

static inline uint64_t key_hash(uint64_t key)
{
	key += 0x9e3779b97f4a7c15u;
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
	key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
	return key ^ (key >> 31);
}

#endif
