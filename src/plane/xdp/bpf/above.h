/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Packets from a lane's parent, for plane.bpf.c alone. Results go into their cells
 * and on to the children. A STATUS shows the route to the parent. The sender's
 * address selects the lane; cookie or checksum then prove that the packet belongs
 * to it.
 */
#ifndef TRIB_PLANE_XDP_ABOVE_H
#define TRIB_PLANE_XDP_ABOVE_H

#include "plane/xdp/bpf/eth_frames.h"
#include "plane/xdp/bpf/passes.h"

/*
 * Is the frame for us? It could be on its way through a switch to another child of
 * the parent, or for a multicast group.
 */
ALWAYS int is_for_us(struct xdp_md *ctx, const struct xdp_parent *parent, __u32 at)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 *before_udp = data + ((at - 16) & 127);

	if (data + 8 > end || (void *)(before_udp + 1) > end)
		return 0;
	return parent->active && (*(__u64 *)data & 0xffffffffffffull) == parent->mac &&
	       *before_udp == parent->address;
}

/* Puts a verified result into its cell. DENSE_COMPLETE: it is in the cell now. */
ALWAYS __u32 lower(struct xdp_md *ctx, struct xdp_lane *lane, struct xdp_cell *cell,
                   const struct frame *frame)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 bytes = opaque(frame->bytes), how;
	__u64 position;

	if (!header || bytes > settings.payload)
		return CORRUPTED;
	position = dense_position(&lane->dense, header);
	uplink_low(&lane->dense, wire_widen(header->ack, lane->dense.above));
	how = uplink_judge(&lane->dense, &cell->state, header, position, bytes);
	if (how != DENSE_FRESH && how != DENSE_ADDED)
		return how;
	cell->ring_of = 0; /* the cell no longer holds our own sum */
	bytes = opaque(bytes);
	if ((int)bytes >= 8 && bytes <= settings.payload) {
		LEARNED(bytes);
		if (bpf_xdp_load_bytes(ctx, (frame->at & 127) + WIRE_HEADER, cell->sum, bytes))
			return CORRUPTED;
	}
	header = frame_header(ctx, frame);
	if (!header)
		return CORRUPTED;
	if (how == DENSE_ADDED && cell->state.queued == UPLINK_RAISED)
		__sync_fetch_and_add(&lane->parent.heard, 1);
	uplink_enter(&cell->state, header, position, bytes, how);
	cell->state.sent_at = (__u32)(bpf_ktime_get_ns() / 1000);
	return DENSE_COMPLETE;
}

/*
 * Rewrites the parent's result into our own, as the daemon would send it. The
 * checksum follows from the payload's ring.
 */
ALWAYS int make_ours(struct xdp_md *ctx, const struct xdp_lane *lane, const struct frame *frame,
                     __u32 comm, const struct wire_check *ring)
{
	struct wire_header *header = frame_header(ctx, frame);
	struct wire_unsent unsent;

	if (!header)
		return 0;
	unsent = unsent_of(lane, lane->proof, dense_position(&lane->dense, header));
	header->flags &= (__u8)~WIRE_RESENT;
	header->comm = comm;
	header->child = WIRE_ALL;
	header->ack = (__u32)lane->dense.low;
	header->check = wire_check_end(*ring, (wire_word *)header, (wire_word *)&unsent,
	                               WIRE_HEADER + (__u64)frame->bytes);
	return 1;
}

