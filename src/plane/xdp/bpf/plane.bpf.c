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
 * The verifier walks every loop, and what follows it once for each way out. So
 * the ways part where loops do: functions that are not static are walked by
 * themselves, once. They are given numbers and find the rest anew. And `hide`
 * makes known numbers unknown again.
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
#define COPYING 64 /* a power of two */
#define LINE 64    /* bytes of a cache's line */
#define LONG 1024  /* bytes of a fragment, and cells of a pool: */
#define MANY 1024  /* from here on it is worth the while to fetch lines together */
#define ALWAYS static __always_inline

/* Beside the engine's verdicts. */
enum { CORRUPTED = XDP_CORRUPTED, NOT_HERE, TO_UNDO };

/* Set by the daemon before the program is loaded. */
const volatile struct xdp_settings settings = { 0 };

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

/* Lanes by what their parents call them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_LANES);
	__type(key, struct xdp_uplink);
	__type(value, __u32);
} uplinks SEC(".maps");

/* Of a result that leaves several times through one interface: which copy is next. */
struct copies {
	__u64 pos;
	__u32 slot, next;
	__u32 ifindex, cookie; /* half of the job's: slots are used again */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COPYING);
	__type(key, __u32);
	__type(value, struct copies);
} copying SEC(".maps"); /* by interface: what the kernel sends in bulk through one may mix with
                           another's */

/* The compiler knows nothing of it: it keeps checks that the verifier asks for. */
ALWAYS __u32 opaque(__u32 number)
{
	__asm__ volatile("" : "+r"(number));
	return number;
}

/* The verifier knows nothing of it either: it does not part ways by it. */
ALWAYS __u32 hide(__u32 number)
{
	return opaque(number + (__u32)hidden_zero);
}

/* Without a loop, and without an instruction that BPF has not. */
ALWAYS __u32 popcount(__u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555ull;
	bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return bits * 0x0101010101010101ull >> 56;
}

#include "plane/xdp/bpf/passes.h"

/* ---- frames ---- */

struct frame {
	__u32 at;    /* where our packet begins in the frame */
	__u32 bytes; /* of payload */
	__u32 port;
};

/*
 * Found anew after every loop: what a loop taught the verifier about the old
 * pointer would be another state for each turn of it.
 */
ALWAYS struct wire_header *frame_header(struct xdp_md *ctx, const struct frame *frame)
{
	struct wire_header *header = (void *)(long)ctx->data + (frame->at & 127);

	/* The compiler is not to reckon with it further, in ways that old verifiers do not follow.
	 */
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
	/* One way on for all kinds of frame. */
	at = hide(at + l3) & 127;
	udp = data + at;
	if ((void *)(udp + 1) + WIRE_HEADER > end)
		return 0;
	frame->at = at + sizeof(*udp);
	frame->port = bpf_ntohs(udp->dest);
	frame->bytes = bpf_ntohs(udp->len);
	if (frame->bytes < sizeof(*udp) + WIRE_HEADER || frame->bytes % 8 ||
	    at + frame->bytes > ctx->data_end - ctx->data)
		return 0;
	frame->bytes -= sizeof(*udp) + WIRE_HEADER;
	return ((struct wire_header *)(udp + 1))->magic == WIRE_MAGIC;
}

/* ---- sending ---- */

typedef __u32 __attribute__((may_alias)) half_word;
typedef __u16 __attribute__((may_alias)) quarter_word;

/*
 * The front of a frame, in words: what may lie at any address the compiler
 * would copy byte by byte. How many bytes, is known when it is compiled.
 */
ALWAYS void copy_front(void *to, const void *from, __u32 bytes)
{
	_Pragma("clang loop unroll(full)") for (__u32 i = 0; i + 8 <= bytes; i += 8)
	{
		*(wire_word *)(to + i) = *(const wire_word *)(from + i);
	}
	if (bytes & 4)
		*(half_word *)(to + (bytes & ~7u)) = *(const half_word *)(from + (bytes & ~7u));
	if (bytes & 2)
		*(quarter_word *)(to + (bytes & ~3u)) =
			*(const quarter_word *)(from + (bytes & ~3u));
}

