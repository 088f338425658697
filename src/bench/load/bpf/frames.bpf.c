/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * A load of frames as in a NIC's driver: pages without a socket buffer. A veth with
 * a program would have to copy a socket buffer first. The kernel runs `emit` over
 * and over (BPF_F_TEST_XDP_LIVE_FRAMES), and the frames that it redirects arrive at
 * the veth's other end. `catch` takes the results when they come back.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bench/load/bpf/frame_template.h"

#define LOST_NS 10000000ull

const volatile struct frames_settings settings = { .children = 1 };
struct frames_state state;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FRAMES_CHILDREN);
	__type(key, __u32);
	__type(value, struct frames_template);
} templates SEC(".maps");

/* Checksum of each packet, in the order in which packets leave. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, __u64); /* the kernel's arrays have no smaller elements */
} checks SEC(".maps");

/* May one more packet be in flight? If nothing comes back for long, all are counted as lost. */
static __always_inline int has_room(void)
{
	volatile struct frames_state *shared = &state;
	__u64 done = shared->results * settings.children + state.lost;
	__u64 now;

	if (state.sent < done + settings.window) {
		state.blocked_since = 0;
		return 1;
	}
	now = bpf_ktime_get_ns();
	if (!state.blocked_since)
		state.blocked_since = now;
	else if (now - state.blocked_since > LOST_NS)
		state.lost = state.sent - shared->results * settings.children;
	return 0;
}

SEC("xdp")
int emit(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 nth = state.sent, position;
	__u32 block = FRAMES_BLOCK * settings.children, index = (__u32)nth;
	__u32 child = (__u32)(nth % block) / FRAMES_BLOCK;
	struct frames_template *template;
	struct wire_header *header = data + FRAMES_FRONT;
	__u64 *to = data + 2;
	__u64 *check;

	if (data + FRAMES_FRONT + WIRE_HEADER > end || !has_room())
		return XDP_DROP;
	position = state.first + nth / block * FRAMES_BLOCK + nth % FRAMES_BLOCK;
	template = bpf_map_lookup_elem(&templates, &child);
	check = bpf_map_lookup_elem(&checks, &index);
	if (!template || !check)
		return XDP_DROP;
	/* Pages come back with the content that others have left. */
	*(__u16 *)data = template->start;
	for (int i = 0; i < (int)(FRAMES_BYTES / 8); i++) {
		if ((void *)(to + i + 1) > end)
			break;
		to[i] = template->words[i];
	}
	header = data + FRAMES_FRONT;
	header->pos = (__u32)position;
	header->ack = position > state.behind ? (__u32)(position - state.behind) : 0;
	header->check = (__u32)*check;
	state.sent = nth + 1;
	return bpf_redirect(settings.interface, 0);
}

SEC("xdp")
int catch (struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct wire_header *header = data + FRAMES_FRONT;

	if (data + FRAMES_FRONT + WIRE_HEADER + 8 > end || header->magic != WIRE_MAGIC ||
	    header->type != WIRE_RESULT)
		return XDP_PASS;
	if (*(__u64 *)(header + 1) != state.sum)
		state.wrong++;
	state.results++;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
