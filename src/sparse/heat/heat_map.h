/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heat_map: which key has which row number at an aggregator. A map is a list: keys[r] is the key
 * of row r, or HEAT_NO_KEY.
 *
 * The order of the rows is about that of the heat. Rows are in bands: 0 to 63, 64 to 191, 192 to
 * 447, each twice as large as the one before. The key of rank r has a row of the band in which r
 * is. If its row of the old map is in that band, it keeps this row. The other keys of the band take
 * the rows that are left there, the hotter ones the lower rows. So few keys change their row, and
 * the layout of registers and blocks, which needs the hottest rows first, is nearly as good as with
 * all rows in order.
 */
#ifndef TRIB_SPARSE_HEAT_MAP_H
#define TRIB_SPARSE_HEAT_MAP_H

#include "base/status.h"
#include "sparse/heat/heat.h"

#define HEAT_BAND_FIRST 64u /* rows of the first band */

struct heat_choice {
	/* What is given. */
	const uint64_t *old_keys; /* the map so far; NULL if old_rows is 0 */
	uint32_t old_rows;
	const struct heat_key *ranked; /* counts, by heat_rank or heat_set_list */
	size_t ranked_n;
	uint64_t total; /* of all updates, also those of keys that are not in the list */
	uint32_t rows;  /* the new map has at most so many */
	double gain;    /* the new map has to take more updates than the old one; 0.02: 2 % more */

	/* What comes out. */
	uint64_t *keys;             /* `rows` places */
	uint32_t n;                 /* rows of the new map */
	bool is_new;                /* false: the old map stays, and `keys` has it */
	double old_share, share;    /* of the updates in the counts, by the old map and by `keys` */
	uint32_t kept, came, moved; /* keys with their old row, new keys, keys with another row */
};

/*
 * Chooses the next map. If the old map has more than `rows` rows, it is always replaced. Fails only
 * if there is no memory.
 */
trib_status heat_choose(struct heat_choice *choice);

/* The band of a row number or a rank. */
unsigned heat_band(uint32_t row);

#endif
