/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The aggregator at the hook tc. Unlike XDP, a program here takes no offloads away from the
 * interface, and needs nothing of its driver. It finds the lane of a packet. DATA goes to the
 * program of the lane's engine. All other packets pass unchanged: streams, frames that hold
 * several packets (GSO), and all that only the daemon can answer.
 */
#define TRIB_HOOK_TC
#include "plane/xdp/bpf/program.h"

#define PULL_MOST 2048 /* bytes of the longest frame with a packet of ours */

/* Programs of engines at this hook, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, ENGINES_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} tc_engines SEC(".maps");

/* Does the frame go to one of our ports? It looks only at addresses and ports. */
ALWAYS int is_for_us(struct __sk_buff *ctx)
{
	__u32 six = ctx->protocol == bpf_htons(ETH_P_IPV6);
	__u32 l3 = six ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	__be16 port;
	__u8 next;

	if ((!six && ctx->protocol != bpf_htons(ETH_P_IP)) ||
	    bpf_skb_load_bytes(ctx, sizeof(struct ethhdr) + (six ? 6 : 9), &next, 1) ||
	    next != IPPROTO_UDP ||
	    bpf_skb_load_bytes(ctx, sizeof(struct ethhdr) + l3 + 2, &port, sizeof(port)))
		return 0;
	return bpf_ntohs(port) - settings.first_port < settings.ports;
}

/*
 * A driver may leave a frame's payload in pages, where programs cannot see it. Only frames for us
 * are brought into one piece. False: the frame has another form, or holds several packets.
 */
ALWAYS int is_whole(struct __sk_buff *ctx)
{
	if (ctx->gso_size || ctx->vlan_present || ctx->len > PULL_MOST)
		return 0;
	return ctx->len <= ctx->data_end - ctx->data ||
	       (is_for_us(ctx) && !bpf_skb_pull_data(ctx, ctx->len));
}

/* A report shows the route to its child. */
ALWAYS void note_report(struct __sk_buff *ctx, const struct frame *frame, __u32 lane)
{
	const struct wire_control *control = frame_control(ctx, frame);
	__u32 slot;
	struct xdp_lane *ours = lane_of_report(control, frame, lane, &slot);

	if (ours)
		note_seen(ctx, &ours->seen[control->child & 63], frame);
}

SEC("tc")
int find_lane(struct __sk_buff *ctx)
{
	struct wire_header *header;
	struct frame frame;
	struct xdp_lane *ours;
	__u32 lane, slot;

	if (!is_whole(ctx) || !frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return HOOK_PASS;
	lane = frame.port - settings.first_port;
	if (lane >= settings.ports)
		return HOOK_PASS;
	if (header->type == WIRE_REPORT)
		note_report(ctx, &frame, lane);
	if (header->type != WIRE_DATA || header->comm >= XDP_COMMS)
		return HOOK_PASS;
	slot = header->comm * WIRE_LANES_MAX + lane;
	ours = bpf_map_lookup_elem(&lanes, &slot);
	if (ours && ours->engine)
		bpf_tail_call(ctx, &tc_engines, ours->engine);
	return HOOK_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
