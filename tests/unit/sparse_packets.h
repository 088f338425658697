/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of the sparse engine: a pool of its own, packets for it, and pages of it. */
#ifndef TRIB_TESTS_SPARSE_PACKETS_H
#define TRIB_TESTS_SPARSE_PACKETS_H

#include "engine/sparse_bank.h"

#include <stdlib.h>
#include <string.h>

union sparse_packet {
	struct wire_header header;
	uint64_t words[(WIRE_PACKET_MAX + 7) / 8];
};

static inline void *sparse_payload(union sparse_packet *packet)
{
	return packet->words + WIRE_HEADER / 8;
}

/* A lane with so many children, in memory that calloc gave. */
static inline struct engine_pool sparse_pool(struct engine_lane *lane, uint32_t children,
                                             uint32_t cells, uint32_t payload)
{
	struct engine_pool pool = { .lane = lane, .step = engine_cell_bytes(payload) };

	*lane = (struct engine_lane){ .members = children < 64 ? (1ull << children) - 1 : ~0ull,
		                      .cells = cells,
		                      .payload = payload };
	pool.cells = calloc(cells, pool.step);
	return pool;
}

/* A packet without a payload. */
static inline void sparse_bare(union sparse_packet *packet, enum sparse_kind kind, uint8_t child,
                               uint32_t pos, uint16_t scale)
{
	packet->header = (struct wire_header){ .type = WIRE_DATA,
		                               .child = child,
		                               .op = (uint8_t)kind,
		                               .pos = pos,
		                               .scale = scale,
		                               .to = WIRE_ALL };
}

/* A PUSH or PULL with n rows: bytes of the payload. The values are the caller's, or 0. */
static inline uint32_t sparse_fill(union sparse_packet *packet, const uint16_t *numbers, uint32_t n,
                                   uint32_t width, const uint32_t *values)
{
	uint32_t bytes = sparse_rows_bytes(n, width, values != NULL);

	memset(sparse_payload(packet), 0, bytes);
	*(struct sparse_rows *)sparse_payload(packet) =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)width };
	if (n)
		memcpy(sparse_numbers(sparse_payload(packet)), numbers, 2ull * n);
	if (n && values)
		memcpy(sparse_values(sparse_payload(packet), n), values, 4ull * n * width);
	return bytes;
}

static inline uint32_t sparse_set(union sparse_packet *packet, uint8_t server, uint32_t width,
                                  uint32_t rows, uint32_t layout)
{
	sparse_bare(packet, SPARSE_SETUP, server, 0, 0);
	*(struct sparse_setup *)sparse_payload(packet) =
		(struct sparse_setup){ .width = width, .rows = rows, .layout = layout };
	return sizeof(struct sparse_setup);
}

static inline const struct wire_header *sparse_head(const struct engine_packet *out)
{
	return (const void *)out->data;
}

static inline const void *sparse_body(const struct engine_packet *out)
{
	return out->data + WIRE_HEADER;
}

static inline int sparse_refused(const struct engine_packet *out)
{
	return out->bytes && sparse_head(out)->from & SPARSE_REFUSED ? sparse_head(out)->to : 0;
}

#endif
