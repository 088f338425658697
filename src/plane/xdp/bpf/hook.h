/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The two hooks of the kernel that programs run at: XDP, before the kernel has made a socket buffer
 * of a frame, and tc (TRIB_HOOK_TC), right after. All that differs between them is here.
 */
#ifndef TRIB_PLANE_XDP_BPF_HOOK_H
#define TRIB_PLANE_XDP_BPF_HOOK_H

#include "plane/xdp/bpf/maps.h"

#ifdef TRIB_HOOK_TC
#define hook_md __sk_buff
#define HOOK_PASS (-1) /* TCX_NEXT: on to the next program, then to the network stack */
#define HOOK_DROP TC_ACT_SHOT
#define hook_load(ctx, at, to, bytes) bpf_skb_load_bytes(ctx, at, to, bytes)
#define hook_store(ctx, at, from, bytes) bpf_skb_store_bytes(ctx, at, from, bytes, 0)
#define hook_send(ctx, ifindex) ((int)bpf_redirect(ifindex, 0))

/* At tc a front keeps its length. If children have fronts of several lengths, tribd sums the lane.
 */
ALWAYS int hook_move_front(struct __sk_buff *ctx, int by)
{
	(void)ctx, (void)by;
	return -1;
}

/* One's complement sum of 16-bit words. `bytes` is a compile-time constant. */
ALWAYS __u32 sum16(const void *from, __u32 bytes)
{
	const __be16 *words = from;
	__u32 sum = 0;

	_Pragma("clang loop unroll(full)") for (__u32 i = 0; i < bytes / 2; i++) sum += words[i];
	return sum;
}

/* The sum over addresses, protocol and length, as a part of UDP's checksum. */
ALWAYS __be16 pseudo_sum(const void *ip, const struct udphdr *udp, __u32 l3)
{
	__u32 sum = bpf_htons(IPPROTO_UDP) + udp->len;

	sum += l3 == sizeof(struct iphdr) ? sum16(ip + 12, 8) : sum16(ip + 8, 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/*
 * True: the frame was made on this machine, and the kernel left its UDP checksum to a network card.
 * Its field then holds the sum above, to which the card adds the rest. So if the frame gets other
 * addresses, the field needs their sum. A frame from the wire gets 0: no UDP checksum.
 */
ALWAYS int hook_lacks_sum(const void *ip, const struct udphdr *udp, __u32 l3)
{
	return udp->check && udp->check == pseudo_sum(ip, udp, l3);
}

ALWAYS void hook_put_sum(const void *ip, struct udphdr *udp, __u32 l3, int lacks)
{
	udp->check = lacks ? pseudo_sum(ip, udp, l3) : 0;
}
#else
#define hook_md xdp_md
#define HOOK_PASS XDP_PASS
#define HOOK_DROP XDP_DROP
#define hook_load(ctx, at, to, bytes) bpf_xdp_load_bytes(ctx, at, to, bytes)
#define hook_store(ctx, at, from, bytes) bpf_xdp_store_bytes(ctx, at, from, bytes)
#define hook_move_front(ctx, by) bpf_xdp_adjust_head(ctx, by)
#define hook_send(ctx, ifindex) \
	((ifindex) == (ctx)->ingress_ifindex ? XDP_TX : (int)bpf_redirect(ifindex, 0))
#define hook_lacks_sum(ip, udp, l3) 0
#define hook_put_sum(ip, udp, l3, lacks) ((void)(lacks))
#endif

#endif
