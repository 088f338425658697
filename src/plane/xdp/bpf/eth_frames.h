/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* Frames: finding our packet in a frame, and sending it in another. */
#ifndef TRIB_PLANE_XDP_BPF_ETH_FRAMES_H
#define TRIB_PLANE_XDP_BPF_ETH_FRAMES_H

#include "plane/xdp/bpf/hook.h"
#include "wire/checksum.h"

#define IP_FRAGMENT 0x3fff /* a fragment: more follow, or it is not the first */
#define VLAN_TAGS 2

/* ---- finding ---- */

struct frame {
	__u32 at;    /* offset of our packet in the frame */
	__u32 bytes; /* payload bytes, if it is a fragment of a vector */
	__u32 port;
};

/*
 * Looked up again after every loop: what the verifier learned about the old
 * pointer in the loop would be another state for each iteration.
 */
ALWAYS struct wire_header *frame_header(struct hook_md *ctx, const struct frame *frame)
{
	struct wire_header *header = (void *)(long)ctx->data + (frame->at & 127);

	/* The compiler must not derive other values from this one: old verifiers do not follow
	 * those. */
	__asm__("" : "+r"(header));
	return (void *)(header + 1) <= (void *)(long)ctx->data_end ? header : NULL;
}

/* The same for packets that are not DATA or RESULT. */
ALWAYS struct wire_control *frame_control(struct hook_md *ctx, const struct frame *frame)
{
	struct wire_control *control = (void *)(long)ctx->data + (frame->at & 127);

	__asm__("" : "+r"(control));
	return (void *)(control + 1) <= (void *)(long)ctx->data_end ? control : NULL;
}

/* Is it a packet of ours, with a whole header and as much payload as it says? */
ALWAYS int frame_parse(struct hook_md *ctx, struct frame *frame)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__u32 at = sizeof(*eth), l3;
	struct udphdr *udp;
	__u16 proto;
	__u8 next;

	if ((void *)(eth + 1) > end)
		return 0;
	proto = eth->h_proto;
	for (int tag = 0; tag < VLAN_TAGS; tag++) {
		__be16 *vlan = data + at;

		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(vlan + 2) > end)
			return 0;
		proto = vlan[1];
		at += 4;
	}
	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + at;

		l3 = sizeof(*ip);
		if ((void *)(ip + 1) > end || *(__u8 *)ip != 0x45 ||
		    ip->frag_off & bpf_htons(IP_FRAGMENT))
			return 0;
		next = ip->protocol;
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data + at;

		l3 = sizeof(*ip);
		if ((void *)(ip + 1) > end)
			return 0;
		next = ip->nexthdr;
	} else {
		return 0;
	}
	if (next != IPPROTO_UDP)
		return 0;
	/* One path from here on for all kinds of frames. */
	at = hide(at + l3) & 127;
	udp = data + at;
	if ((void *)(udp + 1) + WIRE_HEADER > end)
		return 0;
	frame->at = at + sizeof(*udp);
	frame->port = bpf_ntohs(udp->dest);
	frame->bytes = bpf_ntohs(udp->len);
	if (frame->bytes < sizeof(*udp) + WIRE_HEADER || frame->bytes % 8 ||
	    at + frame->bytes > ctx->data_end - ctx->data)
		return 0;
	frame->bytes -= sizeof(*udp) + WIRE_HEADER;
	return ((struct wire_header *)(udp + 1))->magic == WIRE_MAGIC;
}

/* ---- sending ---- */

typedef __u32 __attribute__((may_alias)) half_word;
typedef __u16 __attribute__((may_alias)) quarter_word;

/*
 * Copies the front of a frame in words: the compiler would copy unaligned memory
 * byte by byte. `bytes` is a compile-time constant.
 */
ALWAYS void copy_front(void *to, const void *from, __u32 bytes)
{
	_Pragma("clang loop unroll(full)") for (__u32 i = 0; i + 8 <= bytes; i += 8)
	{
		*(wire_word *)(to + i) = *(const wire_word *)(from + i);
	}
	if (bytes & 4)
		*(half_word *)(to + (bytes & ~7u)) = *(const half_word *)(from + (bytes & ~7u));
	if (bytes & 2)
		*(quarter_word *)(to + (bytes & ~3u)) =
			*(const quarter_word *)(from + (bytes & ~3u));
}

