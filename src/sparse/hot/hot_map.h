/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_map: the map of one generation: which key has which row number. Pure but for memory.
 * A row may have no key (HOT_NO_KEY).
 */
#ifndef TRIB_SPARSE_HOT_HOT_MAP_H
#define TRIB_SPARSE_HOT_HOT_MAP_H

#include "wire/sparse_packet.h"

#include <stdbool.h>

#define HOT_NO_KEY UINT64_MAX
#define HOT_NO_ROW UINT32_MAX
#define HOT_MAPS 8u /* the latest generations that are kept */

struct hot_map {
	uint32_t generation, n;
	uint64_t *keys;  /* of each row; NULL: there is no map */
	uint32_t *slots; /* by hash: 1 + row; 0: empty */
	uint32_t mask;
};

/* The maps of an incarnation: generation g is at g mod HOT_MAPS. */
struct hot_maps {
	struct hot_map maps[HOT_MAPS];
	uint32_t newest; /* generation; 0: none */
};

/* The layout of a table at an aggregator that said this: two banks, where it cannot have one. */
uint32_t hot_layout(const struct wire_welcome *welcome, uint32_t wanted);
/*
 * The most rows that SETUP may name at an aggregator that said this. 0: none fits, and
 * trib_last_error() says why.
 */
uint32_t hot_rows_most(const struct wire_welcome *welcome, uint32_t width, uint32_t layout);

/* Adds the newest map, of the rows below `rows`. False: no memory, or it is not the newest. */
bool hot_maps_add(struct hot_maps *maps, uint32_t generation, const uint64_t *keys, uint32_t n,
                  uint32_t rows);
void hot_maps_free(struct hot_maps *maps);

/* The map whose generation has these low 16 bits; NULL: it is not kept. */
const struct hot_map *hot_maps_find(const struct hot_maps *maps, uint16_t generation);
/* NULL: there is none. */
const struct hot_map *hot_maps_newest(const struct hot_maps *maps);

/* HOT_NO_ROW: the key is not hot. */
uint32_t hot_map_row(const struct hot_map *map, uint64_t key);
/* HOT_NO_KEY: the row has none. */
static inline uint64_t hot_map_key(const struct hot_map *map, uint32_t row)
{
	return row < map->n ? map->keys[row] : HOT_NO_KEY;
}

#endif
