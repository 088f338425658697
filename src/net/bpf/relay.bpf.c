/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* The programs of net/relay.h. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define LINKS_MAX 512

/* Maps the interface where a packet arrives to the one where it leaves, as an XDP frame. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, LINKS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} ways SEC(".maps");

/* Maps the interface where a packet arrives to the one where it leaves through a queue. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LINKS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} queues SEC(".maps");

SEC("xdp")
int relay(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&ways, ctx->ingress_ifindex, 0);
}

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

SEC("tc")
int queue(struct __sk_buff *skb)
{
	__u32 in = skb->ifindex, *way = bpf_map_lookup_elem(&queues, &in);

	return way ? (int)bpf_redirect(*way, 0) : TC_ACT_SHOT;
}

/* Marks a packet's checksum as verified, as a NIC does. */
SEC("tc")
int trust(struct __sk_buff *skb)
{
	bpf_csum_level(skb, BPF_CSUM_LEVEL_INC);
	return TC_ACT_UNSPEC; /* continue with the next program */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
