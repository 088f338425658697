/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_packets: how many rows fit into an aggregator and into a packet, and which rows share a
 * packet. docs/wire/sparse.md has the form of a packet. Row r is in block r / per_block.
 */
#ifndef TRIB_SPARSE_ROW_PACKETS_H
#define TRIB_SPARSE_ROW_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_MAX 65536u    /* a packet has 16 bits for the number of a row */
#define ROW_CELL_HEAD 72u  /* bytes of a cell without its payload */
#define ROW_BLOCK_MAX 64u  /* rows of a block: a word has their bits */
#define ROW_BLOCK_HEAD 8u  /* bytes before the rows of a block */
#define ROW_PACKET_HEAD 8u /* bytes before the row numbers of a packet */

/* Rows of a block; 0: a row does not fit. */
uint32_t sparse_rows_per_block(uint32_t payload, uint32_t width);

/*
 * Rows that fit into `memory` bytes of an aggregator. Its cells are a power of two. A block takes
 * two cells, one in each bank, and a third one if the aggregator keeps values for workers
 * (`caches`).
 */
uint32_t sparse_rows_fit(uint64_t memory, uint32_t payload, uint32_t width, bool caches);

/* Bytes of a payload with n rows; `has_values` is false in a PULL. */
size_t sparse_rows_bytes(uint32_t n, uint32_t width, bool has_values);

/* The most rows whose payload is not larger than `payload`; 0: not even one. */
uint32_t sparse_rows_in_packet(uint32_t payload, uint32_t width, bool has_values);

/*
 * Cuts n rows into packets of at most `most` rows, and needs as few packets as possible. rows[i] is
 * the number of row i, and no number occurs twice. order becomes a list of the i, by number of the
 * row, so a packet touches few blocks. Packet p has order[ends[p - 1]] to order[ends[p] - 1]; it
 * ends at the end of a block if that costs no further packet. ends has n / most + 1 places, scratch
 * has n. Returns the number of packets.
 */
uint32_t layout_pack_rows(const uint16_t *rows, uint32_t n, uint32_t most, uint32_t per_block,
                          uint32_t *order, uint32_t *ends, uint32_t *scratch);

/*
 * Writes the payload of a packet with the n rows of `order`. values[i * width] is where the values
 * of row i begin; NULL: a PULL. Returns its bytes, sparse_rows_bytes.
 */
size_t layout_write_rows(uint8_t *payload, const uint16_t *rows, const uint32_t *values,
                         uint32_t width, const uint32_t *order, uint32_t n);

#endif
