/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The sparse engine in front of the network stack: rows that a worker pushes for the first time are
 * added here, and the packet becomes its own answer. All else passes to the daemon, which works on
 * the same cells: repeats, as the first answer may have been lost because frames of XDP do not
 * arrive; packets that are refused; packets after which the server has to hear something; pulls;
 * and packets of the server.
 *
 * All rows of a packet are added, or none. The daemon may hold a lock for long, so the program
 * takes the locks of all blocks first, the lowest first. If it cannot, it gives them back, and the
 * packet passes.
 */
#include "plane/xdp/bpf/engine_program.h"

#include "engine/sparse.h"
#include "number/float_table.h"

#define ROWS_MAX (XDP_PAYLOAD_MAX / 6)   /* of a packet: a number and a value each */
#define VALUES_MAX (XDP_PAYLOAD_MAX / 4) /* of a row */

/* Filled by the daemon before it starts the program. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct float_tables);
} float_tables SEC(".maps");

ALWAYS struct sparse_cell *state_of(struct engine_cell *cell)
{
	return (struct sparse_cell *)cell->own;
}

ALWAYS struct sparse_lane *find_lane(__u32 slot)
{
	struct xdp_lane *lane = bpf_map_lookup_elem(&lanes, &slot);

	return lane ? (struct sparse_lane *)&lane->state : NULL;
}

/* The row numbers of a packet. */
ALWAYS const sparse_number *numbers_of(struct xdp_md *ctx, __u32 at)
{
	const struct frame frame = { .at = at };
	struct wire_header *header = frame_header(ctx, &frame);

	return header ? (const sparse_number *)((struct sparse_rows *)(header + 1) + 1) : NULL;
}

/* Takes the block's lock. False: it is in use, or the block has no room. */
__noinline int lock_block(__u32 slot, __u32 block)
{
	const struct sparse_lane *lane = find_lane(slot);
	struct engine_cell *cell;
	__u32 room;

	if (!lane || block >= lane->blocks)
		return 0;
	cell = find_engine_cell(slot, sparse_index(lane, lane->bank, block));
	if (!cell || !cell_lock(&cell->lock))
		return 0;
	/* The daemon takes the packet that makes a block nearly full: it tells the server. */
	room = lane->told ? SPARSE_ADDENDS : SPARSE_ADDENDS_MANY - 1;
	if (state_of(cell)->addends < room)
		return 1;
	cell_unlock(&cell->lock);
	return 0;
}

__noinline int unlock_block(__u32 slot, __u32 block)
{
	const struct sparse_lane *lane = find_lane(slot);
	struct engine_cell *cell;

	if (!lane)
		return 0;
	cell = find_engine_cell(slot, sparse_index(lane, lane->bank, block));
	if (!cell)
		return 0;
	cell_unlock(&cell->lock);
	return 1;
}

/* Locks the blocks of the packet's rows. How many rows have their block locked: all, or fewer. */
__noinline int lock_rows(struct xdp_md *ctx, __u32 slot, __u32 at, __u32 n)
{
	const struct sparse_lane *lane = find_lane(slot);
	const sparse_number *numbers = numbers_of(ctx, at);
	void *end = (void *)(long)ctx->data_end;
	__u32 least = 0, block_end = 0, i;

	if (!lane || !numbers)
		return 0;
	for (i = 0; i < ROWS_MAX && i < n; i++, numbers++) {
		__u32 number, block;

		if ((void *)(numbers + 1) > end)
			break;
		number = *numbers;
		if (number < least || number >= lane->setup.rows)
			break;
		least = number + 1;
		if (number < block_end)
			continue;
		block = number / lane->per_block;
		block_end = (block + 1) * lane->per_block;
		if (!lock_block(slot, block))
			break;
	}
	return (int)i;
}

/* Gives back the locks of the first n rows' blocks. */
__noinline int unlock_rows(struct xdp_md *ctx, __u32 slot, __u32 at, __u32 n)
{
	const struct sparse_lane *lane = find_lane(slot);
	const sparse_number *numbers = numbers_of(ctx, at);
	void *end = (void *)(long)ctx->data_end;
	__u32 block_end = 0;

	if (!lane || !numbers)
		return 0;
	for (__u32 i = 0; i < ROWS_MAX && i < n; i++, numbers++) {
		__u32 number, block;

		if ((void *)(numbers + 1) > end)
			break;
		number = *numbers;
		if (number < block_end)
			continue;
		block = number / lane->per_block;
		block_end = (block + 1) * lane->per_block;
		unlock_block(slot, block);
	}
	return 0;
}

