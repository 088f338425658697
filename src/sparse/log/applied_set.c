/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/applied_set.h"

static bool bit_get(const struct applied_set *set, uint64_t i)
{
	return set->seen[i / 64] >> i % 64 & 1;
}

bool applied_has(const struct applied_set *set, uint64_t packet)
{
	if (packet < set->low)
		return true;
	return packet - set->low < APPLIED_WINDOW && bit_get(set, packet - set->low);
}

bool applied_covers(const struct applied_set *set, const struct applied_set *old)
{
	if (set->low < old->low)
		return false;
	for (uint64_t i = 0; i < APPLIED_WINDOW; i++) {
		if (bit_get(old, i) && !applied_has(set, old->low + i))
			return false;
	}
	return true;
}
