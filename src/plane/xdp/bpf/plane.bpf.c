/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The aggregator before the network stack. DATA of a lane that is here is
 * checked, added to its cell and dropped; the packet that completes a cell
 * becomes the result and leaves for all children. Everything else passes on
 * untouched: other traffic, and all that the daemon answers.
 *
 * Two children's packets for one cell may be here on two cores at once: a
 * cell has a lock, held while one packet is judged and added. The daemon
 * takes the same lock for what comes by way of its sockets.
 *
 * The verifier walks every loop; two things keep that walk short. Loops have
 * constant ends, and lengths that a loop compares with are made unknown again
 * behind it (`hide`), so that what follows is not walked once for each.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "plane/xdp/bpf/shared.h"
#include "wire/check.h"

#define LOCK_TRIES 512
#define IP_FRAGMENT 0x3fff /* more to come, or not the first */
#define VLAN_TAGS 2
#define ALWAYS static __always_inline

/* Set by the daemon before the program is loaded. */
const volatile __u32 first_port = 0, ports = 0, payload_max = 0;

/* Never written, but only we know that. */
__u64 hidden_zero;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__type(value, struct xdp_lane);
} lanes SEC(".maps");

struct pool {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct xdp_cell)); /* and the payload: set before loading */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__array(values, struct pool);
} pools SEC(".maps");

struct fan {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__array(values, struct fan);
} fans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xdp_counts);
} counts SEC(".maps");

/* Of a result that leaves several times through one interface: which copy is next. */
struct copies {
	__u64 pos;
	__u32 slot, next;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copies);
} copying SEC(".maps");

ALWAYS __u32 hide(__u32 number)
{
	return number + (__u32)hidden_zero;
}

/* ---- frames ---- */

struct frame {
	__u32 at;    /* where our packet begins in the frame */
	__u32 bytes; /* of payload */
	__u32 port;
	__u8 l2, l3;
};

/*
 * Found anew after every loop: what a loop taught the verifier about the old
 * pointer would be another state for each turn of it.
 */
ALWAYS struct wire_header *frame_header(struct xdp_md *ctx, const struct frame *frame)
{
	struct wire_header *header = (void *)(long)ctx->data + (frame->at & 127);

	/* The compiler is not to reckon with it further, in ways that old verifiers do not follow. */
	__asm__("" : "+r"(header));
	return (void *)(header + 1) <= (void *)(long)ctx->data_end ? header : NULL;
}

/* Is this a packet of ours, with a whole header and as much payload as it says? */
ALWAYS int frame_parse(struct xdp_md *ctx, struct frame *frame)
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
	frame->l2 = hide(at);
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
	frame->l3 = hide(l3);
	/* One way on for all kinds of frame. */
	at = hide(at + l3) & 127;
	udp = data + at;
	if ((void *)(udp + 1) + WIRE_HEADER > end)
		return 0;
	frame->at = at + sizeof(*udp);
	frame->port = bpf_ntohs(udp->dest);
	frame->bytes = bpf_ntohs(udp->len);
	if (frame->bytes < sizeof(*udp) + WIRE_HEADER || frame->bytes % 8)
		return 0;
	frame->bytes -= sizeof(*udp) + WIRE_HEADER;
	return ((struct wire_header *)(udp + 1))->magic == WIRE_MAGIC;
}

/* ---- passes over a payload ---- */

/*
 * DO(i, v) with each word v of the packet's payload at index i, and the
 * checksum of header and words on the way. All of `n` words, or as many as
 * packet and cell have: the checksum is wrong then.
 */
#define WORD(DO, i, kind, a, b)             \
	do {                                \
		__u64 v = words[i];         \
		DO(i, v);                   \
		WIRE_CHECK_##kind(a, b, v); \
	} while (0)
#define FOUR(DO, i)                                        \
	do {                                               \
		WORD(DO, i, AB, check.a1, check.b1);       \
		WORD(DO, (i) + 1, CD, check.a0, check.b0); \
		WORD(DO, (i) + 2, CD, check.a1, check.b1); \
		WORD(DO, (i) + 3, AB, check.a0, check.b0); \
	} while (0)
