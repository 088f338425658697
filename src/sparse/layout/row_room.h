/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows fit into an aggregator. src/wire/sparse_packet.h has the arithmetic of blocks. */
#ifndef TRIB_SPARSE_ROW_ROOM_H
#define TRIB_SPARSE_ROW_ROOM_H

#include <stdint.h>

/*
 * Rows that fit into `memory` bytes of an aggregator, by the bits of enum sparse_layout. It has up
 * to ENGINE_CELLS_MAX cells. A block takes one in each bank, and one for its values.
 */
uint32_t layout_rows_fit(uint64_t memory, uint32_t payload, uint32_t width, uint32_t layout);

#endif
