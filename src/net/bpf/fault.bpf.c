/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * fault: loss, duplication, reordering and corruption of UDP over IPv4 at one end of a link (tc,
 * clsact), for incoming or outgoing packets. With `loses_all`, loss strikes all of IPv4.
 *
 * The fate of a packet depends only on the seed and the packet's number on this link. The number
 * goes through splitmix64, which has no state, so two cores may draw at the same time.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "net/bpf/fault_counts.h"

#define FRAME_MAX (ETH_HLEN + FAULT_MTU_MAX)
#define MARK_DONE 0x54524942 /* mark of packets that this program has put back into the queue */
#define IP_OFFSET 0x1fff

/* Probabilities times 2^32. */
const volatile __u64 loss_below = 0, dup_below = 0, reorder_below = 0, corrupt_below = 0;
const volatile __u64 seed = 0;
const volatile __u32 goes_out = 0, loses_all = 0;

#define FLIPS_MAX 3
#define DRAWS 8 /* random draws for each packet: all of those below */
enum { DRAW_LOSS, DRAW_CORRUPT, DRAW_DUP, DRAW_REORDER, DRAW_BITS, DRAW_PLACES };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fault_counts);
} counts SEC(".maps");

enum { STASH_EMPTY, STASH_BUSY, STASH_FULL };

/* A packet that waits for the next one to overtake it. */
struct stash {
	__u64 state;
	__u32 bytes;
	__u8 frame[FRAME_MAX];
	__u8 overtaker[FRAME_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stash);
} stashes SEC(".maps");

