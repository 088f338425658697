/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/layout/row_packets.h"

#include "engine/engines.h"
#include "wire/sparse_packet.h"

#include <stddef.h>

uint32_t layout_rows_fit(uint64_t memory, uint32_t payload, uint32_t width, bool caches)
{
	uint64_t cells = memory / engine_cell_bytes(payload);

	if (cells > ENGINE_CELLS_MAX)
		cells = ENGINE_CELLS_MAX;
	return sparse_rows_max((uint32_t)cells, payload, width, caches);
}

/* Sorts by one byte of the row's number; equal bytes keep their order. */
static void sort_by_byte(const uint16_t *rows, uint32_t n, unsigned shift, const uint32_t *from,
                         uint32_t *to)
{
	uint32_t first[257] = { 0 };

	for (uint32_t i = 0; i < n; i++)
		first[(rows[i] >> shift & 255) + 1]++;
	for (unsigned i = 1; i < 257; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = from ? from[i] : i;

		to[first[rows[at] >> shift & 255]++] = at;
	}
}

uint32_t layout_pack_rows(const uint16_t *rows, uint32_t n, uint32_t most, uint32_t per_block,
                          uint32_t *order, uint32_t *ends, uint32_t *scratch)
{
	uint32_t packets = n / most + (n % most != 0);
	uint32_t spare = packets * most - n, at = 0;

	sort_by_byte(rows, n, 0, NULL, scratch);
	sort_by_byte(rows, n, 8, scratch, order);
	for (uint32_t p = 0; p < packets; p++) {
		uint32_t end = n - at < most ? n : at + most, cut = end;

		/* Back to the end of a block, if the places that stay empty are not needed. */
		while (end < n && cut > at &&
		       rows[order[cut]] / per_block == rows[order[cut - 1]] / per_block)
			cut--;
		if (cut > at && end - cut <= spare) {
			spare -= end - cut;
			end = cut;
		}
		ends[p] = at = end;
	}
	return packets;
}
