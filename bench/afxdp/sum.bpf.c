/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's side: packets added into the pool right here, or handed to an AF_XDP socket. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "bench.h"

struct payload {
	__u32 word[BENCH_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BENCH_CELLS);
	__type(key, __u32);
	__type(value, struct payload);
} pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

const volatile struct bench_knobs knobs = { .cells = BENCH_CELLS };
struct bench_state state;

static __always_inline void *datagram(struct xdp_md *context)
{
	void *data = (void *)(long)context->data;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct udphdr *udp = (void *)(ip + 1);
	struct wire_header *header = (void *)(udp + 1);

	if (data + BENCH_FRAME > (void *)(long)context->data_end)
		return 0;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != 17 || ip->ihl != 5 ||
	    udp->dest != bpf_htons(BENCH_PORT) || header->magic != WIRE_MAGIC)
		return 0;
	return header;
}

static __always_inline struct payload *cell_of(const struct wire_header *header)
{
	__u32 index = header->pos % knobs.cells;

	return bpf_map_lookup_elem(&pool, &index);
}

SEC("xdp")
int add_words(struct xdp_md *context)
{
	struct wire_header *header = datagram(context);
	struct payload *sum, *in;

	if (!header)
		return XDP_PASS;
	in = (void *)(header + 1);
	sum = cell_of(header);
	if (!sum)
		return XDP_PASS;
#pragma clang loop unroll(full)
	for (int i = 0; i < (int)BENCH_WORDS; i++)
		sum->word[i] += in->word[i];
	state.received++;
	return XDP_DROP;
}

/* Two sums in a 64-bit word: the top bits are kept out of the carry. */
SEC("xdp")
int add_pairs(struct xdp_md *context)
{
	struct wire_header *header = datagram(context);
	const __u64 top = 0x8000000080000000ull;
	__u64 *in, *sum;

	if (!header)
		return XDP_PASS;
	in = (void *)(header + 1);
	sum = (void *)cell_of(header);
	if (!sum)
		return XDP_PASS;
#pragma clang loop unroll(full)
	for (int i = 0; i < (int)BENCH_WORDS / 2; i++)
		sum[i] = ((sum[i] & ~top) + (in[i] & ~top)) ^ ((sum[i] ^ in[i]) & top);
	state.received++;
	return XDP_DROP;
}

/* What it costs to get a packet this far. */
SEC("xdp")
int add_nothing(struct xdp_md *context)
{
	if (!datagram(context))
		return XDP_PASS;
	state.received++;
	return XDP_DROP;
}

SEC("xdp")
int pass(struct xdp_md *context)
{
	(void)context;
	return XDP_PASS;
}

/* May one more be under way? What is silent for 5 ms is lost. */
static __always_inline int has_room(void)
{
	volatile struct bench_state *shared = &state;
	__u64 now;

	if (!knobs.window || state.sent < shared->arrived + state.lost + knobs.window) {
		state.blocked_since = 0;
		return 1;
	}
	now = bpf_ktime_get_ns();
	if (!state.blocked_since)
		state.blocked_since = now;
	else if (now - state.blocked_since > 5000000)
		state.lost = state.sent - shared->arrived;
	return 0;
}

/* The sender of send_frames.c: a burst when it is due. */
SEC("xdp")
int emit(struct xdp_md *context)
{
	struct wire_header *header = datagram(context);
	struct udphdr *udp;
	struct iphdr *ip;

	if (!header || !has_room())
		return XDP_DROP;
	if (knobs.gap_ns) {
		if (!state.burst) {
			__u64 now = bpf_ktime_get_ns();

			if (now < state.due)
				return XDP_DROP;
			state.due = (state.due ? state.due : now) + knobs.gap_ns;
			state.burst = knobs.burst;
		}
		state.burst--;
	}
	/* Pages come back as the receiver's GRO has left them. */
	udp = (void *)header - sizeof(*udp);
	ip = (void *)udp - sizeof(*ip);
	ip->tot_len = knobs.ip_length;
	ip->check = knobs.ip_check;
	udp->len = knobs.udp_length;
	udp->check = knobs.udp_check;
	header->pos = (__u32)state.sent++;
	header->ack = ~header->pos;
	return bpf_redirect(knobs.interface, 0);
}

SEC("xdp")
int to_socket(struct xdp_md *context)
{
	if (!datagram(context))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
