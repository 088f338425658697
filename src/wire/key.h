/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key by which aggregators know a communicator: that of its job, mixed with
 * the number of the plan that it began with, so that ranks of unlike epochs do
 * not meet. Without a controller (epoch 0) it is the key itself.
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
