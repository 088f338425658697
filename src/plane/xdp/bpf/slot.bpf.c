/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The slot engine in front of the network stack: the whole exchange of a small vector stays here.
 * The packet that completes a sum is rewritten into the result, and leaves for all children. What
 * is rare passes to the daemon, which works on the same cells: repeats that need an answer, as the
 * first answer may have been lost because frames of XDP do not arrive; packets of strangers; and
 * calls that do not fit.
 */
#include "plane/xdp/bpf/engine_program.h"

#include "engine/slot.h"

/* Instead of a slot_verdict: the packet passes to the daemon. */
#define TO_DAEMON SLOT_VERDICTS_END

ALWAYS struct slot_cell *state_of(struct engine_cell *cell)
{
	return (struct slot_cell *)cell->own;
}

ALWAYS void move_low(struct slot_lane *lane, __u32 slot)
{
	__u64 low = lane->low;
	struct engine_cell *cell = find_engine_cell(slot, slot_index(lane, low));

	if (cell)
		slot_move_low(lane, state_of(cell), low);
}

/* True: the operation's slot is clear. */
__noinline int take_ack(__u32 slot, __u32 child, __u32 pos)
{
	struct xdp_lane *ours = bpf_map_lookup_elem(&lanes, &slot);
	struct slot_lane *lane;
	struct engine_cell *cell;
	int clear;

	if (!ours)
		return 0;
	lane = (struct slot_lane *)&ours->state;
	cell = find_engine_cell(slot, slot_index(lane, pos));
	if (!cell || !cell_lock(&cell->lock))
		return 0; /* the child acknowledges again when it needs the slot */
	clear = slot_ack(lane, state_of(cell), child, pos);
	cell_unlock(&cell->lock);
	move_low(lane, slot);
	move_low(lane, slot);
	return clear;
}

/* The answer's header, over that of the packet. */
ALWAYS void make_answer(struct wire_header *header, const struct slot_lane *lane, __u64 position,
                        __u8 flags)
{
	header->type = WIRE_RESULT;
	header->child = WIRE_ALL;
	header->pos = (__u32)position;
	header->ack = (__u32)lane->low;
	header->from = flags;
	header->to = WIRE_ALL;
}

/* Makes the packet the result. Needs the lock. */
ALWAYS int make_result(struct hook_md *ctx, const struct frame *frame, struct xdp_lane *lane,
                       struct engine_cell *cell)
{
	const struct slot_cell *state = state_of(cell);
	struct wire_header *header = frame_header(ctx, frame);

	if (!header)
		return 0;
	make_answer(header, (const struct slot_lane *)&lane->state, state->position, 0);
	header->flags = state->shape;
	header->scale = state->scale;
	cell->sent_at = (__u32)(bpf_ktime_get_ns() / 1000) | 1;
	return store_sum(ctx, frame, cell);
}

/* Makes the packet the news of a higher scale. Its payload stays, and means nothing. */
ALWAYS int make_scale(struct hook_md *ctx, const struct frame *frame, const struct xdp_lane *lane,
                      const struct slot_cell *state)
{
	struct wire_header *header = frame_header(ctx, frame);

	if (!header)
		return 0;
	make_answer(header, (const struct slot_lane *)&lane->state, state->position, SLOT_RAISE);
	header->scale = state->scale;
	return 1;
}

/* Judges and adds. Needs the lock. */
ALWAYS __u32 take(struct hook_md *ctx, const struct frame *frame, struct xdp_lane *lane,
                  struct engine_cell *cell, __u32 slot, __u32 index)
{
	const struct slot_lane *slots = (const struct slot_lane *)&lane->state;
	struct slot_cell *state = state_of(cell);
	struct wire_header *header = frame_header(ctx, frame);
	__u32 how;
	int first;

	if (!header)
		return TO_DAEMON;
	how = slot_judge(slots, state, header, frame->bytes);
	if (how != SLOT_ADDED && how != SLOT_RAISED)
		return how;
	first = slot_enter(state, header, frame->bytes, how);
	if (first) {
		if (!load_sum(ctx, frame, cell))
			return TO_DAEMON; /* never: the frame has these bytes */
	} else {
		combine_sum(ctx, slot, index, frame->at, frame->bytes);
	}
	return slot_entered(slots, state, how);
}

ALWAYS void count_result(struct xdp_lane *lane, const struct frame *frame, __u32 child)
{
	__u32 key = 0, n = popcount(lane->state.members);
	struct xdp_counts *count = bpf_map_lookup_elem(&counts, &key);

	if (!count)
		return;
	/* All packets of the sum are counted now, as dense counts them. */
	count->added += n - 1;
	count->payload += (__u64)n * frame->bytes;
	count->verdicts[ENGINE_COMPLETE]++;
	count->results++;
	count->sends += lane->entries;
	__sync_fetch_and_add(&lane->last[child & 63], 1);
}