/*
 * Notes the front of a REPORT or STATUS. The daemon, which gets the packet too,
 * decides whether it is genuine.
 */
ALWAYS void note_seen(struct hook_md *ctx, struct xdp_seen *seen, const struct frame *frame)
{
	void *data = (void *)(long)ctx->data;

	if (data + XDP_HEAD_MAX > (void *)(long)ctx->data_end)
		return;
	seen->ifindex = ctx->ingress_ifindex;
	seen->at = frame->at;
	copy_front(seen->head, data, XDP_HEAD_MAX);
}

ALWAYS int put_route(void *head, void *end, const struct xdp_route *route, __u32 l2, __u32 l3,
                     __u32 bytes)
{
	struct udphdr *udp = head + l2 + l3;

	int lacks;

	if ((void *)(udp + 1) > end)
		return -1;
	lacks = hook_lacks_sum(head + l2, udp, l3);
	copy_front(head, route->head, l2 + l3 + sizeof(*udp));
	udp->len = bpf_htons(bytes + sizeof(*udp));
	if (l3 == sizeof(struct iphdr)) {
		struct iphdr *ip = head + l2;
		__u32 sum;

		ip->tot_len = bpf_htons(bytes + sizeof(*udp) + l3);
		sum = route->ip_sum + ip->tot_len;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		ip->check = ~sum;
	} else {
		((struct ipv6hdr *)(head + l2))->payload_len = udp->len;
	}
	hook_put_sum(head + l2, udp, l3, lacks);
	return 0;
}

/* Puts the route in front of our packet, which begins at offset `at` of the frame. */
ALWAYS int address(struct hook_md *ctx, const struct xdp_route *route, __u32 at, __u32 bytes)
{
	__u32 head = route->l2 + route->l3 + sizeof(struct udphdr);
	void *data, *end;

	if (head != at && hook_move_front(ctx, (int)at - (int)head))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	switch (route->l2 << 8 | route->l3) {
	case 14 << 8 | 20:
		return put_route(data, end, route, 14, 20, bytes);
	case 18 << 8 | 20:
		return put_route(data, end, route, 18, 20, bytes);
	case 22 << 8 | 20:
		return put_route(data, end, route, 22, 20, bytes);
	case 14 << 8 | 40:
		return put_route(data, end, route, 14, 40, bytes);
	case 18 << 8 | 40:
		return put_route(data, end, route, 18, 40, bytes);
	case 22 << 8 | 40:
		return put_route(data, end, route, 22, 40, bytes);
	}
	return -1;
}

ALWAYS int send_to(struct hook_md *ctx, const struct xdp_route *route, __u32 at, __u32 bytes)
{
	__u32 ifindex = route->ifindex;

	if (!ifindex || address(ctx, route, at, bytes))
		return HOOK_DROP;
	return hook_send(ctx, ifindex);
}

/* The route of a copy that leaves through this interface; XDP_ROUTES: none. */
__noinline int fan_route(__u32 slot, __u32 pos, __u32 ifindex)
{
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);
	__u32 key = ifindex & (COPYING - 1), first = 0;
	struct copies *copies = NULL;

	if (!lane)
		return XDP_ROUTES;
	if (lane->shared_ports) {
		copies = bpf_map_lookup_elem(&copying, &key);
		if (!copies)
			return XDP_ROUTES;
		/* The kernel serves interfaces one after the other, in any order. */
		if (copies->slot == slot && copies->pos == pos && copies->ifindex == ifindex &&
		    copies->cookie == (__u32)lane->cookie)
			first = copies->next;
		copies->slot = slot;
		copies->ifindex = ifindex;
		copies->cookie = (__u32)lane->cookie;
		copies->pos = pos;
	}
	for (__u32 i = 0; i < XDP_ROUTES; i++) {
		/*
		 * One expression: with two, the verifier would follow a path for each
		 * value of `first`.
		 */
		__u32 is_other = (lane->entry_port[i] ^ ifindex) | (i - first) >> 31;

		if (i >= lane->entries)
			break;
		if (opaque(is_other))
			continue;
		if (copies)
			copies->next = i + 1;
		return lane->entry[i];
	}
	return XDP_ROUTES;
}

#endif
