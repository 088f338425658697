/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key: the key by which aggregators know a communicator. It mixes the communicator's key
 * with the epoch, so that ranks of different epochs do not meet. Without a controller
 * (epoch 0) it is the key itself.
 */
#ifndef TRIB_WIRE_KEY_H
#define TRIB_WIRE_KEY_H

#include <stdint.h>

static inline uint64_t wire_key(uint64_t key, uint32_t epoch)
{
	uint64_t mixed = key ^ epoch * 0xff51afd7ed558ccdull;

	return epoch ? (mixed ^ mixed >> 33) * 0xc4ceb9fe1a85ec53ull : key;
}

#endif