/* Are all values small? They are whole words from `at` in the frame on. */
__noinline int values_are_small(struct xdp_md *ctx, __u32 at, __u32 words)
{
	const wire_word *word = (void *)(long)ctx->data + (at & 2047);
	void *end = (void *)(long)ctx->data_end;
	__u64 over = 0;

	for (__u32 i = 0; i < XDP_PAYLOAD_MAX / 8 && i < words; i++, word++) {
		__u32 low, high;

		if ((void *)(word + 1) > end)
			return 0;
		low = (__u32)*word + SPARSE_LARGEST;
		high = (__u32)(*word >> 32) + SPARSE_LARGEST;
		/* sparse_is_small() without a branch: bit 63 shows a value that is too large. */
		over |= 2ull * SPARSE_LARGEST - low;
		over |= 2ull * SPARSE_LARGEST - high;
	}
	return !(over >> 63);
}

/* The sum of two floats, by their bits. */
__noinline int add_floats(__u32 sum, __u32 value)
{
	__u32 key = 0;
	const struct float_tables *tables = bpf_map_lookup_elem(&float_tables, &key);

	return tables ? (int)float_table_add(tables, sum, value) : 0;
}

/*
 * Adds a row to its block, whose lock is held. Its values begin at `at` in the frame. `first`: it
 * is the packet's first row in the block.
 */
__noinline int add_row(struct xdp_md *ctx, __u32 slot, __u32 number, __u32 at, __u32 first)
{
	const struct sparse_lane *lane = find_lane(slot);
	const sparse_value *value = (void *)(long)ctx->data + (at & 2047);
	void *end = (void *)(long)ctx->data_end;
	struct engine_cell *cell;
	__u32 block, row, width, index, kind;
	__u64 keep;

	if (!lane)
		return 0;
	block = number / lane->per_block;
	row = number % lane->per_block;
	width = lane->setup.width;
	kind = lane->setup.kind;
	cell = find_engine_cell(slot, sparse_index(lane, lane->bank, block));
	if (!cell)
		return 0;
	/* The first addend is added to no bits of the sum, which is that of before. */
	keep = -(state_of(cell)->dirty >> (row & 63) & 1);
	state_of(cell)->dirty |= 1ull << (row & 63);
	state_of(cell)->addends += first;
	index = row * width;
	for (__u32 i = 0; i < VALUES_MAX && i < width; i++, index++, value++) {
		__u32 here = opaque(index);
		sparse_value *sum;

		if (here >= settings.payload / 4 || (void *)(value + 1) > end)
			break;
		LEARNED(here);
		sum = (sparse_value *)cell->sum + here;
		if (kind == SPARSE_FIXED)
			*sum = (*sum & (__u32)keep) + *value;
		else
			*sum = (__u32)add_floats(*sum & (__u32)keep, *value);
	}
	return 1;
}

__noinline int add_rows(struct xdp_md *ctx, __u32 slot, __u32 at, __u32 n)
{
	const struct sparse_lane *lane = find_lane(slot);
	const sparse_number *numbers = numbers_of(ctx, at);
	void *end = (void *)(long)ctx->data_end;
	__u32 block_end = 0, values, row_bytes;

	if (!lane || !numbers)
		return 0;
	values = at + WIRE_HEADER + sparse_values_at(n);
	row_bytes = 4 * lane->setup.width;
	for (__u32 i = 0; i < ROWS_MAX && i < n; i++, numbers++) {
		__u32 number, first = 0;

		if ((void *)(numbers + 1) > end)
			break;
		number = *numbers;
		if (number >= block_end) {
			block_end = (number / lane->per_block + 1) * lane->per_block;
			first = 1;
		}
		add_row(ctx, slot, number, values, first);
		values += row_bytes;
	}
	return 1;
}

/* Rows in the packet, which has the form that the lane wants; 0: it has not, or has no rows. */
ALWAYS __u32 count_rows(struct xdp_md *ctx, const struct frame *frame,
                        const struct sparse_lane *lane)
{
	struct wire_header *header = frame_header(ctx, frame);
	struct sparse_rows *rows = (struct sparse_rows *)(header + 1);
	__u32 n;

	if (!header || (void *)(rows + 1) > (void *)(long)ctx->data_end ||
	    frame->bytes < sizeof(*rows) || rows->width != lane->setup.width || rows->unused)
		return 0;
	n = rows->n;
	if (n > ROWS_MAX || frame->bytes != sparse_rows_bytes(n, lane->setup.width, 1))
		return 0;
	return n;
}

/* Is it for the program? Needs the child's lock. */
ALWAYS int is_ours(const struct sparse_lane *lane, const struct sparse_cell *record,
                   const struct wire_header *header)
{
	if (!lane->setup.width || !sparse_is_current(lane, header) || sparse_is_closed(lane) ||
	    (header->from & SPARSE_URGENT && !lane->told))
		return 0;
	return sparse_find(record, wire_widen(header->pos, record->low)) == SPARSE_FRESH;
}

