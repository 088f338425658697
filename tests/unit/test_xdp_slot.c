/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot engine's program in the kernel and the same engine in user space agree: on what becomes
 * of each packet, on the packet that leaves, on all cells and on all counters. Packets are nearly
 * valid: lost, repeated, of the past and of the future, at several scales, of strangers, corrupted.
 *
 * The program passes some packets to the daemon, which works on the same cells. The test then does
 * what the daemon does.
 *
 *   test_xdp_slot [SEED [PACKETS]]
 */
#include "base/clock.h"
#include "engine/slot.h"
#include "wire/parse.h"
#include "xdp_rig.h"

#include <string.h>

#define ROUND 2000u /* packets until there is a new lane */
#define PAYLOAD 512u
#define FAR 0xfffffff0ull /* positions from here on soon need more than 32 bits */
#define CORRUPTED ENGINE_VERDICTS_END

static struct rig rig;
static uint64_t random_state;
static const struct shape *way; /* the shape of the routes to children */
static uint64_t tally[ENGINE_VERDICTS_END + 1], clear_told, scale_told, raised;

static uint64_t draw(uint64_t below)
{
	return rig_random(&random_state) % below;
}

static bool one_in(uint64_t n)
{
	return draw(n) == 0;
}

/* Of a frame from a child. At tc, all frames of a lane have one. */
static const struct shape *draw_shape(void)
{
	return rig.tc ? way : &shapes[draw(SHAPES)];
}

static struct slot_cell *twin_cell(uint32_t index)
{
	return (struct slot_cell *)engine_cell(&rig.engine_twin, index)->own;
}

/* ---- lanes ---- */

/* All positions of a lane begin at `base`, a multiple of its slots. */
static void lane_from(const struct engine_pool *pool, uint64_t base)
{
	((struct slot_lane *)pool->lane)->low = base;
	for (uint32_t i = 0; i < rig.cells; i++)
		((struct slot_cell *)engine_cell(pool, i)->own)->position = base + i;
}

static void lane_new(uint32_t children, uint32_t slots, uint64_t base)
{
	way = &shapes[draw(SHAPES)];
	rig_engine_lane(&rig, &engine_slot, children, slots, PAYLOAD, way);
	lane_from(&rig.engine_pool, base);
	lane_from(&rig.engine_twin, base);
}

/* ---- packets ---- */

struct vector {
	uint64_t position, ack;
	uint8_t child, op, flags, from, to;
	uint16_t scale;
	uint32_t bytes;
};

/* What all children call at this position. */
static struct vector vector_at(uint64_t position)
{
	uint64_t r = position * 0x9e3779b97f4a7c15ull;

	r ^= r >> 29;
	return (struct vector){ .position = position,
		                .op = (uint8_t)(r % WIRE_OPS_END),
		                .flags = (uint8_t)(r >> 8) & (uint8_t)~WIRE_RESENT,
		                .to = r >> 16 & 1 ? WIRE_ALL : (uint8_t)(r >> 17 & 63),
		                .bytes = (uint32_t)(r >> 24) % 9 * 8 };
}

static uint32_t packet_make(struct packet *packet, const struct vector *vector)
{
	const struct wire_unsent unsent = rig_unsent(vector->position);

	packet->header = (struct wire_header){ .type = WIRE_DATA,
		                               .flags = vector->flags,
		                               .comm = RIG_COMM,
		                               .child = vector->child,
		                               .op = vector->op,
		                               .pos = (uint32_t)vector->position,
		                               .ack = (uint32_t)vector->ack,
		                               .scale = vector->scale,
		                               .from = vector->from,
		                               .to = vector->to };
	for (uint32_t i = 0; i < vector->bytes / 8; i++)
		packet->words[i] = rig_random(&random_state);
	wire_seal_fragment(packet, WIRE_HEADER + vector->bytes, &unsent);
	return WIRE_HEADER + vector->bytes;
}

/* ---- what leaves ---- */