ALWAYS void put_route(void *head, const struct xdp_route *route, __u32 l2, __u32 l3, __u32 bytes)
{
	struct udphdr *udp = head + l2 + l3;

	copy_front(head, route->head, l2 + l3 + sizeof(*udp));
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

/* The route of a copy that goes out through this interface; XDP_ROUTES: it has none. */
__noinline int fan_route(__u32 slot, __u64 pos, __u32 ifindex)
{
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);
	__u32 key = ifindex & (COPYING - 1), first = 0;
	struct copies *copies = NULL;

	if (!lane)
		return XDP_ROUTES;
	if (lane->shared_ports) {
		copies = bpf_map_lookup_elem(&copying, &key);
		if (!copies)
			return XDP_ROUTES;
		/* Interfaces are served one after the other, in whatever order. */
		if (copies->slot == slot && copies->pos == pos && copies->ifindex == ifindex &&
		    copies->cookie == (__u32)lane->cookie)
			first = copies->next;
		copies->slot = slot;
		copies->ifindex = ifindex;
		copies->cookie = (__u32)lane->cookie;
		copies->pos = pos;
	}
	for (__u32 i = 0; i < XDP_ROUTES; i++) {
		/* In one, or the verifier would part ways by what it learns of `first`. */
		__u32 is_other = (lane->entry_port[i] ^ ifindex) | (i - first) >> 31;

		if (i >= lane->entries)
			break;
		if (opaque(is_other))
			continue;
		if (copies)
			copies->next = i + 1;
		return lane->entry[i];
	}
	return XDP_ROUTES;
}

/* Each copy of a result, just before it leaves. */
SEC("xdp/devmap")
int fan_out(struct xdp_md *ctx)
{
	struct wire_header *header;
	struct frame frame;
	struct xdp_lane *lane;
	__u32 slot, route;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_DROP;
	slot = header->comm * WIRE_LANES_MAX + wire_lane(header);
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane)
		return XDP_DROP;
	route = (__u32)fan_route(slot, header->pos, ctx->egress_ifindex);
	if (route >= XDP_ROUTES ||
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
 * Reads a word of each cache line of the sum, to no end: in a large pool they
 * are all missing, and are fetched together now instead of one by one later.
 * Before the lock, which waits for all that comes before it.
 */
ALWAYS void cell_fetch(const struct xdp_lane *lane, const struct xdp_cell *cell, __u32 bytes)
{
	const volatile __u64 *words = (const volatile __u64 *)cell;
	__u32 room = settings.payload;

	if (bytes < LONG || lane->dense.cells < MANY)
		return;
	/* `room` is known when the program is loaded: the questions are not in it then. */
	_Pragma("clang loop unroll(full)") for (__u32 at = LINE; at < XDP_PAYLOAD_MAX; at += LINE)
	{
		if (at <= room)
			(void)words[at / 8];
	}
}

/* The cell of a fragment, with the lane that it belongs to. */
struct place {
	struct xdp_lane *lane;
	struct xdp_cell *cell;
};

ALWAYS int find_place(struct place *place, __u32 slot, __u32 index)
{
	void *pool = bpf_map_lookup_elem(&pools, &slot);

	place->lane = bpf_map_lookup_elem(&lanes, &slot);
	place->cell = pool ? bpf_map_lookup_elem(pool, &index) : NULL;
	return place->lane && place->cell;
}

/* ---- rings: the checksum of a sum, from those of its parts ---- */

ALWAYS __u64 ring_tag(const struct wire_header *header)
{
	return wire_position(header) << 16 | header->scale;
}

/* The ring is that of this packet alone. */
ALWAYS void ring_begin(struct xdp_cell *cell, const struct wire_header *header)
{
	cell->ring_tag = ring_tag(header);
	cell->ring_of = dense_bit(header->child);
}

/* Is it that of all that is in the sum? The daemon knows nothing of rings. */
ALWAYS int ring_is_whole(const struct xdp_cell *cell, const struct wire_header *header)
{
	return cell->ring_tag == ring_tag(header) && cell->ring_of == cell->state.arrived;
}

/*
 * Judges, checks and adds in one pass, where that is safe: a sum of 64-bit
 * words can be undone, and a cell that nobody needs any more may be written.
 * A verdict; NOT_HERE: it takes a longer way; TO_UNDO: it was corrupted, and is
 * in the sum; CORRUPTED.
 */
static __noinline __u32 take(struct wire_header *header, void *end, struct xdp_lane *lane,
                             struct xdp_cell *cell, __u32 bytes)
{
	__u32 how = dense_judge(&lane->dense, &cell->state, header, bytes);
	__u32 check;

	if (how == DENSE_ADDED && header->op == WIRE_ADD64)
		check = pass_add64(header, end, cell, bytes);
	else if (how == DENSE_FRESH)
		check = pass_copy(header, end, cell, bytes);
	else
		return NOT_HERE;
	if (check != header->check)
		return how == DENSE_ADDED ? TO_UNDO : CORRUPTED;
	if (how == DENSE_FRESH)
		ring_begin(cell, header);
	else if (ring_is_whole(cell, header))
		cell->ring_of |= dense_bit(header->child);
	dense_ack(&lane->dense, header->child, header->ack);
	return dense_enter(&lane->dense, &cell->state, header, bytes, how);
}

/* ---- the longer way: each loop a function of its own ---- */

/* What the checksum of the packet has to be. */
__noinline int checksum(struct xdp_md *ctx, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at };
	struct wire_header *header = frame_header(ctx, &frame);
	void *end = (void *)(long)ctx->data_end;

	return header ? (int)pass_check(header, end, NULL, bytes) : 0;
}

