/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine's program in the kernel and the same engine in user space agree: on what
 * becomes of each packet, on the answer, on all cells and on all counters. Packets are nearly
 * valid: repeats, other maps, rows that do not ascend, values that are too large, full blocks,
 * packets of the server.
 *
 * The program adds what a worker pushes for the first time, if nobody else has to hear of it. The
 * other packets pass to the daemon, and the test does what the daemon does.
 *
 *   test_xdp_sparse [SEED [PACKETS]]
 */
#include "sparse_packets.h"
#include "wire/parse.h"
#include "xdp_rig.h"

#include <string.h>

#define ROUND 1500u /* packets until there is a new lane */
#define PAYLOAD 1024u
#define FAR 0xfffffff0ull /* sequence numbers from here on soon need more than 32 bits */

static struct rig rig;
static uint64_t random_state;
static const struct shape *way; /* the shape of the routes to children */
static uint64_t tally[ENGINE_VERDICTS_END], added, left;

static uint64_t draw(uint64_t below)
{
	return rig_random(&random_state) % below;
}

static bool one_in(uint64_t n)
{
	return draw(n) == 0;
}

static struct sparse_lane *twin(void)
{
	return (struct sparse_lane *)&rig.engine_state;
}

static struct sparse_cell *twin_cell(uint32_t index)
{
	return sparse_state(engine_cell(&rig.engine_twin, index));
}

/* ---- kernel and twin ---- */

/* Both daemons take the packet. Both sides then have the same cells and answers. */
static enum engine_verdict daemon_takes(const union sparse_packet *packet, uint32_t bytes)
{
	static struct engine_packet ours[2], twins[2];
	enum engine_verdict how =
		engine_sparse.take(&rig.engine_pool, &packet->header, bytes, ours);

	demand(engine_sparse.take(&rig.engine_twin, &packet->header, bytes, twins) == how);
	for (unsigned i = 0; i < 2; i++) {
		demand(ours[i].bytes == twins[i].bytes);
		if (!ours[i].bytes)
			continue;
		demand(ours[i].to == twins[i].to && ours[i].position == twins[i].position);
		demand(!memcmp(ours[i].data, twins[i].data, ours[i].bytes));
	}
	rig_engine_compare(&rig);
	return how;
}

/* The short answer to the child is the twin's. */
static void answer_check(const struct frame *frame, uint32_t action, unsigned child,
                         const struct engine_packet *want)
{
	const struct wire_unsent unsent = rig_unsent(want->position);
	uint8_t head[XDP_HEAD_MAX];
	uint32_t at = head_make(head, way, child, WIRE_HEADER);
	struct wire_header header;

	demand(action == XDP_TX && want->bytes == WIRE_HEADER && want->to == child_bit(child));
	demand(frame->bytes == at + WIRE_HEADER && !memcmp(frame->data, head, at));
	memcpy(&header, frame->data + at, WIRE_HEADER);
	demand(wire_parse(&header, WIRE_HEADER) == WIRE_SOUND && header.comm == RIG_COMM);
	demand(wire_is_intact(&header, WIRE_HEADER, &unsent));
	header.magic = header.comm = 0;
	header.check = 0;
	demand(!memcmp(&header, want->data, WIRE_HEADER));
}

/* Is it a packet that the program adds? */
static bool is_kernels(const union sparse_packet *packet, uint32_t bytes)
{
	const struct wire_header *header = &packet->header;
	const void *payload = packet->words + WIRE_HEADER / 8;
	const struct sparse_cell *record;
	uint32_t addends;

	if (header->op != SPARSE_PUSH || header->flags & WIRE_RESENT ||
	    header->from & (uint8_t)~SPARSE_URGENT || !sparse_knows(twin(), header->child) ||
	    sparse_is_server(twin(), header->child))
		return false;
	record = twin_cell(header->child);
	if (sparse_find(record, wire_widen(header->pos, record->low)) != SPARSE_FRESH ||
	    !sparse_is_current(twin(), header) || sparse_is_closed(twin()) ||
	    (header->from && !twin()->told) ||
	    !sparse_bank_is_sound(twin(), payload, bytes, true) ||
	    !((const struct sparse_rows *)payload)->n)
		return false;
	addends = sparse_bank_addends(&rig.engine_twin, payload);
	return addends < (twin()->told ? SPARSE_ADDENDS : SPARSE_ADDENDS_MANY - 1);
}

