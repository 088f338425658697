/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Lanes of streams (engine/dense.h), for plane.bpf.c alone. DATA is verified, added
 * to its cell and dropped. The packet that completes a cell is rewritten into the
 * result and sent to all children. With a parent it is rewritten into DATA for the
 * parent.
 *
 * Packets of two children for one cell may arrive on two cores at once. So each
 * cell has a lock, held while a packet is judged and added. The daemon takes the
 * same lock for packets that arrive by its sockets.
 *
 * The verifier follows every loop, and the code after it once for each exit. So
 * each loop has a function of its own: functions that are not static are verified
 * separately, once. Their arguments are numbers, and they look up pointers anew.
 * hide() makes a known number unknown to the verifier.
 */
#ifndef TRIB_PLANE_XDP_BPF_STREAM_PROGRAM_H
#define TRIB_PLANE_XDP_BPF_STREAM_PROGRAM_H

#include "plane/xdp/bpf/check_queue.h"
#include "plane/xdp/bpf/program.h"

#define LONG 1024 /* bytes: a fragment from this length on is worth a prefetch */
#define MANY 1024 /* cells: a pool from this size on is worth a prefetch */
/* Verdicts beside those of the engine. */
enum { CORRUPTED = XDP_CORRUPTED, NOT_HERE, TO_UNDO };

/*
 * Reads one word of each cache line of the sum, and ignores it. In a large pool
 * all lines are missing, and are fetched together now instead of one by one later.
 * It comes before the lock, which waits for all earlier accesses.
 */
ALWAYS void cell_fetch(const struct xdp_lane *lane, const struct xdp_cell *cell, __u32 bytes)
{
	const volatile __u64 *words = (const volatile __u64 *)cell;
	__u32 room = settings.payload;

	if (bytes < LONG || lane->dense.cells < MANY)
		return;
	/* `room` is constant when the program is loaded, so the verifier knows the bound. */
	_Pragma("clang loop unroll(full)") for (__u32 at = LINE; at < XDP_PAYLOAD_MAX; at += LINE)
	{
		if (at <= room)
			(void)words[at / 8];
	}
}

/* The cell of a fragment, and its lane. */
struct place {
	struct xdp_lane *lane;
	struct xdp_cell *cell;
	__u64 position;
};

ALWAYS int find_place(struct place *place, __u32 slot, __u32 index)
{
	void *pool = bpf_map_lookup_elem(&pools, &slot);

	place->lane = bpf_map_lookup_elem(&lanes, &slot);
	place->cell = pool ? bpf_map_lookup_elem(pool, &index) : NULL;
	return place->lane && place->cell;
}

/* ---- rings: the checksum of a sum, from the checksums of its packets ---- */

ALWAYS __u64 ring_tag(__u64 position, const struct wire_header *header)
{
	return position << 16 | header->scale;
}

/* The ring holds this packet alone. */
ALWAYS void ring_begin(struct xdp_cell *cell, __u64 position, const struct wire_header *header)
{
	cell->ring_tag = ring_tag(position, header);
	cell->ring_of = child_bit(header->child);
}

/* Does the ring hold all packets of the sum? The daemon does not update rings. */
ALWAYS int ring_is_whole(const struct xdp_cell *cell, __u64 position,
                         const struct wire_header *header)
{
	return cell->ring_tag == ring_tag(position, header) && cell->ring_of == cell->state.arrived;
}

/* The part of a fragment's checksum that is not sent. `proof` is the lane's or its parent's. */
ALWAYS struct wire_unsent unsent_of(const struct xdp_lane *lane, __u64 proof, __u64 position)
{
	return (struct wire_unsent){ .proof = proof, .pos = wire_pos(lane->index, position) };
}

/*
 * Judges, verifies and adds in one pass, where that is safe: a sum of 64-bit words
 * can be undone, and a cell that nobody needs may be overwritten. Gives a verdict;
 * NOT_HERE: take_checked() has to take it; TO_UNDO: it is corrupted and in the
 * sum; CORRUPTED: it is corrupted and not in the sum.
 */
