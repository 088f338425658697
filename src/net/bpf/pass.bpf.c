/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* Passes every packet. A veth accepts frames sent by XDP only if it has an XDP program itself. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