static void pass_check(const struct frame *in, const struct frame *out, uint32_t action)
{
	demand(action == XDP_PASS);
	demand(out->bytes == in->bytes && !memcmp(out->data, in->data, in->bytes));
	rig_engine_compare(&rig);
}

/* Gives the packet to both. */
static enum engine_verdict give(union sparse_packet *packet, uint32_t bytes)
{
	static struct engine_packet want[2];
	static struct frame in, out;
	const struct wire_unsent unsent =
		rig_unsent(engine_sparse.position(&rig.engine_twin, &packet->header));
	enum engine_verdict verdict;
	uint32_t action;

	packet->header.comm = RIG_COMM;
	wire_seal_fragment(packet, WIRE_HEADER + bytes, &unsent);
	frame_make(&in, &shapes[draw(SHAPES)], packet->header.child, packet, WIRE_HEADER + bytes);
	action = rig_run(&rig, &in, &out, 0);
	if (!is_kernels(packet, bytes)) {
		pass_check(&in, &out, action);
		verdict = daemon_takes(packet, bytes);
		left++;
	} else {
		verdict = engine_sparse.take(&rig.engine_twin, &packet->header, bytes, want);
		demand(verdict == ENGINE_ADDED && !want[1].bytes);
		answer_check(&out, action, packet->header.child, &want[0]);
		rig.counts.added++;
		rig.counts.payload += bytes;
		rig.counts.sends++;
		rig.twin_last[packet->header.child]++;
		rig_engine_compare(&rig);
		added++;
	}
	tally[verdict]++;
	return verdict;
}

/* ---- lanes ---- */

static union sparse_packet packet;

static uint8_t server(void)
{
	return (uint8_t)(rig.children - 1);
}

static void lane_new(uint32_t children, uint32_t cells, uint32_t payload, uint32_t width,
                     uint64_t first, enum sparse_sums kind)
{
	uint32_t layout = SPARSE_VALUES | (one_in(3) ? SPARSE_ONE_BANK : 0);
	uint32_t rows = sparse_rows_max(cells, payload, width, layout);

	way = &shapes[draw(SHAPES)];
	rig_engine_lane(&rig, &engine_sparse, children, cells, payload, way);
	for (unsigned i = 0; i < children; i++) {
		sparse_state(engine_cell(&rig.engine_pool, i))->low = first;
		twin_cell(i)->low = first;
	}
	sparse_set(&packet, server(), width, rows, layout);
	((struct sparse_setup *)sparse_payload(&packet))->kind = kind;
	give(&packet, sizeof(struct sparse_setup));
	demand(twin()->setup.width == width);
}

static enum engine_verdict push_one(uint8_t child, uint64_t sequence, uint16_t row, uint32_t value)
{
	sparse_bare(&packet, SPARSE_PUSH, child, (uint32_t)sequence, (uint16_t)twin()->generation);
	return give(&packet, sparse_fill(&packet, &row, 1, 1, &value));
}

/* ---- one thing at a time ---- */

/* A block takes what fits; the server is told by the daemon. */
static void test_full(void)
{
	uint64_t before;

	lane_new(2, 16, 256, 1, FAR, SPARSE_FIXED);
	before = added;
	for (uint32_t i = 0; i < SPARSE_ADDENDS; i++)
		demand(push_one(0, FAR + i, 60, 1) == ENGINE_ADDED);
	demand(added == before + SPARSE_ADDENDS - 1); /* all but the one that told the server */
	demand(push_one(0, FAR + SPARSE_ADDENDS, 60, 1) == ENGINE_AHEAD);
	demand(push_one(0, FAR + SPARSE_ADDENDS, 70, 1) == ENGINE_ADDED);
}