ALWAYS __u32 take(struct wire_header *header, void *end, struct xdp_lane *lane,
                  struct xdp_cell *cell, __u64 position, __u32 bytes)
{
	__u32 how = dense_judge(&lane->dense, &cell->state, header, position, bytes);
	struct wire_unsent unsent = unsent_of(lane, lane->proof, position);
	__u32 check;

	if (how == DENSE_ADDED && header->op == WIRE_ADD64)
		check = dense_is_last(&lane->dense, &cell->state, header->child)
		                ? pass_add64_last(header, end, cell, bytes, &unsent)
		                : pass_add64(header, end, cell, bytes, &unsent);
	else if (how == DENSE_FRESH)
		check = pass_copy(header, end, cell, bytes, &unsent);
	else
		return NOT_HERE;
	if (check != header->check)
		return how == DENSE_ADDED ? TO_UNDO : CORRUPTED;
	if (how == DENSE_FRESH)
		ring_begin(cell, position, header);
	else if (ring_is_whole(cell, position, header))
		cell->ring_of |= child_bit(header->child);
	dense_ack(&lane->dense, header->child, header->ack);
	return dense_enter(&lane->dense, &cell->state, header, position, bytes, how);
}

/* ---- the slower path: each loop in a function of its own ---- */

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
	struct wire_unsent unsent;
	struct place place;
	__u64 position;

	if (!header || !find_place(&place, slot, index))
		return 0;
	position = dense_position(&place.lane->dense, header);
	unsent = unsent_of(place.lane, 0, position); /* the packet has been verified already */
	pass_copy(header, end, place.cell, bytes, &unsent);
	ring_begin(place.cell, position, header);
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

/* Verifies first, then judges, then combines. */
ALWAYS __u32 take_checked(struct xdp_md *ctx, const struct frame *frame, const struct place *place,
                          __u32 slot, __u32 index)
{
	struct dense_lane *dense = &place->lane->dense;
	struct wire_header *header = frame_header(ctx, frame);
	const __u64 position = place->position;
	struct wire_unsent unsent = unsent_of(place->lane, place->lane->proof, position);
	__u32 how, check;

	if (!header)
		return CORRUPTED;
	check = (__u32)checksum(ctx, frame->at, frame->bytes, unsent.proof, unsent.pos);
	header = frame_header(ctx, frame);
	if (!header || check != header->check)
		return CORRUPTED;
	how = dense_judge(dense, &place->cell->state, header, position, frame->bytes);
	if (how == DENSE_STRANGER || how == DENSE_MISMATCH)
		return how;
	dense_ack(dense, header->child, header->ack);
	if (how == DENSE_AHEAD) {
		update_low(slot);
		header = frame_header(ctx, frame);
		if (!header)
			return CORRUPTED;
		how = dense_judge(dense, &place->cell->state, header, position, frame->bytes);
	}
	if (how == DENSE_FRESH || how == DENSE_HIGHER)
		copy_words(ctx, slot, index, frame->at, frame->bytes);
	else if (how == DENSE_ADDED)
		combine_words(ctx, slot, index, frame->at, frame->bytes);
	else
		return how;
	header = frame_header(ctx, frame);
	return header ? dense_enter(dense, &place->cell->state, header, position, frame->bytes, how)
	              : CORRUPTED;
}

/*
 * Puts the sum and its checksum into the packet that completed it. If the packet
 * is the only one of the sum, the sum is there already.
 */
ALWAYS int fill(struct xdp_md *ctx, struct xdp_cell *cell, const struct frame *frame,
                const struct wire_unsent *unsent)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 bytes = opaque(frame->bytes), check;
	int whole;

	if (!header || bytes > settings.payload)
		return 0;
	whole = ring_is_whole(cell, unsent->pos & WIRE_POSITION_MASK, header);
	if ((int)bytes >= 8 && !(whole && popcount(cell->state.arrived) == 1) &&
	    bpf_xdp_store_bytes(ctx, (frame->at & 127) + WIRE_HEADER, cell->sum, bytes))
		return 0;
	check = whole ? 0 : (__u32)checksum(ctx, frame->at, bytes, unsent->proof, unsent->pos);
	header = frame_header(ctx, frame);
	if (!header)
		return 0;
	if (whole)
		check = wire_check_end(cell->ring, (wire_word *)header, (const wire_word *)unsent,
		                       WIRE_HEADER + (__u64)bytes);
	header->check = check;
	return 1;
}