/* Copies the packet out of the frame, and checks that it is intact. */
static const struct packet *packet_of(const struct frame *out, uint32_t at, uint64_t position)
{
	static struct packet packet;
	const struct wire_unsent unsent = rig_unsent(position);
	uint32_t bytes = out->bytes - at;

	demand(out->bytes >= at + WIRE_HEADER && bytes <= sizeof(packet));
	memcpy(&packet, out->data + at, bytes);
	demand(wire_parse(&packet, bytes) == WIRE_SOUND);
	demand(wire_is_intact(&packet.header, bytes, &unsent));
	demand(packet.header.type == WIRE_RESULT && packet.header.comm == RIG_COMM);
	return &packet;
}

/*
 * The header of an answer without a sum. The program rewrites the packet that it answers, so the
 * fields that mean nothing are that packet's, and its payload is still there.
 */
static void answer_check(const struct packet *packet, const struct engine_packet *want)
{
	const struct wire_header *header = &packet->header, *twin = (const void *)want->data;

	demand(header->pos == twin->pos && header->ack == twin->ack);
	demand(header->from == twin->from && header->to == twin->to);
	demand(header->child == twin->child);
	if (twin->from == SLOT_RAISE)
		demand(header->scale == twin->scale);
}

/* `out` goes to one child. */
static void unicast_check(const struct frame *in, const struct frame *out, uint32_t action,
                          unsigned child, const struct engine_packet *want)
{
	uint8_t head[XDP_HEAD_MAX];
	uint32_t bytes = in->bytes - in->at, at = head_make(head, way, child, bytes);

	demand(action == (rig.tc ? XDP_REDIRECT : XDP_TX));
	demand(want->to == child_bit(child) && want->bytes == WIRE_HEADER);
	demand(out->bytes == at + bytes && !memcmp(out->data, head, at));
	answer_check(packet_of(out, at, want->position), want);
}

/* `out` goes to all children: the fan writes the fronts of its copies. At tc, copies have left, and
 * `out` goes to the last child. */
static const struct packet *broadcast_check(const struct frame *in, const struct frame *out,
                                            uint32_t action, uint64_t position)
{
	uint8_t head[XDP_HEAD_MAX];
	uint32_t at = head_make(head, way, rig.children - 1, in->bytes - in->at);

	demand(action == XDP_REDIRECT);
	demand(out->bytes == in->bytes && (!rig.tc || at == in->at));
	demand(!memcmp(out->data, rig.tc ? head : in->data, in->at));
	return packet_of(out, in->at, position);
}

/* The sum, bit by bit. */
static void sum_check(const struct frame *in, const struct frame *out, uint32_t action,
                      const struct engine_packet *want)
{
	const struct packet *packet = broadcast_check(in, out, action, want->position);
	struct wire_header header = packet->header;

	demand(want->to == rig.engine_state.members);
	demand(out->bytes - in->at == want->bytes);
	header.magic = header.comm = 0;
	header.check = 0;
	demand(!memcmp(&header, want->data, WIRE_HEADER));
	demand(!memcmp(packet->words, want->data + WIRE_HEADER, want->bytes - WIRE_HEADER));
}

static void count_sum(unsigned child, uint32_t bytes)
{
	unsigned n = rig.children;

	rig.counts.added += n - 1;
	rig.counts.payload += (uint64_t)n * bytes;
	rig.counts.verdicts[DENSE_COMPLETE]++;
	rig.counts.results++;
	rig.counts.sends += n;
	rig.twin_last[child]++;
}

/* ---- kernel and twin ---- */

static void pass_check(const struct frame *in, const struct frame *out, uint32_t action)
{
	demand(action == XDP_PASS);
	demand(out->bytes == in->bytes && !memcmp(out->data, in->data, in->bytes));
}

/* The daemon takes a packet that has passed. Both sides then have the same cells and answers. */
static void daemon_check(const struct packet *packet, uint32_t bytes)
{
	static struct engine_packet ours[2], twins[2];
	enum engine_verdict how =
		engine_slot.take(&rig.engine_pool, &packet->header, bytes - WIRE_HEADER, ours);

	demand(engine_slot.take(&rig.engine_twin, &packet->header, bytes - WIRE_HEADER, twins) ==
	       how);
	for (unsigned i = 0; i < 2; i++) {
		demand(ours[i].bytes == twins[i].bytes);
		if (!ours[i].bytes)
			continue;
		demand(ours[i].to == twins[i].to && ours[i].position == twins[i].position);
		demand(!memcmp(ours[i].data, twins[i].data, ours[i].bytes));
	}
	rig_engine_compare(&rig);
}

