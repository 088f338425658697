/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/key_groups.h"

#include "base/random_bits.h"
#include "sparse/wire/shard_of.h"

#include <stdlib.h>

#define NONE SIZE_MAX

/* A hash table of group numbers, at most half full. */
static bool groups_fill(struct key_groups *groups, const uint64_t *keys, size_t n)
{
	size_t room = 16, *table;

	while (room < 2 * n)
		room *= 2;
	table = malloc(room * sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 0; i < room; i++)
		table[i] = NONE;
	for (size_t i = 0; i < n; i++) {
		size_t at = bits_mix(keys[i]) & (room - 1);

		while (table[at] != NONE && keys[groups->first[table[at]]] != keys[i])
			at = (at + 1) & (room - 1);
		if (table[at] == NONE) {
			table[at] = groups->n;
			groups->first[groups->n++] = i;
		}
		groups->of[i] = table[at];
	}
	free(table);
	return true;
}

bool key_groups_find(struct key_groups *groups, const uint64_t *keys, size_t n)
{
	*groups = (struct key_groups){ 0 };
	if (n > SIZE_MAX / 64)
		return false;
	groups->first = malloc((n + 1) * sizeof(*groups->first));
	groups->of = malloc((n + 1) * sizeof(*groups->of));
	if (groups->first && groups->of && groups_fill(groups, keys, n))
		return true;
	key_groups_free(groups);
	return false;
}

void key_groups_free(struct key_groups *groups)
{
	free(groups->first);
	free(groups->of);
	*groups = (struct key_groups){ 0 };
}