/* What the packet that completed a sum has become. */
enum made { MADE_NOTHING, MADE_RESULT, MADE_DATA, MADE_LEFT };

/* May the sum go up from here? If so, it counts as sent. If not, the daemon has to send it. */
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
	if (end > sent) /* the loser of a race leaves it to the next sum */
		__sync_val_compare_and_swap(&parent->sent, sent, end);
	parent->told = lane->dense.settled;
	return 1;
}

/*
 * Rewrites the packet that completed a sum into the result, or into DATA for the
 * parent. Needs the lock: another core may empty a cell that is not complete as
 * soon as the lock is free.
 */
static __noinline int make(struct xdp_md *ctx, struct xdp_lane *lane, struct xdp_cell *cell,
                           const struct frame *frame, __u32 verdict)
{
	struct wire_header *header = frame_header(ctx, frame);
	const struct xdp_parent *parent = &lane->parent;
	struct wire_unsent unsent = unsent_of(lane, lane->proof, cell->state.position);
	enum made made = MADE_RESULT;

	if (!header)
		return MADE_NOTHING;
	if (verdict == DENSE_SUMMED) {
		if (!raise(lane, cell))
			return MADE_LEFT;
		made = MADE_DATA;
		unsent.proof = parent->proof;
		header->comm = parent->comm;
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
	return fill(ctx, cell, frame, &unsent) ? made : MADE_NOTHING;
}

/* Sends a result to the children that want it. */
static __noinline int send_down(struct xdp_md *ctx, struct xdp_lane *lane,
                                const struct frame *frame, __u32 slot, __u8 to)
{
	__u32 bytes = WIRE_HEADER + frame->bytes, route;

	if (to != WIRE_ALL) {
		/* The rank's child: the index of its only bit. */
		route = popcount(lane->dense.by_rank[to & 63] - 1);
		return route < WIRE_CHILDREN_MAX
		               ? send_to(ctx, &lane->routes[route], frame->at, bytes)
		               : XDP_DROP;
	}
	return send_all(ctx, lane, frame, slot);
}

ALWAYS void count_result(struct xdp_counts *count, const struct xdp_lane *lane, __u8 to)
{
	count->results++;
	count->sends += to != WIRE_ALL ? 1 : lane->entries;
}

/* The cell of a fragment, if the program sums its lane. */
ALWAYS int find_cell(const struct wire_header *header, struct place *place, __u32 slot,
                     __u32 *index)
{
	void *pool;

	place->lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!place->lane || !place->lane->active)
		return 0;
	place->position = dense_position(&place->lane->dense, header);
	*index = dense_index(&place->lane->dense, place->position);
	pool = bpf_map_lookup_elem(&pools, &slot);
	place->cell = pool ? bpf_map_lookup_elem(pool, index) : NULL;
	return place->cell != NULL;
}

/* Needs the lock. Settles a verdict that is not DENSE_ADDED. */
ALWAYS __u32 settle(struct xdp_md *ctx, const struct frame *frame, const struct place *place,
                    __u32 slot, __u32 index, __u32 verdict)
{
	if (verdict == NOT_HERE)
		return take_checked(ctx, frame, place, slot, index);
	if (verdict != TO_UNDO)
		return verdict;
	undo_words(ctx, slot, index, frame->at, frame->bytes);
	return CORRUPTED;
}

/* The action for a packet that did not complete a sum. */
ALWAYS int leave_it(struct xdp_counts *count, const struct xdp_lane *lane, __u32 verdict)
{
	if (verdict == DENSE_ADDED)
		return XDP_DROP; /* counted when its sum is complete */
	if (verdict == DENSE_MISMATCH || verdict == DENSE_STRANGER)
		return ASIDE; /* the daemon reports the error */
	if (verdict == DENSE_AHEAD && lane->dense.has_parent)
		return ASIDE; /* the daemon may settle fragments and make room */
	count->verdicts[opaque(verdict) & (XDP_VERDICTS - 1)]++;
	/* It may be several packets joined by GSO or GRO: the daemon can take them apart. */
	return verdict == CORRUPTED ? XDP_PASS : XDP_DROP;
}

