/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The check queue, for plane.bpf.c alone. It is mapped memory. Packets of children
 * that only the daemon can handle go through it to the lane's thread, each with the
 * front of its frame. They do not pass the network stack.
 */
#ifndef TRIB_PLANE_XDP_BPF_CHECK_QUEUE_H
#define TRIB_PLANE_XDP_BPF_CHECK_QUEUE_H

#include "plane/xdp/bpf/eth_frames.h"

/* Instead of an XDP action: the packet is for the daemon, by queue or by socket. */
#define ASIDE 16

/* Are sender and receiver of one the receiver and sender of the other? */
ALWAYS int is_mac_reversed(const void *a, const void *b)
{
	return *(half_word *)a == *(half_word *)(b + 6) &&
	       *(quarter_word *)(a + 4) == *(quarter_word *)(b + 10) &&
	       *(quarter_word *)(a + 6) == *(quarter_word *)b &&
	       *(half_word *)(a + 8) == *(half_word *)(b + 2);
}

ALWAYS int are_ports_reversed(const void *a, const void *b)
{
	__u32 ports = *(half_word *)a;

	return (ports << 16 | ports >> 16) == *(half_word *)b;
}

ALWAYS int is_four_reversed(const void *a, const void *b)
{
	__u64 addresses = *(wire_word *)a;

	return (addresses << 32 | addresses >> 32) == *(wire_word *)b;
}

ALWAYS int is_six_reversed(const void *a, const void *b)
{
	const wire_word *one = a, *other = b;

	return one[0] == other[2] && one[1] == other[3] && one[2] == other[0] && one[3] == other[1];
}

/*
 * Does the frame arrive by the route that results leave by? The daemon learned the
 * route from a report that the network stack accepted. So the frame is for us, and
 * its sender address is genuine.
 */
ALWAYS int came_by(struct xdp_md *ctx, const struct xdp_route *route, __u32 at)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 l2 = route->l2, l3 = route->l3, from;
	const void *ours, *its;

	if (!route->queued || route->ifindex != ctx->ingress_ifindex ||
	    at != l2 + l3 + sizeof(struct udphdr) || data + 20 > end ||
	    !is_mac_reversed(data, route->head))
		return 0;
	if ((l2 > 14 && *(half_word *)(data + 12) != *(half_word *)(route->head + 12)) ||
	    (l2 > 18 && *(half_word *)(data + 16) != *(half_word *)(route->head + 16)))
		return 0; /* another VLAN */
	from = (at - (l3 == sizeof(struct iphdr) ? 16 : 40)) & 63;
	ours = data + from;
	its = route->head + from;
	if (l3 == sizeof(struct iphdr))
		return ours + 12 <= end && is_four_reversed(ours, its) &&
		       are_ports_reversed(ours + 8, its + 8);
	return ours + 36 <= end && is_six_reversed(ours, its) &&
	       are_ports_reversed(ours + 32, its + 32);
}

/* `room` is a constant: the verifier must know the size that is reserved. */
ALWAYS int put(struct xdp_md *ctx, void *queue, __u32 at, __u32 bytes, __u32 room)
{
	struct xdp_queued *queued;

	at = opaque(at);
	bytes = opaque(bytes);
	if ((int)at < 1 || (int)at > (int)XDP_HEAD_MAX || (int)bytes < 1 || (int)bytes > (int)room)
		return XDP_PASS;
	LEARNED(at);
	LEARNED(bytes);
	queued = bpf_ringbuf_reserve(queue, sizeof(*queued) + room, 0);
	if (!queued)
		return ASIDE;
	queued->bytes = bytes;
	queued->seen.ifindex = ctx->ingress_ifindex;
	queued->seen.at = at;
	if (bpf_xdp_load_bytes(ctx, 0, queued->seen.head, at) ||
	    bpf_xdp_load_bytes(ctx, at, queued->packet, bytes)) {
		bpf_ringbuf_discard(queued, 0);
		return XDP_PASS;
	}
	bpf_ringbuf_submit(queued, 0);
	return XDP_DROP;
}

/* XDP_DROP: the daemon has it. XDP_PASS: it came by another route, or the queue is full. */
__noinline int put_aside(struct xdp_md *ctx, __u32 at, __u32 payload, __u32 slot)
{
	const struct frame frame = { .at = at };
	const struct wire_header *header = frame_header(ctx, &frame);
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);
	__u32 index = slot % WIRE_LANES_MAX, key = 0;
	struct xdp_counts *count = bpf_map_lookup_elem(&counts, &key);
	void *queue = bpf_map_lookup_elem(&queues, &index);
	__u32 bytes = WIRE_HEADER + payload;
	int action;

	if (!lane || !count || !queue || !header || header->child >= WIRE_CHILDREN_MAX ||
	    !came_by(ctx, &lane->routes[header->child & (WIRE_CHILDREN_MAX - 1)], at))
		return XDP_PASS;
	if (bytes <= XDP_REPORT_MAX)
		action = put(ctx, queue, at, bytes, XDP_REPORT_MAX);
	else
		action = put(ctx, queue, at, bytes, WIRE_HEADER + settings.payload);
	if (action == XDP_DROP)
		count->queued++;
	if (action != ASIDE)
		return action;
	count->full++;
	return XDP_PASS;
}

#endif
