/* SPDX-License-Identifier: Apache-2.0 */
/* key_hash: spreads the bits of a key over a word. */
#ifndef TRIB_SPARSE_KEY_HASH_H
#define TRIB_SPARSE_KEY_HASH_H

#include "base/random_bits.h"

#include <stdint.h>

static inline uint64_t key_hash(uint64_t key)
{
	return random_next(&key);
}

#endif