/* The program's action on a packet that the twin has taken. */
static void action_check(const struct frame *in, const struct frame *out, uint32_t action,
                         const struct wire_header *header, enum engine_verdict verdict,
                         const struct engine_packet twin[2])
{
	uint32_t bytes = in->bytes - in->at - WIRE_HEADER;
	uint64_t position = twin[1].bytes ? twin[1].position : 0;
	bool raises = verdict == ENGINE_ADDED && (action == XDP_REDIRECT || twin[1].bytes);

	if (verdict == ENGINE_ACK && twin[0].bytes) {
		clear_told++;
		unicast_check(in, out, action, header->child, &twin[0]);
	} else if (verdict == ENGINE_COMPLETE) {
		sum_check(in, out, action, &twin[1]);
		count_sum(header->child, bytes);
	} else if (verdict == ENGINE_LOWER) {
		scale_told++;
		unicast_check(in, out, action, header->child, &twin[1]);
		rig.counts.verdicts[DENSE_LOWER]++;
	} else if (raises && twin[1].bytes) {
		/* The program tells all children: a scale that a child has means nothing to it. */
		answer_check(broadcast_check(in, out, action, position), &twin[1]);
		raised++;
	} else if (raises) { /* only the sender's own vector was there */
		demand(twin_cell(header->pos % rig.cells)->arrived == child_bit(header->child));
		broadcast_check(in, out, action, twin_cell(header->pos % rig.cells)->position);
	} else {
		demand(action == XDP_DROP);
	}
	if (verdict == ENGINE_DUPLICATE)
		rig.counts.verdicts[DENSE_DUPLICATE]++;
	else if (verdict == ENGINE_STALE)
		rig.counts.verdicts[DENSE_STALE]++;
	else if (verdict == ENGINE_AHEAD)
		rig.counts.verdicts[DENSE_AHEAD]++;
}

/* Does the checksum fit, as the daemon sees it? */
static bool is_intact(const struct packet *packet, uint32_t bytes)
{
	const struct wire_header *header = &packet->header;
	struct wire_unsent unsent;

	if (wire_parse(packet, bytes) != WIRE_SOUND || header->type != WIRE_DATA ||
	    header->comm != RIG_COMM)
		return false;
	unsent = rig_unsent(engine_slot.position(&rig.engine_twin, header));
	return wire_is_intact(header, bytes, &unsent);
}

/* Gives a frame to both. */
static enum engine_verdict agree(const struct frame *in, const struct packet *packet,
                                 uint32_t bytes)
{
	static struct engine_packet twin[2];
	static struct frame out;
	uint32_t action = rig_run(&rig, in, &out, 0);
	enum engine_verdict verdict = CORRUPTED;
	bool again = packet->header.flags & WIRE_RESENT;

	if (is_intact(packet, bytes))
		verdict = engine_slot.take(&rig.engine_twin, &packet->header, bytes - WIRE_HEADER,
		                           twin);
	tally[verdict]++;
	if (verdict == CORRUPTED) {
		pass_check(in, &out, action);
		rig_engine_compare(&rig);
	} else if (verdict == ENGINE_FINISHED || verdict == ENGINE_MISMATCH ||
	           verdict == ENGINE_STRANGER || (again && verdict == ENGINE_LOWER) ||
	           (again && verdict == ENGINE_ACK && twin[0].bytes)) {
		pass_check(in, &out, action);
		rig_engine_compare(&rig); /* acknowledgements were taken all the same */
		daemon_check(packet, bytes);
	} else {
		action_check(in, &out, action, &packet->header, verdict, twin);
		rig_engine_compare(&rig);
	}
	return verdict;
}

/* A vector in a frame of any shape. */
static enum engine_verdict give(const struct vector *vector)
{
	static struct packet packet;
	static struct frame frame;
	uint32_t bytes = packet_make(&packet, vector);

	frame_make(&frame, draw_shape(), vector->child, &packet, bytes);
	return agree(&frame, &packet, bytes);
}

/* The same with one bit wrong. */
static void give_corrupted(const struct vector *vector)
{
	static struct packet packet;
	static struct frame frame;
	uint32_t bytes = packet_make(&packet, vector), bit = (uint32_t)draw(8 * (uint64_t)bytes);

	((uint8_t *)&packet)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	frame_make(&frame, draw_shape(), vector->child, &packet, bytes);
	demand(agree(&frame, &packet, bytes) == CORRUPTED);
}

