/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/layout/row_packets.h"

#include <string.h>

uint32_t sparse_rows_per_block(uint32_t payload, uint32_t width)
{
	uint64_t rows;

	if (!width || payload < ROW_BLOCK_HEAD)
		return 0;
	rows = (payload - ROW_BLOCK_HEAD) / (4ull * width);
	return rows < ROW_BLOCK_MAX ? (uint32_t)rows : ROW_BLOCK_MAX;
}

uint32_t sparse_rows_fit(uint64_t memory, uint32_t payload, uint32_t width, bool caches)
{
	uint64_t room = memory / (ROW_CELL_HEAD + (uint64_t)payload), cells = 1, rows;

	if (!room)
		return 0;
	while (cells <= room / 2)
		cells *= 2;
	/* Beyond this there are rows enough, and the product below could overflow. */
	if (cells > 4ull * ROWS_MAX)
		cells = 4ull * ROWS_MAX;
	rows = cells / (caches ? 3 : 2) * sparse_rows_per_block(payload, width);
	return rows < ROWS_MAX ? (uint32_t)rows : ROWS_MAX;
}

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

size_t sparse_rows_bytes(uint32_t n, uint32_t width, bool has_values)
{
	return ROW_PACKET_HEAD + padded(2 * (size_t)n) +
	       (has_values ? padded(4 * (size_t)n * width) : 0);
}

uint32_t sparse_rows_in_packet(uint32_t payload, uint32_t width, bool has_values)
{
	size_t row = 2 + (has_values ? 4 * (size_t)width : 0);
	uint32_t n = payload > ROW_PACKET_HEAD ? (uint32_t)((payload - ROW_PACKET_HEAD) / row) : 0;

	if (n > ROWS_MAX - 1)
		n = ROWS_MAX - 1; /* the number of rows has 16 bits */
	while (n && sparse_rows_bytes(n, width, has_values) > payload)
		n--;
	return n;
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

static void put_16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

static void put_32(uint8_t *to, uint32_t value)
{
	put_16(to, value);
	put_16(to + 2, value >> 16);
}

size_t layout_write_rows(uint8_t *payload, const uint16_t *rows, const uint32_t *values,
                         uint32_t width, const uint32_t *order, uint32_t n)
{
	size_t bytes = sparse_rows_bytes(n, width, values != NULL);
	uint8_t *to = payload + ROW_PACKET_HEAD + padded(2 * (size_t)n);

	memset(payload, 0, (size_t)(to - payload));
	put_16(payload, n);
	put_16(payload + 2, width);
	for (uint32_t i = 0; i < n; i++)
		put_16(payload + ROW_PACKET_HEAD + 2 * (size_t)i, rows[order[i]]);
	for (uint32_t i = 0; values && i < n; i++)
		for (uint32_t j = 0; j < width; j++, to += 4)
			put_32(to, values[(size_t)order[i] * width + j]);
	memset(to, 0, (size_t)(payload + bytes - to));
	return bytes;
}
