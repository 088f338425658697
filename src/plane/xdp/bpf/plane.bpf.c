/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The aggregator in front of the network stack. It finds the lane of a packet. DATA
 * goes to the lane's engine: streams are summed here (stream_program.h), other engines have
 * programs of their own (engine_program.h). Results of a parent go down to the
 * children (above.h). Packets of a child that only the daemon can handle go into the
 * check queue (check_queue.h). Everything else passes unchanged.
 */
#include "plane/xdp/bpf/program.h"
#include "plane/xdp/bpf/check_queue.h"
#include "plane/xdp/bpf/stream_program.h"
#include "plane/xdp/bpf/above.h"

/* Runs on each copy of a result, just before it leaves. */
SEC("xdp/devmap")
int fan_out(struct xdp_md *ctx)
{
	struct wire_header *header;
	struct frame frame;
	struct xdp_lane *lane;
	__u32 slot, route;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_DROP;
	/* The frame still has the front that the packet arrived with. */
	slot = header->comm * WIRE_LANES_MAX + (frame.port - settings.first_port);
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane)
		return XDP_DROP;
	route = (__u32)fan_route(slot, header->pos, ctx->egress_ifindex);
	if (route >= XDP_ROUTES ||
	    address(ctx, &lane->routes[route], frame.at, WIRE_HEADER + frame.bytes))
		return XDP_DROP;
	return XDP_PASS;
}

/* ---- receiving ---- */

/* Puts a REPORT into the check queue, or notes the child's route and passes it on. */
ALWAYS int take_report(struct xdp_md *ctx, const struct frame *frame, __u32 lane)
{
	const struct wire_control *control = frame_control(ctx, frame);
	struct xdp_lane *ours;
	__u32 slot, child;

	ours = lane_of_report(control, frame, lane, &slot);
	if (!ours)
		return XDP_PASS;
	child = control->child;
	/*
	 * If user space sums the lane, earlier DATA is in the socket: the report must
	 * not overtake it.
	 */
	if (ours->active && frame->bytes <= XDP_REPORT_MAX - WIRE_HEADER &&
	    put_aside(ctx, frame->at, frame->bytes, slot) == XDP_DROP)
		return XDP_DROP;
	note_seen(ctx, &ours->seen[child & 63], frame);
	return XDP_PASS;
}

/* Packets for the daemon that also show a route. */
__noinline int take_control(struct xdp_md *ctx, __u32 at, __u32 bytes, __u32 lane, __u32 type)
{
	const struct frame frame = { .at = at, .bytes = bytes };

	if (type == WIRE_REPORT)
		return take_report(ctx, &frame, lane);
	if (type == WIRE_STATUS)
		note_status(ctx, &frame, lane);
	return XDP_PASS;
}

/* DATA of a lane whose engine has a program of its own goes there, and does not return. */
ALWAYS void call_engine(struct xdp_md *ctx, __u32 slot)
{
	const struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);

	if (lane && lane->engine)
		bpf_tail_call(ctx, &engines, lane->engine);
}

ALWAYS int aggregate_frame(struct xdp_md *ctx, int again)
{
	struct wire_header *header;
	struct frame frame;
	__u32 lane, slot;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_PASS;
	lane = frame.port - settings.first_port;
	if (lane >= settings.ports)
		return XDP_PASS;
	if (header->type == WIRE_RESULT)
		return lower_result(ctx, frame.at, frame.bytes, lane);
	if (header->type != WIRE_DATA)
		return take_control(ctx, frame.at, frame.bytes, lane, header->type);
	if (header->comm >= XDP_COMMS)
		return XDP_PASS;
	slot = header->comm * WIRE_LANES_MAX + lane;
	call_engine(ctx, slot);
	return take_stream_data(ctx, &frame, slot, again);
}

SEC("xdp")
int aggregate(struct xdp_md *ctx)
{
	return aggregate_frame(ctx, 0);
}

/* Never attached. Adds one packet again and again, so that a benchmark can time it. */
SEC("xdp")
int aggregate_again(struct xdp_md *ctx)
{
	return aggregate_frame(ctx, 1);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