__noinline int undo_words(struct xdp_md *ctx, __u32 slot, __u32 index, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at };
	struct wire_header *header = frame_header(ctx, &frame);
	void *end = (void *)(long)ctx->data_end;
	struct place place;

	if (header && find_place(&place, slot, index))
		undo_add64(header, end, place.cell, bytes);
	return 0;
}

__noinline int copy_words(struct xdp_md *ctx, __u32 slot, __u32 index, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at };
	struct wire_header *header = frame_header(ctx, &frame);
	void *end = (void *)(long)ctx->data_end;
	struct place place;

	if (!header || !find_place(&place, slot, index))
		return 0;
	pass_copy(header, end, place.cell, bytes);
	ring_begin(place.cell, header);
	return 0;
}

__noinline int combine_words(struct xdp_md *ctx, __u32 slot, __u32 index, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	const struct wire_header *header = frame_header(ctx, &frame);
	const wire_word *words = (const wire_word *)(header + 1);
	void *end = (void *)(long)ctx->data_end;
	__u32 left = opaque(bytes / 8);
	struct place place;
	wire_word *sums;

	if (!header || left > settings.payload / 8 || !find_place(&place, slot, index))
		return 0;
	sums = place.cell->sum;
	switch (header->op) {
		COMBINE_OPS(COMBINE_CASE)
	}
	return 0;
}

__noinline int update_low(__u32 slot)
{
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);

	if (lane)
		dense_update_low(&lane->dense);
	return 0;
}

