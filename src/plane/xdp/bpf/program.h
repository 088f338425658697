/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * What every program of the plane needs: dense's (plane.bpf.c) and those of other engines. Packets
 * are found in frames, verified, and sent to children.
 */
#ifndef TRIB_PLANE_XDP_BPF_PROGRAM_H
#define TRIB_PLANE_XDP_BPF_PROGRAM_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "plane/xdp/bpf/maps.h"
#include "wire/checksum.h"

#define LOCK_TRIES 512
#define ALWAYS static __always_inline

/* Hides a value from the compiler, which then keeps checks that the verifier needs. */
ALWAYS __u32 opaque(__u32 number)
{
	__asm__ volatile("" : "+r"(number));
	return number;
}

/* Hides a value from the verifier too, which then does not follow a path for each value. */
ALWAYS __u32 hide(__u32 number)
{
	return opaque(number + (__u32)hidden_zero);
}

/* Without a loop, and without an instruction that BPF lacks. */
ALWAYS __u32 popcount(__u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555ull;
	bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return bits * 0x0101010101010101ull >> 56;
}

#include "plane/xdp/bpf/passes.h"
#include "plane/xdp/bpf/eth_frames.h"

/* A full barrier on both sides: the next core sees what this core wrote into the cell. */
ALWAYS int cell_lock(__u32 *lock)
{
	for (int i = 0; i < LOCK_TRIES; i++)
		if (__sync_val_compare_and_swap(lock, 0, 1) == 0)
			return 1;
	return 0;
}

ALWAYS void cell_unlock(__u32 *lock)
{
	__sync_lock_test_and_set(lock, 0);
}

/* What the checksum of the packet has to be. */
__noinline int checksum(struct hook_md *ctx, __u32 at, __u32 bytes, __u64 proof, __u64 pos)
{
	const struct wire_unsent unsent = { .proof = proof, .pos = pos };
	const struct frame frame = { .at = at };
	struct wire_header *header = frame_header(ctx, &frame);
	void *end = (void *)(long)ctx->data_end;

	return header ? (int)pass_check(header, end, NULL, bytes, &unsent) : 0;
}

/* One rank, or WIRE_ALL, which becomes 0 when 1 is added. */
ALWAYS int is_rank(__u8 rank)
{
	return (__u8)(rank + 1) <= WIRE_CHILDREN_MAX;
}

/* The checks of the user-space parser for a fragment's header. */
ALWAYS int is_sound(const struct wire_header *header)
{
	return header->op < WIRE_OPS_END && header->child < WIRE_CHILDREN_MAX &&
	       is_rank(header->from);
}

/* The lane of a child's report; NULL: none of ours. */
ALWAYS struct xdp_lane *lane_of_report(const struct wire_control *control,
                                       const struct frame *frame, __u32 lane, __u32 *slot)
{
	struct xdp_lane *ours;

	if (!control || frame->bytes < WIRE_CONTROL - WIRE_HEADER || control->comm >= XDP_COMMS ||
	    wire_lane(control) != lane)
		return NULL;
	*slot = control->comm * WIRE_LANES_MAX + lane;
	ours = bpf_map_lookup_elem(&lanes, slot);
	return ours && ours->cookie == control->cookie && ours->job == control->job &&
	                       ours->epoch == control->epoch
	               ? ours
	               : NULL;
}

#ifdef TRIB_HOOK_TC
/* Sends a copy of the packet by the route of this slot of the fan. */
__noinline int send_copy(struct hook_md *ctx, __u32 slot, __u32 i, __u32 at, __u32 bytes)
{
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);
	const struct xdp_route *route;

	if (!lane || i >= XDP_ROUTES || lane->entry[i] >= XDP_ROUTES)
		return 0;
	route = &lane->routes[lane->entry[i]];
	if (!route->ifindex || address(ctx, route, at, bytes))
		return 0;
	return bpf_clone_redirect(ctx, route->ifindex, 0) == 0;
}
#endif

/* Sends a result to all children. Not every engine does. */
static __noinline __attribute__((unused)) int send_all(struct hook_md *ctx, struct xdp_lane *lane,
                                                       const struct frame *frame, __u32 slot)
{
	__u32 bytes = WIRE_HEADER + frame->bytes, last = lane->entries - 1, route;

	if (last >= XDP_ROUTES)
		return HOOK_DROP;
#ifdef TRIB_HOOK_TC
	for (__u32 i = 0; i < XDP_ROUTES && i < last; i++)
		send_copy(ctx, slot, i, frame->at, bytes);
#else
	if (last) {
		void *fan = bpf_map_lookup_elem(&fans, &slot);

		return fan ? (int)bpf_redirect_map(fan, 0, BPF_F_BROADCAST) : HOOK_DROP;
	}
#endif
	route = lane->entry[last];
	return route < XDP_ROUTES ? send_to(ctx, &lane->routes[route], frame->at, bytes)
	                          : HOOK_DROP;
}

#endif
