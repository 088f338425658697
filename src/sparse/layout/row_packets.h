/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_packets: how many rows fit into an aggregator, and which rows share a packet. Row r is in
 * block r / per_block. src/wire/sparse_packet.h has the form of packets, and the arithmetic of
 * blocks.
 */
#ifndef TRIB_SPARSE_ROW_PACKETS_H
#define TRIB_SPARSE_ROW_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Rows that fit into `memory` bytes of an aggregator. It has up to
 * ENGINE_CELLS_MAX cells. With `caches` it keeps values for workers, which takes a third cell for
 * each block.
 */
uint32_t layout_rows_fit(uint64_t memory, uint32_t payload, uint32_t width, bool caches);

/*
 * Cuts n rows into packets of at most `most` rows, and needs as few packets as possible. rows[i] is
 * the number of row i, and no number occurs twice. order becomes a list of the i, by number of the
 * row, so a packet touches few blocks. Packet p has order[ends[p - 1]] to order[ends[p] - 1]; it
 * ends at the end of a block if that costs no further packet. ends has n / most + 1 places, scratch
 * has n. Returns the number of packets.
 */
uint32_t layout_pack_rows(const uint16_t *rows, uint32_t n, uint32_t most, uint32_t per_block,
                          uint32_t *order, uint32_t *ends, uint32_t *scratch);

#endif
