/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/layout/row_room.h"

#include "engine/engines.h"
#include "wire/sparse_packet.h"

uint32_t layout_rows_fit(uint64_t memory, uint32_t payload, uint32_t width, uint32_t layout)
{
	uint64_t cells = memory / engine_cell_bytes(payload);

	if (cells > ENGINE_CELLS_MAX)
		cells = ENGINE_CELLS_MAX;
	return sparse_rows_max((uint32_t)cells, payload, width, layout);
}
