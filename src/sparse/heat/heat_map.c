/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/heat/heat_map.h"

#include "sparse/heat/key_index.h"

#include <stdlib.h>
#include <string.h>

unsigned heat_band(uint32_t row)
{
	uint64_t start = row / HEAT_BAND_FIRST + 1ull;
	unsigned band = 0;

	while (start >>= 1)
		band++;
	return band;
}

static double share_of(uint64_t part, uint64_t total)
{
	double share = total ? (double)part / (double)total : 0;

	return share < 1 ? share : 1;
}

/* The share of updates that the keys of the old map have. */
static double old_share(const struct heat_choice *choice, const struct key_index *old)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < choice->ranked_n; i++)
		if (key_index_find(old, choice->ranked[i].key) != KEY_INDEX_NONE)
			sum += choice->ranked[i].count;
	return share_of(sum, choice->total);
}

/* First those keys that keep their row. placed[rank]: done. */
static void keys_keep(struct heat_choice *choice, const struct key_index *old,
                      const uint32_t *old_row, bool *placed)
{
	for (uint32_t rank = 0; rank < choice->n; rank++) {
		uint32_t number = key_index_find(old, choice->ranked[rank].key);

		if (number == KEY_INDEX_NONE)
			continue;
		if (old_row[number] < choice->n && heat_band(old_row[number]) == heat_band(rank)) {
			choice->keys[old_row[number]] = choice->ranked[rank].key;
			placed[rank] = true;
			choice->kept++;
		} else {
			choice->moved++;
		}
	}
}

/*
 * Then the others, the hotter ones first, into the rows that are left. A band has as many ranks as
 * rows. So the i-th key that is left and the i-th row that is left are in the same band.
 */
static void keys_place(struct heat_choice *choice, const bool *placed)
{
	uint32_t row = 0;

	for (uint32_t rank = 0; rank < choice->n; rank++) {
		if (placed[rank])
			continue;
		while (choice->keys[row] != HEAT_NO_KEY)
			row++;
		choice->keys[row] = choice->ranked[rank].key;
	}
	choice->came = choice->n - choice->kept - choice->moved;
}

static void old_map_stay(struct heat_choice *choice)
{
	choice->n = choice->old_rows;
	choice->share = choice->old_share;
	choice->kept = choice->old_rows;
	if (choice->n)
		memcpy(choice->keys, choice->old_keys, choice->n * sizeof(*choice->keys));
}

/* old_row[number]: the row of a key in the old map. */
static trib_status old_map_read(const struct heat_choice *choice, struct key_index *old,
                                uint32_t *old_row)
{
	for (uint32_t row = 0; row < choice->old_rows; row++) {
		uint32_t number;
		trib_status status;

		if (choice->old_keys[row] == HEAT_NO_KEY)
			continue;
		if ((status = key_index_add(old, choice->old_keys[row], &number)) != TRIB_OK)
			return status;
		old_row[number] = row;
	}
	return TRIB_OK;
}

static void map_make(struct heat_choice *choice, const struct key_index *old,
                     const uint32_t *old_row, bool *placed)
{
	uint64_t sum = 0;

	choice->old_share = old_share(choice, old);
	choice->n = (uint32_t)(choice->ranked_n < choice->rows ? choice->ranked_n : choice->rows);
	for (uint32_t i = 0; i < choice->n; i++)
		sum += choice->ranked[i].count;
	choice->share = share_of(sum, choice->total);
	choice->kept = choice->moved = choice->came = 0;
	choice->is_new = choice->old_rows > choice->rows ||
	                 (choice->n && choice->share > choice->old_share * (1 + choice->gain));
	if (!choice->is_new) {
		old_map_stay(choice);
		return;
	}
	for (uint32_t row = 0; row < choice->n; row++)
		choice->keys[row] = HEAT_NO_KEY;
	keys_keep(choice, old, old_row, placed);
	keys_place(choice, placed);
}

trib_status heat_choose(struct heat_choice *choice)
{
	struct key_index old = { 0 };
	uint32_t *old_row = calloc((size_t)choice->old_rows + 1, sizeof(*old_row));
	bool *placed = calloc((size_t)choice->rows + 1, sizeof(*placed));
	trib_status status;

	if (!old_row || !placed) {
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory to choose %u hot rows",
		                     choice->rows);
	} else {
		status = old_map_read(choice, &old, old_row);
		if (status == TRIB_OK)
			map_make(choice, &old, old_row, placed);
	}
	key_index_free(&old);
	free(old_row);
	free(placed);
	return status;
}
