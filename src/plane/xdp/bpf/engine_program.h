/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * What the program of an engine begins with. plane.bpf.c calls it for each DATA packet of a lane
 * that names the engine; it is a program of its own, in an object of its own. The daemon gives it
 * the plane's maps, by their names, and a pool of cells for each lane (struct engine_cell).
 */
#ifndef TRIB_PLANE_XDP_BPF_ENGINE_PROGRAM_H
#define TRIB_PLANE_XDP_BPF_ENGINE_PROGRAM_H

#include "plane/xdp/bpf/program.h"

struct engine_cells {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct engine_cell)); /* plus the payload: set before loading */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__array(values, struct engine_cells);
} cells SEC(".maps");

ALWAYS struct engine_cell *find_engine_cell(__u32 slot, __u32 index)
{
	void *pool = bpf_map_lookup_elem(&cells, &slot);

	return pool ? bpf_map_lookup_elem(pool, &index) : NULL;
}

/* Puts the payload into the cell. */
ALWAYS int load_sum(struct hook_md *ctx, const struct frame *frame, struct engine_cell *cell)
{
	__u32 bytes = opaque(frame->bytes);

	if ((int)bytes < 8 || bytes > settings.payload)
		return !bytes;
	LEARNED(bytes);
	return !hook_load(ctx, (frame->at & 127) + WIRE_HEADER, cell->sum, bytes);
}

/* Puts the cell's sum into the payload, which has as many bytes. */
ALWAYS int store_sum(struct hook_md *ctx, const struct frame *frame, struct engine_cell *cell)
{
	__u32 bytes = opaque(frame->bytes);

	if ((int)bytes < 8 || bytes > settings.payload)
		return !bytes;
	LEARNED(bytes);
	return !hook_store(ctx, (frame->at & 127) + WIRE_HEADER, cell->sum, bytes);
}

/* Combines the payload with the cell's sum. Verified separately, as it is not static. */
__noinline int combine_sum(struct hook_md *ctx, __u32 slot, __u32 index, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	const struct wire_header *header = frame_header(ctx, &frame);
	const wire_word *words = (const wire_word *)(header + 1);
	void *end = (void *)(long)ctx->data_end;
	__u32 left = opaque(bytes / 8);
	struct engine_cell *cell = find_engine_cell(slot, index);
	wire_word *sums;

	if (!header || !cell || left > settings.payload / 8)
		return 0;
	sums = cell->sum;
	switch (header->op) {
		COMBINE_OPS(COMBINE_CASE)
	}
	return 0;
}

/* The header of a packet of a worker, if its fields have values that the parser takes. */
ALWAYS struct wire_header *sound_header(struct hook_md *ctx, const struct frame *frame)
{
	struct wire_header *header = frame_header(ctx, frame);

	return header && is_sound(header) && frame->bytes <= settings.payload ? header : NULL;
}

/* Is the packet of this lane, and as it was sent? `position`: the whole of its number. */
ALWAYS int is_intact(struct hook_md *ctx, const struct frame *frame, const struct xdp_lane *lane,
                     __u64 position)
{
	__u32 check = (__u32)checksum(ctx, frame->at, frame->bytes, lane->proof,
	                              wire_pos(lane->index, position));
	struct wire_header *header = frame_header(ctx, frame);

	return header && check == header->check;
}

/* The checksum of what has been written into the packet. */
ALWAYS int seal(struct hook_md *ctx, const struct frame *frame, const struct xdp_lane *lane,
                __u64 position)
{
	__u32 check = (__u32)checksum(ctx, frame->at, frame->bytes, lane->proof,
	                              wire_pos(lane->index, position));
	struct wire_header *header = frame_header(ctx, frame);

	if (!header)
		return 0;
	header->check = check;
	return 1;
}

#endif
