/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stream/packet_heads.h"

void result_head(const struct agg_lane *lane, const struct dense_cell *cell, uint8_t *packet,
                 bool again)
{
	struct wire_header *header = (struct wire_header *)(void *)packet;

	*header = (struct wire_header){ .magic = WIRE_MAGIC,
		                        .type = WIRE_RESULT,
		                        .flags = cell->shape | (again ? WIRE_RESENT : 0),
		                        .comm = lane->comm->id,
		                        .child = WIRE_ALL,
		                        .op = cell->op,
		                        .pos = (uint32_t)cell->position,
		                        .ack = (uint32_t)lane->dense->low,
		                        .scale = cell->scale,
		                        .from = cell->from,
		                        .to = cell->to };
}

void sum_head(const struct agg_lane *lane, const struct dense_cell *cell, uint8_t *packet)
{
	struct wire_header *header = (struct wire_header *)(void *)packet;

	*header = (struct wire_header){ .magic = WIRE_MAGIC,
		                        .type = WIRE_DATA,
		                        .flags = cell->shape,
		                        .comm = lane->comm->parent.comm,
		                        .child = lane->comm->parent.child,
		                        .op = cell->op,
		                        .pos = (uint32_t)cell->position,
		                        .ack = (uint32_t)lane->dense->settled,
		                        .scale = cell->scale,
		                        .from = cell->from,
		                        .to = cell->to };
}