/* First checked, then judged by what it tells us, then combined. */
ALWAYS __u32 take_checked(struct xdp_md *ctx, const struct frame *frame, const struct place *place,
                          __u32 slot, __u32 index)
{
	struct dense_lane *dense = &place->lane->dense;
	__u32 how, check = (__u32)checksum(ctx, frame->at, frame->bytes);
	struct wire_header *header = frame_header(ctx, frame);

	if (!header || check != header->check)
		return CORRUPTED;
	how = dense_judge(dense, &place->cell->state, header, frame->bytes);
	if (how == DENSE_STRANGER || how == DENSE_MISMATCH)
		return how;
	dense_ack(dense, header->child, header->ack);
	if (how == DENSE_AHEAD) {
		update_low(slot);
		header = frame_header(ctx, frame);
		if (!header)
			return CORRUPTED;
		how = dense_judge(dense, &place->cell->state, header, frame->bytes);
	}
	if (how == DENSE_FRESH || how == DENSE_HIGHER)
		copy_words(ctx, slot, index, frame->at, frame->bytes);
	else if (how == DENSE_ADDED)
		combine_words(ctx, slot, index, frame->at, frame->bytes);
	else
		return how;
	header = frame_header(ctx, frame);
	return header ? dense_enter(dense, &place->cell->state, header, frame->bytes, how)
	              : CORRUPTED;
}

/*
 * Puts the sum into the packet that was the last of it, and the checksum of
 * both. The only part of a sum is there already.
 */
ALWAYS int fill(struct xdp_md *ctx, struct xdp_cell *cell, const struct frame *frame)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 bytes = opaque(frame->bytes), check;
	int whole;

	if (!header || bytes > settings.payload)
		return 0;
	whole = ring_is_whole(cell, header);
	if ((int)bytes >= 8 && !(whole && popcount(cell->state.arrived) == 1) &&
	    bpf_xdp_store_bytes(ctx, (frame->at & 127) + WIRE_HEADER, cell->sum, bytes))
		return 0;
	check = whole ? 0 : (__u32)checksum(ctx, frame->at, bytes);
	header = frame_header(ctx, frame);
	if (!header)
		return 0;
	if (whole)
		check = wire_check_end(cell->ring, (wire_word *)header, WIRE_HEADER + (__u64)bytes);
	header->check = check;
	return 1;
}

/* What a sum has become that has got its last part. */
enum made { MADE_NOTHING, MADE_RESULT, MADE_DATA, MADE_LEFT };

/* May it go up from here? Then it is under way. Else the daemon is to send it. */
ALWAYS int raise(struct xdp_lane *lane, struct xdp_cell *cell)
{
	struct xdp_parent *parent = &lane->parent;
	__u64 end = cell->state.position + 1, sent = parent->sent;
	int may = parent->active && parent->launched < parent->allowed;

	cell->state.raised_at = (__u32)(bpf_ktime_get_ns() / 1000);
	cell->state.queued = may ? UPLINK_RAISED : UPLINK_LEFT;
	if (!may)
		return 0;
	__sync_fetch_and_add(&parent->launched, 1);
	if (end > sent) /* who is overtaken leaves it to the next */
		__sync_val_compare_and_swap(&parent->sent, sent, end);
	parent->told = lane->dense.settled;
	return 1;
}

/*
 * The packet that was the last of a sum becomes what leaves: the result, or
 * DATA for the parent. With the lock: a cell that is not complete may be
 * emptied by another core as soon as it is free.
 */
static __noinline int make(struct xdp_md *ctx, struct xdp_lane *lane, struct xdp_cell *cell,
                           const struct frame *frame, __u32 verdict)
{
	struct wire_header *header = frame_header(ctx, frame);
	const struct xdp_parent *parent = &lane->parent;
	enum made made = MADE_RESULT;

	if (!header)
		return MADE_NOTHING;
	if (verdict == DENSE_SUMMED) {
		if (!raise(lane, cell))
			return MADE_LEFT;
		made = MADE_DATA;
		header->cookie = parent->cookie;
		header->job = parent->job;
		header->comm = parent->comm;
		header->epoch = parent->epoch;
		header->child = parent->child;
		header->ack = (__u32)lane->dense.settled;
	} else {
		cell->state.sent_at = (__u32)(bpf_ktime_get_ns() / 1000);
		header->type = WIRE_RESULT;
		header->child = WIRE_ALL;
		header->ack = (__u32)lane->dense.low;
	}
	header->flags = cell->state.shape;
	header->scale = cell->state.scale;
	return fill(ctx, cell, frame) ? made : MADE_NOTHING;
}

