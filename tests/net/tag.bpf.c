/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* tag: a VLAN for kernels without 8021q. Two tc programs add and remove the tag. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("tc_on")
int tag_on(struct __sk_buff *skb)
{
	return bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 7) ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("tc_off")
int tag_off(struct __sk_buff *skb)
{
	if (!skb->vlan_present || (skb->vlan_tci & 0xfff) != 7)
		return TC_ACT_SHOT; /* only tagged packets are valid on this link */
	return bpf_skb_vlan_pop(skb) ? TC_ACT_SHOT : TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