/* Finds the lane whose parent is the sender; NULL: none. */
ALWAYS __u32 *find_uplink(struct xdp_md *ctx, const struct frame *frame, __u32 lane)
{
	struct wire_header *header = frame_header(ctx, frame);
	void *udp = (void *)(long)ctx->data + ((frame->at - sizeof(struct udphdr)) & 127);
	struct xdp_uplink uplink = { .lane = lane };

	if (!header || udp + sizeof(struct udphdr) > (void *)(long)ctx->data_end)
		return NULL;
	uplink.comm = header->comm;
	uplink.port = ((struct udphdr *)udp)->source;
	/* The fronts with IPv6 are the longer ones. */
	if (frame->at >= ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct udphdr)) {
		if (bpf_xdp_load_bytes(ctx, frame->at - sizeof(struct udphdr) - 32, uplink.source,
		                       16))
			return NULL;
	} else if (bpf_xdp_load_bytes(ctx, frame->at - sizeof(struct udphdr) - 8, uplink.source,
	                              4)) {
		return NULL;
	}
	return bpf_map_lookup_elem(&uplinks, &uplink);
}

/*
 * Puts a result into its cell and sends it to our children, as far as that is
 * possible here. Verified separately, as it is not static.
 */
__noinline int lower_result(struct xdp_md *ctx, __u32 at, __u32 bytes, __u32 lane)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	struct wire_header *header;
	struct wire_unsent unsent;
	struct xdp_counts *count;
	struct wire_check ring;
	struct place place;
	__u32 *found = find_uplink(ctx, &frame, lane), slot, index, verdict, key = 0;
	struct xdp_parent *parent;
	__u8 to;

	if (!found)
		return XDP_PASS;
	slot = *found;
	place.lane = bpf_map_lookup_elem(&lanes, &slot);
	header = frame_header(ctx, &frame);
	if (!place.lane || !header)
		return XDP_PASS;
	parent = &place.lane->parent;
	to = header->to;
	if (!place.lane->active || !place.lane->entries || header->op >= WIRE_OPS_END ||
	    header->comm != parent->comm || header->child != WIRE_ALL || !is_rank(header->from) ||
	    !is_rank(to) || bytes > settings.payload || !is_for_us(ctx, parent, at))
		return XDP_PASS;
	count = bpf_map_lookup_elem(&counts, &key);
	if (!count)
		return XDP_PASS;
	unsent = unsent_of(place.lane, parent->proof, dense_position(&place.lane->dense, header));
	if (pass_weigh(header, (void *)(long)ctx->data_end, &ring, bytes, &unsent) !=
	    header->check) {
		count->verdicts[CORRUPTED]++;
		return XDP_PASS; /* Intact packets that the driver joined look like this, too. */
	}
	header = frame_header(ctx, &frame);
	if (!header)
		return XDP_PASS;
	index = dense_index(&place.lane->dense, dense_position(&place.lane->dense, header));
	if (!find_place(&place, slot, index))
		return XDP_PASS;
	if (!cell_lock(&place.cell->state.lock)) {
		count->busy++;
		return XDP_PASS;
	}
	verdict = lower(ctx, place.lane, place.cell, &frame);
	cell_unlock(&place.cell->state.lock);
	if (verdict == DENSE_STALE || verdict == DENSE_FINISHED) {
		count->echoes++;
		return XDP_DROP;
	}
	if (verdict != DENSE_COMPLETE)
		return XDP_PASS; /* ahead of what is settled, or an error that the daemon reports */
	count->lowered++;
	if (!make_ours(ctx, place.lane, &frame, slot / WIRE_LANES_MAX, &ring))
		return XDP_DROP;
	count_result(count, place.lane, to);
	return send_down(ctx, place.lane, &frame, slot, to);
}

/* Notes the route to the parent. */
ALWAYS void note_status(struct xdp_md *ctx, const struct frame *frame, __u32 lane)
{
	__u32 *found = find_uplink(ctx, frame, lane), slot = found ? *found : XDP_LANES;
	struct xdp_lane *ours = bpf_map_lookup_elem(&lanes, &slot);
	const struct wire_control *control = frame_control(ctx, frame);

	if (ours && control && ours->parent.cookie == control->cookie &&
	    ours->parent.job == control->job && ours->parent.comm == control->comm &&
	    ours->parent.epoch == control->epoch && ours->parent.child == control->child &&
	    wire_lane(control) == lane)
		note_seen(ctx, &ours->parent.seen, frame);
}

#endif