/* Adds the packet. Needs the child's lock. False: it is the daemon's, and nothing has changed. */
__noinline int add_packet(struct xdp_md *ctx, __u32 slot, __u32 at, __u32 bytes)
{
	const struct frame frame = { .at = at, .bytes = bytes };
	const struct sparse_lane *lane = find_lane(slot);
	__u32 n, values, locked;

	if (!lane)
		return 0;
	n = count_rows(ctx, &frame, lane);
	if (!n)
		return 0;
	values = sparse_values_at(n);
	if (lane->setup.kind == SPARSE_FIXED &&
	    !values_are_small(ctx, at + WIRE_HEADER + values, (bytes - values) / 8))
		return 0;
	locked = lock_rows(ctx, slot, at, n);
	if (locked == n)
		add_rows(ctx, slot, at, n);
	unlock_rows(ctx, slot, at, locked);
	return locked == n;
}

/* Takes the packet. False: it is the daemon's. *durable: for the answer. */
ALWAYS int take_push(struct xdp_md *ctx, const struct frame *frame, struct sparse_lane *lane,
                     __u32 slot, __u32 *durable)
{
	struct wire_header *header = frame_header(ctx, frame);
	struct engine_cell *cell, *frozen;
	struct sparse_cell *record;
	__u32 pos;
	int taken = 0;

	if (!header)
		return 0;
	pos = header->pos;
	cell = find_engine_cell(slot, header->child);
	frozen = find_engine_cell(slot, sparse_frozen_record(lane, header->child));
	if (!cell || !frozen || !cell_lock(&state_of(cell)->more))
		return 0;
	record = state_of(cell);
	if (is_ours(lane, record, header))
		taken = add_packet(ctx, slot, frame->at, frame->bytes);
	if (taken) {
		sparse_enter(record, wire_widen(pos, record->low));
		cell->sent_at = (__u32)(bpf_ktime_get_ns() / 1000) | 1;
		*durable = state_of(frozen)->more;
	}
	cell_unlock(&record->more);
	return taken;
}

ALWAYS void count_push(struct xdp_lane *lane, const struct frame *frame, __u32 child)
{
	__u32 key = 0;
	struct xdp_counts *count = bpf_map_lookup_elem(&counts, &key);

	if (count) {
		count->added++;
		count->payload += frame->bytes;
		count->sends++;
	}
	__sync_fetch_and_add(&lane->last[child & 63], 1);
}

/* The packet becomes its answer, without a payload. */
ALWAYS int answer(struct xdp_md *ctx, struct frame *frame, struct xdp_lane *lane, __u64 position,
                  __u32 durable)
{
	__u64 bytes = (void *)(long)ctx->data_end - (void *)(long)ctx->data;
	struct wire_header *header;
	__u32 child;

	__asm__ volatile("" : "+r"(bytes)); /* else pointers are subtracted in 32 bits */
	if (bpf_xdp_adjust_tail(ctx, (int)(frame->at + WIRE_HEADER) - (int)bytes))
		return XDP_DROP; /* the worker repeats it, and the daemon answers */
	frame->bytes = 0;
	header = frame_header(ctx, frame);
	if (!header)
		return XDP_DROP;
	child = header->child;
	header->type = WIRE_RESULT;
	header->flags = 0;
	header->ack = durable;
	header->from = 0;
	header->to = WIRE_ALL;
	if (!seal(ctx, frame, lane, position))
		return XDP_DROP;
	return send_to(ctx, &lane->routes[child & 63], frame->at, WIRE_HEADER);
}

/* Is it an intact PUSH of a worker, for the first time? *position: the whole of its number. */
ALWAYS int is_good(struct xdp_md *ctx, const struct frame *frame, const struct xdp_lane *lane,
                   __u32 slot, __u64 *position)
{
	const struct sparse_lane *sparse = (const struct sparse_lane *)&lane->state;
	struct wire_header *header = sound_header(ctx, frame);
	struct engine_cell *cell;

	if (!header || header->op != SPARSE_PUSH || header->flags & WIRE_RESENT ||
	    header->from & (__u8)~SPARSE_URGENT || !sparse_knows(sparse, header->child) ||
	    sparse_is_server(sparse, header->child) || !lane->routes[header->child & 63].ifindex)
		return 0;
	cell = find_engine_cell(slot, header->child);
	if (!cell)
		return 0;
	*position = wire_widen(header->pos, state_of(cell)->low);
	return is_intact(ctx, frame, lane, *position);
}

SEC("xdp")
int sparse_frame(struct xdp_md *ctx)
{
	struct wire_header *header;
	struct xdp_lane *lane;
	struct frame frame;
	__u32 slot, durable = 0, child;
	__u64 position;

	if (!frame_parse(ctx, &frame) || !(header = frame_header(ctx, &frame)))
		return XDP_PASS;
	slot = header->comm * WIRE_LANES_MAX + (frame.port - settings.first_port);
	lane = bpf_map_lookup_elem(&lanes, &slot);
	if (!lane || !lane->active || !is_good(ctx, &frame, lane, slot, &position))
		return XDP_PASS;
	header = frame_header(ctx, &frame);
	if (!header)
		return XDP_PASS;
	child = header->child;
	if (!take_push(ctx, &frame, (struct sparse_lane *)&lane->state, slot, &durable))
		return XDP_PASS;
	count_push(lane, &frame, child);
	return answer(ctx, &frame, lane, position, durable);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