/* May `many` words from i on be touched? */
#define HAVE(i, many)                                                  \
	((i) + (many) <= n && (void *)(words + (i) + (many)) <= end && \
	 ((i) + (many)) * 8 <= payload_max)
#define DEFINE_PASS(name, DO)                                                              \
	ALWAYS __u32 name(struct xdp_md *ctx, const struct frame *frame, wire_word *sums)  \
	{                                                                                  \
		struct wire_header *header = frame_header(ctx, frame);                     \
		wire_word *words = (wire_word *)(header + 1);                              \
		void *end = (void *)(long)ctx->data_end;                                   \
		struct wire_check check = WIRE_CHECK_START;                                \
		__u32 i = 0, n = hide(frame->bytes / 8);                                   \
                                                                                           \
		(void)sums;                                                                \
		if (!header)                                                               \
			return 0;                                                          \
		wire_check_header(&check, (wire_word *)header);                            \
		for (; i < WIRE_PAYLOAD_MAX / 8; i += 16) {                                \
			if (!HAVE(i, 16))                                                  \
				break;                                                     \
			FOUR(DO, i);                                                       \
			FOUR(DO, i + 4);                                                   \
			FOUR(DO, i + 8);                                                   \
			FOUR(DO, i + 12);                                                  \
		}                                                                          \
		for (int k = 0; k < 3 && HAVE(i, 4); k++, i += 4)                          \
			FOUR(DO, i);                                                       \
		if (HAVE(i, 1)) {                                                          \
			WORD(DO, i, AB, check.a1, check.b1);                               \
			if (HAVE(i + 1, 1)) {                                              \
				WORD(DO, i + 1, CD, check.a0, check.b0);                   \
				if (HAVE(i + 2, 1))                                        \
					WORD(DO, i + 2, CD, check.a1, check.b1);           \
			}                                                                  \
		}                                                                          \
		return wire_check_end(&check, WIRE_HEADER + (__u64)n * 8);                 \
	}

#define DO_NOTHING(i, v)
#define DO_ADD64(i, v) sums[i] += v
#define DO_COPY(i, v) sums[i] = v
#define DO_FILL(i, v) words[i] = v = sums[i]
DEFINE_PASS(pass_check, DO_NOTHING)
DEFINE_PASS(pass_add64, DO_ADD64)
DEFINE_PASS(pass_copy, DO_COPY)
DEFINE_PASS(pass_fill, DO_FILL) /* the other way: the sum into the packet */

#define COMBINE_CASE(op, type, expression)                                                 \
	case op:                                                                           \
		for (__u32 i = 0; i < WIRE_PAYLOAD_MAX / 8 && HAVE(i, 1); i++) {           \
			_Pragma("clang loop unroll(full)") for (__u32 k = 0;               \
			                                        k < 8 / sizeof(type); k++) \
			{                                                                  \
				type *at = (type *)(sums + i) + k;                         \
				type s = *at, x = ((const type *)(words + i))[k];          \
				*at = (expression);                                        \
			}                                                                  \
		}                                                                          \
		break;

ALWAYS void combine_words(struct xdp_md *ctx, const struct frame *frame, wire_word *sums)
{
	const struct wire_header *header = frame_header(ctx, frame);
	const wire_word *words = (const wire_word *)(header + 1);
	void *end = (void *)(long)ctx->data_end;
	__u32 n = hide(frame->bytes / 8);

	if (!header)
		return;
	switch (header->op) {
		COMBINE_OPS(COMBINE_CASE)
	}
}

/* Takes out what pass_add64 put in before the checksum was known. */
ALWAYS void undo_add64(struct xdp_md *ctx, const struct frame *frame, wire_word *sums)
{
	const struct wire_header *header = frame_header(ctx, frame);
	const wire_word *words = (const wire_word *)(header + 1);
	void *end = (void *)(long)ctx->data_end;
	__u32 n = hide(frame->bytes / 8);

	if (!header)
		return;
	for (__u32 i = 0; i < WIRE_PAYLOAD_MAX / 8 && HAVE(i, 1); i++)
		sums[i] -= words[i];
}