static __u64 draw(__u64 packet, __u32 what)
{
	__u64 z = seed + (packet * DRAWS + what) * 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static int strikes(__u64 packet, __u32 what, __u64 below)
{
	return (draw(packet, what) >> 32) < below;
}

/* Offset of the UDP header, or of the data in later IP fragments; 0: not a UDP packet. */
static __u32 udp_find(struct __sk_buff *skb, int *is_first)
{
	struct iphdr ip;

	if (skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.protocol != IPPROTO_UDP)
		return 0;
	*is_first = !(ip.frag_off & bpf_htons(IP_OFFSET));
	return ETH_HLEN + ip.ihl * 4;
}

/*
 * Sets the checksum to 0: none. So a corrupted packet reaches the program under test, which must
 * detect the corruption itself.
 */
static void checksum_drop(struct __sk_buff *skb, __u32 udp)
{
	__u16 none = 0;

	bpf_skb_store_bytes(skb, udp + offsetof(struct udphdr, check), &none, sizeof(none), 0);
}

static int payload_corrupt(struct __sk_buff *skb, __u32 udp, int is_first, __u64 packet)
{
	__u32 start = udp + (is_first ? sizeof(struct udphdr) : 0);
	__u64 random = draw(packet, DRAW_BITS);
	__u32 flips = (__u32)random % FLIPS_MAX + 1;

	if (skb->len <= start)
		return 0;
	for (__u32 i = 0; i < FLIPS_MAX; i++) {
		__u64 place = draw(packet, DRAW_PLACES + i);
		__u32 at = start + (__u32)(place >> 32) % (skb->len - start);
		__u8 byte;

		if (i >= flips || bpf_skb_load_bytes(skb, at, &byte, 1))
			break;
		byte ^= 1 << (((random >> 32) + i) & 7); /* never flips the same bit twice */
		bpf_skb_store_bytes(skb, at, &byte, 1, 0);
	}
	if (is_first)
		checksum_drop(skb, udp);
	return 1;
}

/*
 * Sends a copy of the packet without further faults: out at once, or to the end of the receive
 * queue.
 */
static int packet_repeat(struct __sk_buff *skb)
{
	long error;

	skb->mark = MARK_DONE;
	error = bpf_clone_redirect(skb, skb->ifindex, goes_out ? 0 : BPF_F_INGRESS);
	skb->mark = 0;
	return !error;
}

static int frame_write(struct __sk_buff *skb, const __u8 *frame, __u32 bytes)
{
	if (bytes < ETH_HLEN || bytes > FRAME_MAX)
		return -1;
	if (bpf_skb_change_tail(skb, bytes, 0))
		return -1;
	return bpf_skb_store_bytes(skb, 0, frame, bytes, 0);
}

/* Keeps a copy of the packet. Nonzero: the caller must drop the packet. */
static int stash_fill(struct stash *stash, struct __sk_buff *skb, __u32 udp, int is_first)
{
	__u32 bytes = skb->len;

	if (bytes < ETH_HLEN || bytes > FRAME_MAX)
		return 0;
	if (__sync_val_compare_and_swap(&stash->state, STASH_EMPTY, STASH_BUSY) != STASH_EMPTY)
		return 0;
	/* The buffer of another packet will carry it, with another kind of checksum perhaps. */
	if (is_first)
		checksum_drop(skb, udp);
	if (bpf_skb_load_bytes(skb, 0, stash->frame, bytes)) {
		__sync_lock_test_and_set(&stash->state, STASH_EMPTY);
		return 0;
	}
	stash->bytes = bytes;
	__sync_lock_test_and_set(&stash->state, STASH_FULL);
	return 1;
}

/*
 * Lets this packet overtake the waiting one. The kernel can only copy the current packet. So an
 * incoming packet takes the contents of the waiting one, is copied to the receive queue, gets its
 * own contents back, and continues.
 */
static int stash_release(struct stash *stash, struct __sk_buff *skb)
{
	__u32 bytes = skb->len;
	int result = TC_ACT_OK;

	if (bytes < ETH_HLEN || bytes > FRAME_MAX)
		return TC_ACT_OK;
	if (__sync_val_compare_and_swap(&stash->state, STASH_FULL, STASH_BUSY) != STASH_FULL)
		return TC_ACT_OK;
	if (goes_out) { /* send a copy of this packet now, then turn it into the waiting one */
		if (packet_repeat(skb) && frame_write(skb, stash->frame, stash->bytes))
			result = TC_ACT_SHOT;
	} else if (bpf_skb_load_bytes(skb, 0, stash->overtaker, bytes) == 0) {
		if (frame_write(skb, stash->frame, stash->bytes) == 0)
			packet_repeat(skb);
		if (frame_write(skb, stash->overtaker, bytes))
			result = TC_ACT_SHOT;
	}
	__sync_lock_test_and_set(&stash->state, STASH_EMPTY);
	return result;
}

SEC("tc")
int fault(struct __sk_buff *skb)
{
	struct fault_counts *count;
	struct stash *stash;
	__u32 zero = 0, udp;
	__u64 packet;
	int is_first;

	if (skb->mark == MARK_DONE) {
		skb->mark = 0;
		return TC_ACT_OK;
	}
	count = bpf_map_lookup_elem(&counts, &zero);
	stash = bpf_map_lookup_elem(&stashes, &zero);
	udp = udp_find(skb, &is_first);
	if (!count || !stash || (!udp && !(loses_all && skb->protocol == bpf_htons(ETH_P_IP))))
		return TC_ACT_OK;
	packet = __sync_fetch_and_add(&count->packets, 1);
	if (strikes(packet, DRAW_LOSS, loss_below)) {
		__sync_fetch_and_add(&count->lost, 1);
		return TC_ACT_SHOT;
	}
	if (!udp)
		return TC_ACT_OK;
	if (strikes(packet, DRAW_CORRUPT, corrupt_below) &&
	    payload_corrupt(skb, udp, is_first, packet))
		__sync_fetch_and_add(&count->corrupted, 1);
	if (strikes(packet, DRAW_DUP, dup_below) && packet_repeat(skb))
		__sync_fetch_and_add(&count->duplicated, 1);
	if (strikes(packet, DRAW_REORDER, reorder_below) && stash_fill(stash, skb, udp, is_first)) {
		__sync_fetch_and_add(&count->reordered, 1);
		return TC_ACT_STOLEN;
	}
	return stash->state == STASH_FULL ? stash_release(stash, skb) : TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
