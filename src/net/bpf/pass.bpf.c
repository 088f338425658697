/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* Passes everything. A veth takes frames that a program sends only if it has a program itself. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