/* ---- sending ---- */

ALWAYS void put_route(void *head, const struct xdp_route *route, __u32 l2, __u32 l3, __u32 bytes)
{
	struct udphdr *udp = head + l2 + l3;

	__builtin_memcpy(head, route->head, l2 + l3 + sizeof(*udp));
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
}

/* Puts the route in front of our packet, which begins `at` bytes into the frame. */
ALWAYS int address(struct xdp_md *ctx, const struct xdp_route *route, __u32 at, __u32 bytes)
{
	__u32 head = route->l2 + route->l3 + sizeof(struct udphdr);
	void *data, *end;

	if (head != at && bpf_xdp_adjust_head(ctx, (int)at - (int)head))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + XDP_HEAD_MAX > end)
		return -1;
	switch (route->l2 << 8 | route->l3) {
	case 14 << 8 | 20:
		put_route(data, route, 14, 20, bytes);
		return 0;
	case 18 << 8 | 20:
		put_route(data, route, 18, 20, bytes);
		return 0;
	case 22 << 8 | 20:
		put_route(data, route, 22, 20, bytes);
		return 0;
	case 14 << 8 | 40:
		put_route(data, route, 14, 40, bytes);
		return 0;
	case 18 << 8 | 40:
		put_route(data, route, 18, 40, bytes);
		return 0;
	case 22 << 8 | 40:
		put_route(data, route, 22, 40, bytes);
		return 0;
	}
	return -1;
}

ALWAYS int send_to(struct xdp_md *ctx, const struct xdp_route *route, __u32 at, __u32 bytes)
{
	__u32 ifindex = route->ifindex;

	if (!ifindex || address(ctx, route, at, bytes))
		return XDP_DROP;
	return ifindex == ctx->ingress_ifindex ? XDP_TX : (int)bpf_redirect(ifindex, 0);
}

/* The packet that completed the cell becomes what leaves: a result, or DATA for a parent. */
ALWAYS int send_sum(struct xdp_md *ctx, struct frame *frame, struct xdp_lane *lane,
                    struct xdp_cell *cell, __u32 slot)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 bytes = WIRE_HEADER + frame->bytes, key = 0, route, check;
	struct xdp_counts *count = bpf_map_lookup_elem(&counts, &key);
	void *fan;

	if (!header)
		return XDP_DROP;
	header->flags = cell->state.shape;
	header->scale = cell->state.scale;
	header->ack = (__u32)lane->dense.low;
	if (lane->parent.active) {
		header->cookie = lane->parent.cookie;
		header->job = lane->parent.job;
		header->comm = lane->parent.comm;
		header->epoch = lane->parent.epoch;
		header->child = lane->parent.child;
	} else {
		header->type = WIRE_RESULT;
		header->child = WIRE_ALL;
	}
	check = pass_fill(ctx, frame, cell->sum);
	header = frame_header(ctx, frame);
	if (!header)
		return XDP_DROP;
	header->check = check;
	cell->state.sent_at = (__u32)(bpf_ktime_get_ns() / 1000);
	if (count) {
		count->results++;
		count->sends += lane->entries;
	}
	if (lane->parent.active)
		return send_to(ctx, &lane->parent.route, frame->at, bytes);
	if (cell->state.to != WIRE_ALL)
		return send_to(ctx, &lane->routes[cell->state.to & 63], frame->at, bytes);
	if (lane->entries == 1) {
		route = lane->entry[0];
		return route < XDP_ROUTES ? send_to(ctx, &lane->routes[route], frame->at, bytes)
		                          : XDP_DROP;
	}
	fan = bpf_map_lookup_elem(&fans, &slot);
	if (!lane->entries || !fan)
		return XDP_DROP;
	return (int)bpf_redirect_map(fan, 0, BPF_F_BROADCAST);
}