/* ---- one thing at a time ---- */

static struct vector vector_of(uint64_t position, uint8_t child)
{
	return (struct vector){
		.position = position, .child = child, .op = WIRE_ADD64, .to = WIRE_ALL, .bytes = 64
	};
}

static struct vector ack_of(uint64_t position, uint8_t child, uint8_t more)
{
	return (struct vector){ .position = position,
		                .ack = position,
		                .child = child,
		                .from = SLOT_ACKS | SLOT_BARE | more,
		                .to = WIRE_ALL };
}

/* A slot is used twice. */
static void test_reuse(void)
{
	struct vector vector;

	lane_new(2, 2, 0);
	for (uint64_t position = 0; position < 8; position += 2) {
		vector = vector_of(position, 0);
		demand(give(&vector) == ENGINE_ADDED);
		demand(give(&vector) == ENGINE_DUPLICATE);
		vector.child = 1;
		demand(give(&vector) == ENGINE_COMPLETE);
		demand(give(&vector) == ENGINE_FINISHED);
		vector = vector_of(position + 2, 0);
		demand(give(&vector) == ENGINE_AHEAD);
		vector = ack_of(position, 0, SLOT_WANTS);
		demand(give(&vector) == ENGINE_ACK);
		vector = ack_of(position, 1, 0);
		demand(give(&vector) == ENGINE_ACK);
		vector = ack_of(position, 0, SLOT_WANTS);
		demand(give(&vector) == ENGINE_ACK);
		vector = vector_of(position, 1);
		demand(give(&vector) == ENGINE_STALE);
	}
	demand(clear_told == 4);
}

/* Packets of the longest payload, and one that is longer. */
static void test_lengths(void)
{
	struct vector vector = vector_of(1, 0);

	lane_new(3, 4, FAR);
	vector.position = FAR + 1;
	vector.bytes = PAYLOAD;
	for (vector.child = 0; vector.child < 3; vector.child++)
		demand(give(&vector) == (vector.child < 2 ? ENGINE_ADDED : ENGINE_COMPLETE));
	vector.position++;
	vector.bytes = 0; /* a barrier */
	for (vector.child = 0; vector.child < 3; vector.child++)
		demand(give(&vector) == (vector.child < 2 ? ENGINE_ADDED : ENGINE_COMPLETE));
	rig_engine_lane(&rig, &engine_slot, 2, 4, 128, way);
	vector = vector_of(0, 0);
	vector.bytes = 136; /* the cell has room for it, but the lane does not want it */
	demand(give(&vector) == ENGINE_MISMATCH);
}

/* An operation begins anew at a higher scale. */
static void test_scales(void)
{
	struct vector vector = vector_of(0, 0);

	lane_new(3, 2, 0);
	demand(give(&vector) == ENGINE_ADDED);
	vector.scale = 3; /* the only vector is its own */
	demand(give(&vector) == ENGINE_ADDED);
	vector.child = 1;
	vector.scale = 2;
	demand(give(&vector) == ENGINE_LOWER);
	vector.flags = WIRE_RESENT; /* it passes: the first answer may not have arrived */
	demand(give(&vector) == ENGINE_LOWER && scale_told == 1);
	vector.flags = 0;
	vector.scale = 4;
	vector.bytes = 72; /* special values are behind the sums */
	demand(give(&vector) == ENGINE_ADDED && raised == 1);
	vector.child = 0;
	demand(give(&vector) == ENGINE_ADDED);
	vector.child = 2;
	vector.bytes = 64;
	demand(give(&vector) == ENGINE_MISMATCH);
	vector.bytes = 72;
	demand(give(&vector) == ENGINE_COMPLETE);
}

/* What the program passes without a look: it changes nothing. */
static void passes(const struct vector *vector)
{
	static struct packet packet;
	static struct frame frame, out;
	uint32_t bytes = packet_make(&packet, vector);

	frame_make(&frame, draw_shape(), vector->child, &packet, bytes);
	pass_check(&frame, &out, rig_run(&rig, &frame, &out, 0));
	rig_engine_compare(&rig);
}