ALWAYS void count_other(__u32 verdict)
{
	__u32 key = 0;
	struct xdp_counts *count = bpf_map_lookup_elem(&counts, &key);

	if (count)
		count->verdicts[verdict & (XDP_VERDICTS - 1)]++;
}

/* A vector: what becomes of its packet. */
__noinline int take_vector(struct hook_md *ctx, __u32 slot, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);
	struct wire_header *header = frame_header(ctx, &frame);
	struct engine_cell *cell;
	__u32 index, verdict, child, again;
	__u64 position;
	int made = 0;

	if (!lane || !header)
		return HOOK_PASS;
	child = header->child;
	again = header->flags & WIRE_RESENT;
	index = slot_index((struct slot_lane *)&lane->state, header->pos);
	cell = find_engine_cell(slot, index);
	if (!cell || !cell_lock(&cell->lock))
		return HOOK_PASS; /* the daemon can wait for the lock */
	verdict = take(ctx, &frame, lane, cell, slot, index);
	position = state_of(cell)->position;
	if (verdict == SLOT_LOWER && again)
		verdict = TO_DAEMON;
	if (verdict == SLOT_COMPLETE)
		made = make_result(ctx, &frame, lane, cell);
	else if (verdict == SLOT_RAISED || verdict == SLOT_LOWER)
		made = make_scale(ctx, &frame, lane, state_of(cell));
	cell_unlock(&cell->lock);
	if (made && !seal(ctx, &frame, lane, position))
		return HOOK_DROP;
	switch (verdict) {
	case SLOT_COMPLETE:
		count_result(lane, &frame, child);
		return made ? send_all(ctx, lane, &frame, slot) : HOOK_DROP;
	case SLOT_RAISED:
		return made ? send_all(ctx, lane, &frame, slot) : HOOK_DROP;
	case SLOT_LOWER:
		count_other(ENGINE_LOWER);
		return made ? send_to(ctx, &lane->routes[child & 63], at, WIRE_HEADER + bytes)
		            : HOOK_DROP;
	case SLOT_ADDED:
		return HOOK_DROP;
	case SLOT_DUPLICATE:
		count_other(ENGINE_DUPLICATE);
		return HOOK_DROP;
	case SLOT_STALE:
		count_other(ENGINE_STALE);
		return HOOK_DROP;
	case SLOT_AHEAD:
		count_other(ENGINE_AHEAD);
		return HOOK_DROP;
	}
	return HOOK_PASS;
}

/* An acknowledgement alone. The child may want to know whether its slot is clear. */
ALWAYS int answer_ack(struct hook_md *ctx, const struct frame *frame, struct xdp_lane *lane,
                      __u64 position, int clear)
{
	struct wire_header *header = frame_header(ctx, frame);
	__u32 child;

	if (!header || !clear || !(header->from & SLOT_WANTS))
		return HOOK_DROP;
	if (header->flags & WIRE_RESENT)
		return HOOK_PASS;
	child = header->child;
	make_answer(header, (struct slot_lane *)&lane->state, position, SLOT_CLEAR);
	if (!seal(ctx, frame, lane, position))
		return HOOK_DROP;
	return send_to(ctx, &lane->routes[child & 63], frame->at, WIRE_HEADER + frame->bytes);
}

/* Is it an intact packet of a child of this lane? *position: the whole of its number. */
ALWAYS int is_good(struct hook_md *ctx, const struct frame *frame, const struct xdp_lane *lane,
                   __u32 slot, __u64 *position)
{
	struct wire_header *header = sound_header(ctx, frame);
	const struct slot_lane *slots = (const struct slot_lane *)&lane->state;
	struct engine_cell *cell;

	if (!header || !slot_knows(slots, header->child))
		return 0;
	cell = find_engine_cell(slot, slot_index(slots, header->pos));
	if (!cell)
		return 0;
	*position = wire_widen(header->pos, state_of(cell)->position);
	return is_intact(ctx, frame, lane, *position);
}

#ifdef TRIB_HOOK_TC
SEC("tc")
#else
SEC("xdp")
#endif
int slot_frame(struct hook_md *ctx)
{
	struct wire_header *header;
	struct xdp_lane *lane;
	struct frame frame;
	__u32 slot, flags;
	__u64 position;
	int clear = 0;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return HOOK_PASS;
	slot = header->comm * WIRE_LANES_MAX + (frame.port - settings.first_port);
	lane = bpf_map_lookup_elem(&lanes, &slot);
	/* Until the routes to all children are known, the daemon does the work. */
	if (!lane || !lane->active || lane->entries != popcount(lane->state.members) ||
	    !is_good(ctx, &frame, lane, slot, &position))
		return HOOK_PASS;
	header = frame_header(ctx, &frame);
	if (!header)
		return HOOK_PASS;
	flags = header->from;
	if (flags & SLOT_ACKS)
		clear = take_ack(slot, header->child, header->ack);
	if (flags & SLOT_BARE)
		return answer_ack(ctx, &frame, lane, position, clear);
	return take_vector(ctx, slot, frame.at, frame.bytes);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