/* A result leaves for the children that it is for. */
static __noinline int send_down(struct xdp_md *ctx, struct xdp_lane *lane,
                                const struct frame *frame, __u32 slot, __u8 to)
{
	__u32 bytes = WIRE_HEADER + frame->bytes, route;
	void *fan;

	if (to != WIRE_ALL) {
		/* The child that the rank comes by: the number of its one bit. */
		route = popcount(lane->dense.by_rank[to & 63] - 1);
		return route < WIRE_CHILDREN_MAX
		               ? send_to(ctx, &lane->routes[route], frame->at, bytes)
		               : XDP_DROP;
	}
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

ALWAYS void count_result(struct xdp_counts *count, const struct xdp_lane *lane, __u8 to)
{
	count->results++;
	count->sends += to != WIRE_ALL ? 1 : lane->entries;
}

/* One rank, or all. One more than a rank's number; WIRE_ALL becomes 0. */
ALWAYS int is_rank(__u8 rank)
{
	return (__u8)(rank + 1) <= WIRE_CHILDREN_MAX;
}

/* What a parser in user space finds wrong in a fragment's header. */
ALWAYS int is_sound(const struct wire_header *header)
{
	return header->op < WIRE_OPS_END && header->child < WIRE_CHILDREN_MAX &&
	       is_rank(header->from) && is_rank(header->to);
}

/*
 * Where a report came from, or a status; the daemon, which it goes on to,
 * decides if that is right.
 */
ALWAYS void note_seen(struct xdp_md *ctx, struct xdp_seen *seen, const struct frame *frame)
{
	void *data = (void *)(long)ctx->data;

	if (data + XDP_HEAD_MAX > (void *)(long)ctx->data_end)
		return;
	seen->ifindex = ctx->ingress_ifindex;
	seen->at = frame->at;
	copy_front(seen->head, data, XDP_HEAD_MAX);
}

/* ---- from the parent ---- */

/*
 * Is the frame for us, and not on its way through a switch to another child of
 * the same parent, or for all who hear a group?
 */
ALWAYS int is_for_us(struct xdp_md *ctx, const struct xdp_parent *parent, __u32 at)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 *before_udp = data + ((at - 16) & 127);

	if (data + 8 > end || (void *)(before_udp + 1) > end)
		return 0;
	return parent->active && (*(__u64 *)data & 0xffffffffffffull) == parent->mac &&
	       *before_udp == parent->address;
}

/* A result that was found intact, into its cell. DENSE_COMPLETE: it is there now. */
ALWAYS __u32 lower(struct xdp_md *ctx, struct xdp_lane *lane, struct xdp_cell *cell,
                   const struct frame *frame)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 bytes = opaque(frame->bytes), how;

	if (!header || bytes > settings.payload)
		return CORRUPTED;
	uplink_low(&lane->dense, wire_widen(header->ack, lane->dense.above));
	how = uplink_judge(&lane->dense, &cell->state, header, bytes);
	if (how != DENSE_FRESH && how != DENSE_ADDED)
		return how;
	cell->ring_of = 0; /* it is no sum of ours any more */
	if ((int)bytes >= 8 &&
	    bpf_xdp_load_bytes(ctx, (frame->at & 127) + WIRE_HEADER, cell->sum, bytes))
		return CORRUPTED;
	header = frame_header(ctx, frame);
	if (!header)
		return CORRUPTED;
	if (how == DENSE_ADDED && cell->state.queued == UPLINK_RAISED)
		__sync_fetch_and_add(&lane->parent.heard, 1);
	uplink_enter(&cell->state, header, bytes, how);
	cell->state.sent_at = (__u32)(bpf_ktime_get_ns() / 1000);
	return DENSE_COMPLETE;
}