/* The daemon works on the cell, or no longer. */
static void cell_hold(uint32_t index, uint32_t held)
{
	engine_cell(&rig.engine_pool, index)->lock = held;
	engine_cell(&rig.engine_twin, index)->lock = held;
}

static void test_passes(void)
{
	struct vector vector = vector_of(0, 0);

	lane_new(2, 2, 0);
	rig.lane->entries = 1; /* the route to a child is unknown */
	passes(&vector);
	rig.lane->entries = 2;
	rig.lane->active = 0;
	passes(&vector);
	rig.lane->active = 1;
	cell_hold(0, 1);
	passes(&vector);
	cell_hold(0, 0);
	demand(give(&vector) == ENGINE_ADDED);
	vector = ack_of(0, 5, SLOT_WANTS);
	demand(give(&vector) == ENGINE_STRANGER);
}

/* An acknowledgement for a cell that is busy is lost. The vector that it came with is not. */
static void test_busy_ack(void)
{
	static struct packet packet;
	static struct frame frame, out;
	struct vector vector = vector_of(0, 0);
	const struct slot_cell *cell;
	uint32_t bytes;

	lane_new(2, 2, 0);
	demand(give(&vector) == ENGINE_ADDED);
	vector.child = 1;
	demand(give(&vector) == ENGINE_COMPLETE);
	vector = vector_of(1, 1);
	vector.from = SLOT_ACKS;
	bytes = packet_make(&packet, &vector);
	frame_make(&frame, draw_shape(), 1, &packet, bytes);
	engine_cell(&rig.engine_pool, 0)->lock = 1;
	demand(rig_run(&rig, &frame, &out, 0) == XDP_DROP);
	engine_cell(&rig.engine_pool, 0)->lock = 0;
	cell = (const struct slot_cell *)engine_cell(&rig.engine_pool, 0)->own;
	demand(cell->complete && !cell->acked);
	cell = (const struct slot_cell *)engine_cell(&rig.engine_pool, 1)->own;
	demand(cell->arrived == child_bit(1));
}