/* What the program passes because of a lock. It changes nothing. */
static void test_locks(void)
{
	const uint16_t rows[] = { 3, 100, 200 };
	const uint32_t values[] = { 1, 2, 3 };
	static struct frame in, out;
	uint32_t *locks[4], bytes;
	struct wire_unsent unsent = rig_unsent(0);

	lane_new(2, 16, 256, 1, 0, SPARSE_FIXED);
	sparse_bare(&packet, SPARSE_PUSH, 0, 0, 0);
	packet.header.comm = RIG_COMM;
	bytes = sparse_fill(&packet, rows, 3, 1, values);
	wire_seal_fragment(&packet, WIRE_HEADER + bytes, &unsent);
	frame_make(&in, way, 0, &packet, WIRE_HEADER + bytes);
	locks[0] = &sparse_state(engine_cell(&rig.engine_pool, 0))->more; /* the child's */
	for (uint32_t i = 1; i < 4; i++) /* those of blocks 0, 1 and 3, with 62 rows each */
		locks[i] = &engine_cell(&rig.engine_pool, rows[i - 1] / 62)->lock;
	for (unsigned i = 0; i < 4; i++) {
		*locks[i] = 1;
		demand(rig_run(&rig, &in, &out, 0) == XDP_PASS);
		demand(*locks[i] == 1);
		*locks[i] = 0;
		rig_engine_compare(&rig);
	}
	rig.lane->routes[0].ifindex = 0; /* the route is unknown */
	pass_check(&in, &out, rig_run(&rig, &in, &out, 0));
	rig.lane->routes[0].ifindex = RIG_LO;
	rig.lane->active = 0;
	pass_check(&in, &out, rig_run(&rig, &in, &out, 0));
	rig.lane->active = 1;
	in.data[in.bytes - 3] ^= 1; /* corrupted */
	pass_check(&in, &out, rig_run(&rig, &in, &out, 0));
	demand(give(&packet, bytes) == ENGINE_ADDED);
}

/* The widest row, and the most rows. */
static void test_lengths(void)
{
	static uint16_t rows[XDP_PAYLOAD_MAX];
	static uint32_t values[XDP_PAYLOAD_MAX];
	uint32_t fit = sparse_rows_fit(PAYLOAD, 1), wide = (PAYLOAD - 16) / 4;

	for (uint32_t i = 0; i < XDP_PAYLOAD_MAX; i++) {
		rows[i] = (uint16_t)i;
		values[i] = i % 2 ? 1u << 21 : -(1u << 21);
	}
	lane_new(3, 64, PAYLOAD, 1, 0, SPARSE_FIXED);
	for (uint32_t n = 1; n <= fit; n += n < 12 ? 1 : 7) {
		uint64_t before = added;

		sparse_bare(&packet, SPARSE_PUSH, 1, n, 0);
		demand(give(&packet, sparse_fill(&packet, rows, n, 1, values)) == ENGINE_ADDED);
		demand(added == before + 1);
	}
	lane_new(3, 64, PAYLOAD, wide, 0, SPARSE_TABLE);
	sparse_bare(&packet, SPARSE_PUSH, 1, 0, 0);
	demand(give(&packet, sparse_fill(&packet, &rows[20], 1, wide, values)) == ENGINE_ADDED);
	demand(twin()->per_block == 1 && twin_cell(20)->addends == 1);
}

/* ---- random packets ---- */

static uint32_t number;

static uint32_t draw_rows(uint16_t *rows, uint32_t most)
{
	uint32_t n = (uint32_t)draw(most + 1), all = twin()->setup.rows, i;
	uint32_t row = (uint32_t)draw(one_in(3) ? all : all / 8 + 1);

	for (i = 0; i < n && row < all; i++) {
		rows[i] = (uint16_t)row;
		row += 1 + (one_in(4) ? (uint32_t)draw(all / 8 + 1) : 0);
	}
	return i;
}

/* Bends a PUSH. */
static uint32_t bend(uint32_t bytes)
{
	struct sparse_rows *head = sparse_payload(&packet);
	uint32_t *last = (uint32_t *)(packet.words + (WIRE_HEADER + bytes) / 8) - 2;

	switch (draw(9)) {
	case 0:
		packet.header.scale ^= 1;
		return bytes;
	case 1:
		packet.header.flags = (uint8_t)draw(256);
		return bytes;
	case 2:
		packet.header.from = (uint8_t)draw(8);
		return bytes;
	case 3:
		packet.header.child = (uint8_t)draw(64);
		return bytes;
	case 4:
		head->n = (uint16_t)(head->n + draw(3) - 1);
		return bytes;
	case 5:
		head->width = (uint16_t)(head->width + draw(3) - 1);
		return bytes;
	case 6:
		sparse_numbers(head)[draw(4)] = (uint16_t)draw(twin()->setup.rows + 5);
		return bytes;
	case 7:
		last[0] = draw(2) ? (1 << 21) + 1 : -(1u << 21) - 1;
		return bytes;
	default:
		return (uint32_t)draw(bytes / 8 + 1) * 8;
	}
}