/* It becomes ours: as the daemon would send it, with the checksum that the payload's ring gives. */
ALWAYS int make_ours(struct xdp_md *ctx, const struct xdp_lane *lane, const struct frame *frame,
                     __u32 comm, const struct wire_check *ring)
{
	struct wire_header *header = frame_header(ctx, frame);

	if (!header)
		return 0;
	header->flags &= (__u8)~WIRE_RESENT;
	header->cookie = lane->cookie;
	header->job = lane->job;
	header->comm = comm;
	header->epoch = lane->epoch;
	header->child = WIRE_ALL;
	header->ack = (__u32)lane->dense.low;
	header->check =
		wire_check_end(*ring, (wire_word *)header, WIRE_HEADER + (__u64)frame->bytes);
	return 1;
}

/*
 * What is of no communicator of ours may be of one above: its results go on to
 * our children, and its status shows the way there. Walked by itself, like
 * all functions that are not static.
 */
__noinline int from_parent(struct xdp_md *ctx, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	struct wire_header *header = frame_header(ctx, &frame);
	struct xdp_uplink uplink;
	struct xdp_counts *count;
	struct wire_check ring;
	struct place place;
	__u32 *found, slot, index, verdict, key = 0;
	struct xdp_parent *parent;
	__u8 to;

	if (!header || (header->type != WIRE_RESULT && header->type != WIRE_STATUS))
		return XDP_PASS;
	uplink.cookie = header->cookie;
	uplink.lane = wire_lane(header);
	found = bpf_map_lookup_elem(&uplinks, &uplink);
	if (!found)
		return XDP_PASS;
	slot = *found;
	place.lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!place.lane)
		return XDP_PASS;
	parent = &place.lane->parent;
	if (parent->cookie != header->cookie || parent->job != header->job ||
	    parent->comm != header->comm || parent->epoch != header->epoch)
		return XDP_PASS;
	if (header->type == WIRE_STATUS && header->child == parent->child)
		note_seen(ctx, &parent->seen, &frame);
	to = header->to;
	if (header->type != WIRE_RESULT || !place.lane->active || !place.lane->entries ||
	    header->op >= WIRE_OPS_END || header->child != WIRE_ALL || !is_rank(header->from) ||
	    !is_rank(to) || bytes > settings.payload || !is_for_us(ctx, parent, at))
		return XDP_PASS;
	count = bpf_map_lookup_elem(&counts, &key);
	if (!count)
		return XDP_PASS;
	if (pass_weigh(header, (void *)(long)ctx->data_end, &ring, bytes) != header->check) {
		count->verdicts[CORRUPTED]++;
		return XDP_PASS; /* or several that were joined */
	}
	header = frame_header(ctx, &frame);
	if (!header)
		return XDP_PASS;
	index = dense_index(&place.lane->dense, wire_position(header));
	if (!find_place(&place, slot, index))
		return XDP_PASS;
	if (!cell_lock(place.cell)) {
		count->busy++;
		return XDP_PASS;
	}
	verdict = lower(ctx, place.lane, place.cell, &frame);
	cell_unlock(place.cell);
	if (verdict == DENSE_STALE || verdict == DENSE_FINISHED) {
		count->echoes++;
		return XDP_DROP;
	}
	if (verdict != DENSE_COMPLETE)
		return XDP_PASS; /* ahead of what the daemon has settled, or it finds the words */
	count->lowered++;
	if (!make_ours(ctx, place.lane, &frame, slot / WIRE_LANES_MAX, &ring))
		return XDP_DROP;
	count_result(count, place.lane, to);
	return send_down(ctx, place.lane, &frame, slot, to);
}