/* The sum over addresses, protocol and length of a frame, as UDP's checksum begins with. */
static uint16_t pseudo_sum(const struct frame *frame)
{
	const uint8_t *udp = frame->data + frame->at - 8;
	uint32_t bytes = frame->l3 == 40 ? 32 : 8, sum = 17 + ((uint32_t)udp[4] << 8 | udp[5]);

	for (const uint8_t *at = udp - bytes; at < udp; at += 2)
		sum += (uint32_t)at[0] << 8 | at[1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static uint16_t udp_sum(const struct frame *frame)
{
	return (uint16_t)(frame->data[frame->at - 2] << 8 | frame->data[frame->at - 1]);
}

/* The kernel leaves checksums of packets that are made on this machine to the card. */
static void test_local(void)
{
	static struct packet packet;
	static struct frame frame, out;
	struct vector vector = vector_of(0, 0);

	for (unsigned i = 0; i < 2 * SHAPES; i++) {
		bool local = i % 2;
		uint32_t bytes;

		way = &shapes[i / 2];
		rig_engine_lane(&rig, &engine_slot, 2, 2, PAYLOAD, way);
		vector.child = 0;
		demand(give(&vector) == ENGINE_ADDED);
		vector.child = 1;
		bytes = packet_make(&packet, &vector);
		frame_make(&frame, way, 1, &packet, bytes);
		frame.data[frame.at - 2] = (uint8_t)(pseudo_sum(&frame) >> 8);
		frame.data[frame.at - 1] = (uint8_t)(pseudo_sum(&frame) + !local);
		demand(rig_run(&rig, &frame, &out, 0) == XDP_REDIRECT);
		demand(udp_sum(&out) == (local ? pseudo_sum(&out) : 0));
	}
}

/* ---- random packets ---- */

/* Mostly a child that is still missing, so that sums get on. `has`: those that are there. */
static uint8_t draw_child(uint64_t has)
{
	uint8_t child = (uint8_t)draw(rig.children);

	for (unsigned i = 0; i < rig.children && has & child_bit(child) && !one_in(8); i++)
		child = (uint8_t)((child + 1) % rig.children);
	return one_in(200) ? (uint8_t)(rig.children + draw(64 - rig.children)) : child;
}

/* The operation of a slot, or rarely its last or next one, or one that is far away. */
static uint64_t draw_position(uint32_t index)
{
	uint64_t position = twin_cell(index)->position;

	if (one_in(16))
		position -= rig.cells;
	else if (one_in(16))
		position += rig.cells;
	else if (one_in(200))
		position += draw(1 << 20) * rig.cells;
	return position & WIRE_POSITION_MASK;
}

static void bend(struct vector *vector)
{
	switch (draw(5)) {
	case 0:
		vector->op = (uint8_t)draw(WIRE_OPS_END);
		break;
	case 1:
		vector->flags = (uint8_t)draw(256);
		break;
	case 2:
		vector->to = (uint8_t)draw(64);
		break;
	case 3:
		vector->bytes = (uint32_t)draw(PAYLOAD / 8 + 1) * 8;
		break;
	default:
		vector->from |= SLOT_CLEAR | SLOT_RAISE; /* means nothing in DATA */
	}
}

static struct vector draw_vector(void)
{
	uint32_t index = (uint32_t)draw(rig.cells), other = (uint32_t)draw(rig.cells);
	struct vector vector = vector_at(draw_position(index));

	vector.child = draw_child(twin_cell(index)->arrived);
	vector.scale = (uint16_t)(one_in(8) ? draw(4) : twin_cell(index)->scale);
	if (vector.scale & 2)
		vector.bytes += 8; /* special values */
	if (!one_in(3)) {
		vector.from = SLOT_ACKS;
		vector.ack = draw_position(other);
	}
	if (one_in(4))
		vector.flags |= WIRE_RESENT;
	if (one_in(40))
		bend(&vector);
	return vector;
}

/* An acknowledgement alone names the same operation twice. */
static struct vector draw_ack(void)
{
	uint32_t index = (uint32_t)draw(rig.cells);
	struct vector vector = ack_of(draw_position(index), 0, one_in(2) ? SLOT_WANTS : 0);

	vector.child = draw_child(twin_cell(index)->acked);
	vector.flags = one_in(4) ? WIRE_RESENT : 0;
	return vector;
}

static void step(void)
{
	struct vector vector = one_in(3) ? draw_ack() : draw_vector();

	if (one_in(40))
		give_corrupted(&vector);
	else
		give(&vector);
	if (one_in(20)) /* the network duplicates packets */
		give(&vector);
}

static void run(uint64_t packets)
{
	memset(tally, 0, sizeof(tally));
	clear_told = scale_told = raised = 0;
	for (uint64_t i = 0; i < packets; i++) {
		if (i % ROUND == 0) {
			uint32_t slots = 2u << draw(4);

			lane_new((uint32_t)(2 + draw(7)), slots, one_in(2) ? 0 : FAR);
		}
		step();
	}
	printf("taken, by verdict, the last corrupted:");
	for (unsigned i = 0; i <= CORRUPTED; i++)
		printf(" %llu", (unsigned long long)tally[i]);
	printf("; told: %llu clear, %llu lower, %llu raised\n", (unsigned long long)clear_told,
	       (unsigned long long)scale_told, (unsigned long long)raised);
	/* Every fate occurs often enough to prove something. */
	for (unsigned i = 0; i <= CORRUPTED; i++)
		demand(i == ENGINE_REFUSED || i == ENGINE_SUMMED || tally[i] > packets / 1000);
	demand(clear_told > packets / 1000 && raised > packets / 1000);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : clock_now();
	uint64_t packets = argc > 2 ? strtoull(argv[2], NULL, 0) : test_cases("packets", 300000);

	printf("seed %llu, %llu packets\n", (unsigned long long)seed, (unsigned long long)packets);
	fflush(stdout);
	random_state = seed;
	for (int tc = 0; tc < 2; tc++) {
		printf("%s\n", tc ? "tc" : "XDP");
		(tc ? rig_load_tc : rig_load)(&rig, PAYLOAD + 64);
		random_state = seed;
		clear_told = scale_told = raised = 0;
		test_reuse();
		test_lengths();
		test_scales();
		test_passes();
		test_busy_ack();
		if (tc)
			test_local();
		run(packets);
		rig_unload(&rig);
	}
	return 0;
}