/* Sends `made`: this child has completed the sum. */
ALWAYS int send_made(struct xdp_md *ctx, struct xdp_counts *count, const struct frame *frame,
                     const struct place *place, __u32 slot, __u32 verdict, __u32 made, __u8 child)
{
	struct xdp_lane *lane = place->lane;
	const struct dense_cell *state = &place->cell->state;
	__u32 contributors = popcount(dense_expected(&lane->dense, state->from));

	count->added += contributors - 1;
	count->payload += (__u64)(contributors - 1) * frame->bytes;
	if (made == MADE_LEFT) {
		count->left++;
		return ASIDE; /* the daemon sends the sum and counts the packet */
	}
	count->payload += frame->bytes;
	count->verdicts[opaque(verdict) & (XDP_VERDICTS - 1)]++;
	__sync_fetch_and_add(&lane->last[child & 63], 1);
	if (made == MADE_DATA) {
		count->raised++;
		return send_to(ctx, &lane->parent.route, frame->at, WIRE_HEADER + frame->bytes);
	}
	if (made != MADE_RESULT)
		return XDP_DROP;
	count_result(count, lane, state->to);
	return send_down(ctx, lane, frame, slot, state->to);
}

/* Takes DATA of a child. Its cell has been found. */
ALWAYS int add_data(struct xdp_md *ctx, const struct frame *frame, const struct place *place,
                    __u32 slot, __u32 index, int again)
{
	struct xdp_lane *lane = place->lane;
	struct xdp_cell *cell = place->cell;
	__u32 verdict = CORRUPTED, made = MADE_NOTHING, key = 0;
	struct wire_header *header;
	struct xdp_counts *count;
	__u8 child = 0;
	int done, action;

	cell_fetch(lane, cell, frame->bytes);
	if (!cell_lock(&cell->state.lock)) {
		count = bpf_map_lookup_elem(&counts, &key);
		if (count)
			count->busy++;
		return put_aside(ctx, frame->at, frame->bytes,
		                 slot); /* the daemon can wait for the lock */
	}
	if (again) /* for benchmarks: treats the packet as new */
		cell->state.arrived = 0;
	header = frame_header(ctx, frame);
	if (header) {
		child = header->child;
		verdict = take(header, (void *)(long)ctx->data_end, lane, cell, place->position,
		               frame->bytes);
	}
	if (verdict == DENSE_ADDED) { /* first, because it is the most frequent verdict */
		cell_unlock(&cell->state.lock);
		return XDP_DROP;
	}
	verdict = settle(ctx, frame, place, slot, index, verdict);
	done = verdict == DENSE_COMPLETE || verdict == DENSE_SUMMED;
	if (verdict == DENSE_COMPLETE && dense_low_is_due(&lane->dense, cell->state.position))
		update_low(slot);
	if (done)
		made = make(ctx, lane, cell, frame, verdict);
	cell_unlock(&cell->state.lock);
	count = bpf_map_lookup_elem(&counts, &key);
	if (!count)
		return XDP_DROP;
	action = done ? send_made(ctx, count, frame, place, slot, verdict, made, child)
	              : leave_it(count, lane, verdict);
	return action == ASIDE ? put_aside(ctx, frame->at, frame->bytes, slot) : action;
}

ALWAYS int take_stream_data(struct xdp_md *ctx, const struct frame *frame, __u32 slot, int again)
{
	const struct wire_header *header = frame_header(ctx, frame);
	struct place place;
	__u32 index;

	if (!header || !is_sound(header) || !is_rank(header->to) ||
	    frame->bytes > settings.payload || !find_cell(header, &place, slot, &index))
		return XDP_PASS;
	return add_data(ctx, frame, &place, slot, index, again);
}

#endif