ALWAYS int aggregate_frame(struct xdp_md *ctx, int again)
{
	struct wire_header *header;
	struct frame frame;
	struct xdp_lane *lane;
	struct xdp_cell *cell;
	struct xdp_counts *count;
	__u32 slot, index, verdict, contributors, made, key = 0;
	struct place place;
	void *pool;
	__u8 child;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_PASS;
	slot = frame.port - settings.first_port;
	if (slot >= settings.ports || wire_lane(header) != slot)
		return XDP_PASS;
	if (header->comm >= XDP_COMMS)
		return from_parent(ctx, frame.at, frame.bytes);
	slot += header->comm * WIRE_LANES_MAX;
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane || lane->cookie != header->cookie || lane->job != header->job ||
	    lane->epoch != header->epoch)
		return from_parent(ctx, frame.at, frame.bytes);
	child = header->child;
	if (header->type == WIRE_REPORT)
		note_seen(ctx, &lane->seen[child & 63], &frame);
	if (header->type != WIRE_DATA || !lane->active || !is_sound(header) ||
	    frame.bytes > settings.payload)
		return XDP_PASS;

	index = dense_index(&lane->dense, wire_position(header));
	pool = bpf_map_lookup_elem(&pools, &slot);
	if (!pool)
		return XDP_PASS;
	cell = bpf_map_lookup_elem(pool, &index);
	if (!cell)
		return XDP_PASS;
	cell_fetch(lane, cell, frame.bytes);
	if (!cell_lock(cell)) {
		count = bpf_map_lookup_elem(&counts, &key);
		if (count)
			count->busy++;
		return XDP_PASS; /* the daemon can wait */
	}
	if (again) /* for measuring: the same packet as if it were new */
		cell->state.arrived = 0;
	place.lane = lane;
	place.cell = cell;
	header = frame_header(ctx, &frame);
	if (!header)
		verdict = CORRUPTED;
	else
		verdict = take(header, (void *)(long)ctx->data_end, lane, cell, frame.bytes);
	if (verdict == NOT_HERE) {
		verdict = take_checked(ctx, &frame, &place, slot, index);
	} else if (verdict == TO_UNDO) {
		undo_words(ctx, slot, index, frame.at, frame.bytes);
		verdict = CORRUPTED;
	}
	if (verdict == DENSE_ADDED) {
		cell_unlock(cell);
		return XDP_DROP; /* counted with the sum that it is part of */
	}
	made = MADE_NOTHING;
	if (verdict == DENSE_COMPLETE || verdict == DENSE_SUMMED) {
		if (verdict == DENSE_COMPLETE && dense_is_turn(&lane->dense, cell->state.position))
			update_low(slot);
		made = make(ctx, lane, cell, &frame, verdict);
	}
	cell_unlock(cell);
	if (verdict == DENSE_MISMATCH || verdict == DENSE_STRANGER)
		return XDP_PASS; /* the daemon finds the words for it */
	if (verdict == DENSE_AHEAD && lane->dense.has_parent)
		return XDP_PASS; /* the daemon looks what can be settled */
	count = bpf_map_lookup_elem(&counts, &key);
	if (!count)
		return XDP_DROP;
	if (verdict != DENSE_COMPLETE && verdict != DENSE_SUMMED) {
		count->verdicts[opaque(verdict) & (XDP_VERDICTS - 1)]++;
		/* Or several that were joined (GSO, GRO): the daemon can tell. */
		return verdict == CORRUPTED ? XDP_PASS : XDP_DROP;
	}
	contributors = popcount(dense_expected(&lane->dense, cell->state.from));
	count->added += contributors - 1;
	count->payload += (__u64)(contributors - 1) * frame.bytes;
	if (made == MADE_LEFT) {
		count->left++;
		return XDP_PASS; /* and counts it: it was not for us to finish */
	}
	count->payload += frame.bytes;
	count->verdicts[opaque(verdict) & (XDP_VERDICTS - 1)]++;
	__sync_fetch_and_add(&lane->last[child & 63], 1);
	if (made == MADE_DATA) {
		count->raised++;
		return send_to(ctx, &lane->parent.route, frame.at, WIRE_HEADER + frame.bytes);
	}
	if (made != MADE_RESULT)
		return XDP_DROP;
	count_result(count, lane, cell->state.to);
	return send_down(ctx, lane, &frame, slot, cell->state.to);
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
