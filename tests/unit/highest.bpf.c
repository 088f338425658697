/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* The program of the engine in test_engines.c. It lives in the tests only. */
#include "plane/xdp/bpf/engine_program.h"

/* Raises the cell, and puts it into the packet. */
__noinline int take(struct xdp_md *ctx, __u32 slot, __u32 index, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	struct engine_cell *cell = find_engine_cell(slot, index);
	int stored;

	if (!cell || !cell_lock(&cell->lock))
		return 0;
	combine_sum(ctx, slot, index, at, bytes);
	stored = store_sum(ctx, &frame, cell);
	cell->own[0]++;
	cell_unlock(&cell->lock);
	return stored;
}

ALWAYS int is_good(struct xdp_md *ctx, const struct frame *frame, const struct xdp_lane *lane)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 check;

	if (!header || !is_sound(header) || header->op != WIRE_MAX_U64 ||
	    frame->bytes > settings.payload)
		return 0;
	check = (__u32)checksum(ctx, frame->at, frame->bytes, lane->proof,
	                        wire_pos(lane->index, header->pos));
	header = frame_header(ctx, frame);
	return header && check == header->check;
}

SEC("xdp")
int highest_frame(struct xdp_md *ctx)
{
	struct wire_header *header;
	struct xdp_lane *lane;
	struct frame frame;
	__u32 slot, child;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_PASS;
	slot = header->comm * WIRE_LANES_MAX + (frame.port - settings.first_port);
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane || !lane->active || !is_good(ctx, &frame, lane))
		return XDP_PASS;
	header = frame_header(ctx, &frame);
	if (!header || !take(ctx, slot, header->pos % lane->state.cells, frame.at, frame.bytes))
		return XDP_PASS;
	header = frame_header(ctx, &frame);
	if (!header)
		return XDP_DROP;
	child = header->child;
	header->type = WIRE_RESULT;
	header->child = WIRE_ALL;
	if (!seal(ctx, &frame, lane, header->pos))
		return XDP_DROP;
	return send_to(ctx, &lane->routes[child & 63], frame.at, WIRE_HEADER + frame.bytes);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