static uint32_t draw_value(void)
{
	if (twin()->setup.kind == SPARSE_TABLE) /* any float; mostly of like magnitude */
		return (uint32_t)(one_in(20) ? draw(1ull << 32)
		                             : (draw(2) << 31 | (120 + draw(12)) << 23 |
		                                draw(1 << 23)));
	return (uint32_t)draw((2 << 21) + 1) - (1u << 21);
}

static void push_random(void)
{
	static uint16_t rows[XDP_PAYLOAD_MAX];
	static uint32_t values[XDP_PAYLOAD_MAX];
	uint8_t child = (uint8_t)draw(rig.children - 1);
	uint32_t width = twin()->setup.width, bytes;
	uint32_t n = draw_rows(rows, sparse_rows_fit(rig.payload, width));
	uint64_t sequence = twin_cell(child)->low + draw(one_in(6) ? 260 : 2) - one_in(20);

	for (uint32_t i = 0; i < n * width; i++)
		values[i] = draw_value();
	sparse_bare(&packet, SPARSE_PUSH, child, (uint32_t)sequence, (uint16_t)twin()->generation);
	packet.header.from = one_in(30) ? SPARSE_URGENT : 0;
	bytes = sparse_fill(&packet, rows, n, width, values);
	give(&packet, one_in(6) ? bend(bytes) : bytes);
}

static void serve_random(void)
{
	static const uint8_t kinds[] = { SPARSE_FREEZE, SPARSE_READ, SPARSE_RELEASE, SPARSE_WRITE };
	enum sparse_kind kind = kinds[draw(4)];
	uint32_t pos = twin()->epoch + (kind == SPARSE_FREEZE && !twin()->is_frozen);
	uint32_t bytes = 0;

	sparse_bare(&packet, kind, server(), kind == SPARSE_WRITE ? ++number : pos,
	            (uint16_t)(twin()->generation + one_in(4)));
	if (kind == SPARSE_READ)
		packet.header.ack =
			(uint32_t)draw(sparse_pages(rig.payload, twin()->blocks) + 1ull);
	if (kind == SPARSE_WRITE) {
		uint64_t bits = draw(twin()->per_block < 64 ? 1ull << twin()->per_block : ~0ull);

		packet.header.ack = (uint32_t)draw(twin()->blocks);
		*(uint64_t *)sparse_payload(&packet) = bits;
		bytes = sparse_block_bytes((uint32_t)__builtin_popcountll(bits),
		                           twin()->setup.width);
	}
	give(&packet, bytes);
}

static void run_random(uint64_t packets)
{
	for (uint64_t i = 0; i < packets; i++) {
		if (i % ROUND == 0)
			lane_new(2 + (uint32_t)draw(6), one_in(2) ? 32 : 64,
			         (uint32_t)draw((PAYLOAD - 256) / 8 + 1) * 8 + 256,
			         1 + (uint32_t)draw(one_in(2) ? 3 : 40), one_in(2) ? 0 : FAR,
			         one_in(3) ? SPARSE_TABLE : SPARSE_FIXED);
		if (one_in(40))
			serve_random();
		else
			push_random();
	}
}

int main(int argc, char **argv)
{
	uint64_t packets;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	packets = argc > 2 ? strtoull(argv[2], NULL, 10) : test_cases("packets", 60000);
	rig_load(&rig, PAYLOAD);
	test_full();
	test_locks();
	test_lengths();
	run_random(packets);
	printf("%llu packets added in the kernel, %llu left to the daemon\n",
	       (unsigned long long)added, (unsigned long long)left);
	for (unsigned i = 0; i < ENGINE_VERDICTS_END; i++)
		printf("verdict %u: %llu\n", i, (unsigned long long)tally[i]);
	demand(added > packets / 2 && tally[ENGINE_STALE] && tally[ENGINE_AHEAD] &&
	       tally[ENGINE_DUPLICATE] && tally[ENGINE_STRANGER] && tally[ENGINE_ACK]);
	rig_unload(&rig);
	return 0;
}