/* The slot of the lane's fan that a copy going out through this interface is for. */
ALWAYS int fan_slot(struct xdp_lane *lane, __u32 slot, __u64 pos, __u32 ifindex)
{
	__u32 key = 0, first = 0;
	struct copies *copies = NULL;

	if (lane->shared_ports) {
		copies = bpf_map_lookup_elem(&copying, &key);
		if (!copies)
			return -1;
		if (copies->slot == slot && copies->pos == pos)
			first = copies->next;
		copies->slot = slot;
		copies->pos = pos;
	}
	for (__u32 i = 0; i < XDP_ROUTES; i++) {
		__u32 route;

		if (i < first)
			continue;
		if (i >= lane->entries)
			break;
		route = lane->entry[i];
		if (route >= XDP_ROUTES || lane->routes[route].ifindex != ifindex)
			continue;
		if (copies)
			copies->next = i + 1;
		return (int)route;
	}
	return -1;
}

/* Each copy of a result, just before it leaves. */
SEC("xdp/devmap")
int fan_out(struct xdp_md *ctx)
{
	struct wire_header *header;
	struct frame frame;
	struct xdp_lane *lane;
	__u32 slot;
	int route;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_DROP;
	slot = header->comm * WIRE_LANES_MAX + wire_lane(header);
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane)
		return XDP_DROP;
	route = fan_slot(lane, slot, header->pos, ctx->egress_ifindex);
	if (route < 0 || route >= (int)XDP_ROUTES ||
	    address(ctx, &lane->routes[route], frame.at, WIRE_HEADER + frame.bytes))
		return XDP_DROP;
	return XDP_PASS;
}

/* ---- receiving ---- */

/* A full barrier at both ends: what one core wrote into the cell, the next one sees. */
ALWAYS int cell_lock(struct xdp_cell *cell)
{
	for (int i = 0; i < LOCK_TRIES; i++)
		if (__sync_val_compare_and_swap(&cell->state.lock, 0, 1) == 0)
			return 1;
	return 0;
}

ALWAYS void cell_unlock(struct xdp_cell *cell)
{
	__sync_lock_test_and_set(&cell->state.lock, 0);
}

/*
 * Judges, checks and adds, in one pass where that is safe: a sum of 64-bit
 * words can be undone, and a cell that nobody needs any more may be written.
 * A verdict, or DENSE_VERDICTS_END for a packet whose checksum is wrong.
 */
ALWAYS __u32 take(struct xdp_md *ctx, struct xdp_lane *lane, struct xdp_cell *cell,
                  const struct frame *frame)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 how, check;

	if (!header)
		return DENSE_VERDICTS_END;
	how = dense_judge(&lane->dense, &cell->state, header, frame->bytes);
	if (how == DENSE_ADDED && header->op == WIRE_ADD64)
		check = pass_add64(ctx, frame, cell->sum);
	else if (how == DENSE_FRESH)
		check = pass_copy(ctx, frame, cell->sum);
	else
		check = pass_check(ctx, frame, NULL);
	header = frame_header(ctx, frame);
	if (!header || check != header->check) {
		if (header && how == DENSE_ADDED && header->op == WIRE_ADD64)
			undo_add64(ctx, frame, cell->sum);
		return DENSE_VERDICTS_END;
	}
	if (how == DENSE_MISMATCH)
		return how;
	dense_ack(&lane->dense, header->child, header->ack);
	if (how == DENSE_AHEAD) {
		dense_update_low(&lane->dense);
		how = dense_judge(&lane->dense, &cell->state, header, frame->bytes);
		if (how == DENSE_FRESH)
			pass_copy(ctx, frame, cell->sum);
	}
	if (how == DENSE_HIGHER)
		pass_copy(ctx, frame, cell->sum);
	else if (how == DENSE_ADDED && header->op != WIRE_ADD64)
		combine_words(ctx, frame, cell->sum);
	else if (how != DENSE_ADDED && how != DENSE_FRESH)
		return how;
	header = frame_header(ctx, frame);
	if (!header)
		return DENSE_VERDICTS_END;
	return dense_enter(&lane->dense, &cell->state, header, frame->bytes, how);
}

