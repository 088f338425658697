/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/hot/hot_map.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

uint32_t hot_layout(const struct wire_welcome *welcome, uint32_t wanted)
{
	return welcome->layouts & SPARSE_ONE_BANK ? wanted : wanted & ~(uint32_t)SPARSE_ONE_BANK;
}

uint32_t hot_rows_most(const struct wire_welcome *welcome, uint32_t width, uint32_t layout)
{
	if (!sparse_per_block(welcome->payload, width))
		status_fail(TRIB_ERR_CONFIG,
		            "a row of %u values does not fit a packet of the aggregator, which has "
		            "%u bytes",
		            width, welcome->payload);
	else if (!sparse_blocks_max(welcome->cells, layout))
		status_fail(TRIB_ERR_CONFIG, "the aggregator has %u cells, which hold no rows",
		            welcome->cells);
	return sparse_rows_max(welcome->cells, welcome->payload, width, layout);
}

static uint32_t slot_of(const struct hot_map *map, uint64_t key)
{
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(key >> 32) & map->mask;
}

static void map_free(struct hot_map *map)
{
	free(map->keys);
	free(map->slots);
	*map = (struct hot_map){ 0 };
}

/* Of two rows with the same key the first counts. */
static void map_enter(struct hot_map *map, uint32_t row)
{
	uint32_t slot = slot_of(map, map->keys[row]);

	while (map->slots[slot]) {
		if (map->keys[map->slots[slot] - 1] == map->keys[row])
			return;
		slot = (slot + 1) & map->mask;
	}
	map->slots[slot] = row + 1;
}

bool hot_maps_add(struct hot_maps *maps, uint32_t generation, const uint64_t *keys, uint32_t n,
                  uint32_t rows)
{
	struct hot_map *map = &maps->maps[generation % HOT_MAPS];
	uint32_t slots = 4;

	if (generation <= maps->newest)
		return false;
	n = n < rows ? n : rows;
	while (slots < 2 * n)
		slots *= 2;
	map_free(map);
	map->keys = malloc((n + 1) * sizeof(*keys));
	map->slots = calloc(slots, sizeof(*map->slots));
	if (!map->keys || !map->slots) {
		map_free(map);
		return false;
	}
	map->generation = maps->newest = generation;
	map->n = n;
	map->mask = slots - 1;
	if (n)
		memcpy(map->keys, keys, n * sizeof(*keys));
	for (uint32_t row = 0; row < n; row++)
		if (keys[row] != HOT_NO_KEY)
			map_enter(map, row);
	return true;
}

void hot_maps_free(struct hot_maps *maps)
{
	for (unsigned i = 0; i < HOT_MAPS; i++)
		map_free(&maps->maps[i]);
	maps->newest = 0;
}

const struct hot_map *hot_maps_find(const struct hot_maps *maps, uint16_t generation)
{
	uint32_t whole = maps->newest - (uint16_t)(maps->newest - generation);
	const struct hot_map *map = &maps->maps[whole % HOT_MAPS];

	return map->keys && map->generation == whole ? map : NULL;
}

const struct hot_map *hot_maps_newest(const struct hot_maps *maps)
{
	return maps->newest ? hot_maps_find(maps, (uint16_t)maps->newest) : NULL;
}

uint32_t hot_map_row(const struct hot_map *map, uint64_t key)
{
	for (uint32_t slot = slot_of(map, key); map->slots[slot]; slot = (slot + 1) & map->mask)
		if (map->keys[map->slots[slot] - 1] == key)
			return map->slots[slot] - 1;
	return HOT_NO_ROW;
}
