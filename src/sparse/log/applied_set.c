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

static void shift_down(struct applied_set *set)
{
	for (unsigned i = 0; i < 4; i++)
		set->seen[i] = set->seen[i] >> 1 | (i < 3 ? set->seen[i + 1] << 63 : 0);
	set->low++;
}

enum applied_result applied_add(struct applied_set *set, uint64_t packet)
{
	if (applied_has(set, packet))
		return APPLIED_BEFORE;
	if (packet - set->low >= APPLIED_WINDOW)
		return APPLIED_TOO_FAR;
	set->seen[(packet - set->low) / 64] |= 1ull << (packet - set->low) % 64;
	while (set->seen[0] & 1)
		shift_down(set);
	return APPLIED_NEW;
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