/* What a parser in user space finds wrong in a fragment's header. */
ALWAYS int is_sound(const struct wire_header *header)
{
	return header->op < WIRE_OPS_END && header->child < WIRE_CHILDREN_MAX &&
	       (header->from < WIRE_CHILDREN_MAX || header->from == WIRE_ALL) &&
	       (header->to < WIRE_CHILDREN_MAX || header->to == WIRE_ALL);
}

/* Where a report came from; the daemon, which the report goes on to, decides if that is right. */
ALWAYS void note_seen(struct xdp_md *ctx, struct xdp_lane *lane, const struct frame *frame,
                      __u8 child)
{
	struct xdp_seen *seen = &lane->seen[child & 63];
	void *data = (void *)(long)ctx->data;

	if (data + XDP_HEAD_MAX > (void *)(long)ctx->data_end)
		return;
	seen->ifindex = ctx->ingress_ifindex;
	seen->l2 = frame->l2;
	seen->l3 = frame->l3;
	__builtin_memcpy(seen->head, data, XDP_HEAD_MAX);
}

ALWAYS int aggregate_frame(struct xdp_md *ctx, int again)
{
	struct wire_header *header;
	struct frame frame;
	struct xdp_lane *lane;
	struct xdp_cell *cell;
	struct xdp_counts *count;
	__u32 slot, index, verdict, key = 0;
	void *pool;
	__u8 child;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_PASS;
	slot = frame.port - first_port;
	if (slot >= ports || header->comm >= XDP_COMMS || wire_lane(header) != slot)
		return XDP_PASS;
	slot += header->comm * WIRE_LANES_MAX;
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane || !lane->active || lane->cookie != header->cookie ||
	    lane->job != header->job || lane->epoch != header->epoch)
		return XDP_PASS;
	child = header->child;
	if (header->type == WIRE_REPORT)
		note_seen(ctx, lane, &frame, child);
	if (header->type != WIRE_DATA || !is_sound(header) || frame.bytes > payload_max ||
	    frame.bytes > lane->dense.payload || !(lane->dense.members & dense_bit(child)) ||
	    !lane->dense.cells)
		return XDP_PASS;

	index = dense_index(&lane->dense, wire_position(header));
	count = bpf_map_lookup_elem(&counts, &key);
	pool = bpf_map_lookup_elem(&pools, &slot);
	if (!pool || !count)
		return XDP_PASS;
	cell = bpf_map_lookup_elem(pool, &index);
	if (!cell)
		return XDP_PASS;
	if (!cell_lock(cell)) {
		count->busy++;
		return XDP_PASS;
	}
	if (again) /* for measuring: the same packet as if it were new */
		cell->state.arrived = 0;
	verdict = take(ctx, lane, cell, &frame);
	cell_unlock(cell);
	if (verdict == DENSE_MISMATCH)
		return XDP_PASS; /* the daemon finds the words for it */

	count->packets++;
	count->bytes += WIRE_HEADER + frame.bytes;
	if (verdict >= DENSE_VERDICTS_END) {
		count->corrupted++;
		return XDP_DROP;
	}
	count->verdicts[verdict]++;
	if (verdict == DENSE_ADDED || verdict == DENSE_COMPLETE)
		count->payload += frame.bytes;
	if (verdict != DENSE_COMPLETE)
		return XDP_DROP;
	__sync_fetch_and_add(&lane->last[child & 63], 1);
	return send_sum(ctx, &frame, lane, cell, slot);
}

SEC("xdp")
int aggregate(struct xdp_md *ctx)
{
	return aggregate_frame(ctx, 0);
}

/* Never attached: adds one packet as often as it is run, so that a benchmark can time it. */
SEC("xdp")
int aggregate_again(struct xdp_md *ctx)
{
	return aggregate_frame(ctx, 1);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
