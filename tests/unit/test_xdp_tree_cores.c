/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concurrency in the middle of a tree. Two cores run the XDP program on frames of children, with
 * lower and higher scales, and on the parent's results, while a third thread does the daemon's work
 * on the same cells. Every packet that goes up must be a whole sum at one scale, every packet down
 * the parent's result, and every fragment is complete once.
 */
#include "engine/cell_lock.h"
#include "xdp_rig.h"

#include "wire/parse.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define CHILDREN 4u
#define PAYLOAD 1448u
#define WORDS (PAYLOAD / 8)
#define BY_DAEMON 3u /* the child whose packets come through a socket, every fourth only there */

static struct rig rig;
static uint64_t fragments;                               /* in a run */
static uint64_t up_by_kernel, up_by_daemon, low_went_up; /* numbers of sums */
static uint64_t down_by_daemon;                          /* number of results */

/* Odd fragments are added after the check, even ones during it. */
static uint8_t op_of(uint64_t position)
{
	return position % 2 ? WIRE_ADD32 : WIRE_ADD64;
}

static struct rig_data data_of(uint64_t position, uint8_t child, uint16_t scale)
{
	return DATA(position, child, .ack = (uint32_t)position, .op = op_of(position),
	            .bytes = PAYLOAD, .scale = scale, .seed = position * 1000 + child * 10 + scale);
}

/* The parent's result: any other vector. */
static struct rig_data result_of(uint64_t position)
{
	return DATA(position, 0, .ack = (uint32_t)rig.dense->settled, .op = op_of(position),
	            .bytes = PAYLOAD, .scale = 1, .seed = ~position);
}

static struct dense_cell *cell_of(uint64_t position)
{
	return dense_cell(&rig.pool, dense_index(rig.dense, position));
}

/* Complete, or the cell holds another fragment by now. */
static bool is_done(uint64_t position)
{
	struct dense_cell *cell = cell_of(position);
	bool done;

	cell_lock(&cell->lock);
	done = cell->position != DENSE_EMPTY &&
	       (cell->position > position || (cell->position == position && cell->complete));
	cell_unlock(&cell->lock);
	return done;
}

static void pin(unsigned core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	demand(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/* A sum that goes up is that of all children at its scale. */
static void sum_is_whole(const struct wire_header *header, const uint64_t *words)
{
	uint64_t position = header->pos; /* small enough */
	uint64_t wanted[WORDS];
	struct packet *packet = malloc(sizeof(*packet));

	demand(packet && header->scale <= 1);
	for (uint8_t child = 0; child < CHILDREN; child++) {
		struct rig_data data = data_of(position, child, header->scale);

		packet_data(packet, &data);
		if (!child)
			combine_copy(wanted, packet->words, PAYLOAD);
		else
			combine(op_of(position), wanted, packet->words, PAYLOAD);
	}
	demand(!memcmp(words, wanted, PAYLOAD));
	free(packet);
	if (!header->scale)
		__atomic_fetch_add(&low_went_up, 1, __ATOMIC_RELAXED);
}

/* ---- in the kernel ---- */

/*
 * A thread that sends in the kernel: for its own child, for those that both send for, and the
 * parent's results.
 */
struct sender {
	pthread_t id;
	unsigned core;
	uint8_t children[3];
	uint64_t random;
	struct frame frames[3], lows[3], result;
	struct frame out;
	struct packet packet;
};

static void frame_result(struct sender *sender, struct frame *frame, uint64_t position)
{
	struct rig_data data = result_of(position);

	frame_make(frame, &shape_plain, RIG_PARENT, &sender->packet,
	           packet_result(&sender->packet, &data));
}

/* The outgoing packet is valid and right. */
static void look(struct sender *sender, const struct frame *in)
{
	struct wire_header *header = &sender->packet.header;
	uint32_t bytes = sender->out.bytes - in->at;
	struct wire_unsent unsent;

	memcpy(&sender->packet, sender->out.data + in->at, bytes);
	demand(wire_parse(&sender->packet, bytes) == WIRE_SOUND);
	unsent = header->type == WIRE_DATA ? rig_parent_unsent(header->pos)
	                                   : rig_unsent(header->pos);
	demand(wire_is_intact(header, bytes, &unsent));
	if (header->type == WIRE_DATA) {
		sum_is_whole(header, sender->packet.words);
		__atomic_fetch_add(&up_by_kernel, 1, __ATOMIC_RELAXED);
	} else {
		uint64_t position = header->pos, wanted[2];

		demand(header->type == WIRE_RESULT);
		wanted[0] = rig_random(&(uint64_t){ ~position });
		demand(header->scale == 1 && sender->packet.words[0] == wanted[0]);
	}
}

static void send_one(struct sender *sender, const struct frame *frame)
{
	struct xdp_run run = {
		.in = frame->data, .bytes = frame->bytes, .out = sender->out.data, .ifindex = RIG_LO
	};

	demand(xdp_run(rig.plane, &run) == TRIB_OK);
	sender->out.bytes = run.out_bytes;
	if (run.action == XDP_TX)
		look(sender, frame);
}

/* The sum has gone up at the higher scale, from kernel or daemon: the parent may answer. */
static bool is_up(uint64_t position)
{
	struct dense_cell *cell = cell_of(position);
	bool up;

	cell_lock(&cell->lock);
	up = cell->position == position && cell->summed && cell->scale == 1 &&
	     (cell->queued == UPLINK_RAISED || cell->queued == UPLINK_NOT);
	cell_unlock(&cell->lock);
	return up;
}

/* First with a lower scale, which the others may have too; then until the fragment is complete. */
static void send_fragment(struct sender *sender, uint64_t position)
{
	unsigned n = position % 4 ? 3 : 2;

	for (unsigned i = 0; i < n; i++) {
		struct rig_data data = data_of(position, sender->children[i], 1);
		struct rig_data low = data_of(position, sender->children[i], 0);

		frame_data(&sender->frames[i], &shape_plain, &data);
		frame_data(&sender->lows[i], &shape_plain, &low);
	}
	for (unsigned i = 0; !is_done(position); i++) {
		if (i < n + rig_random(&sender->random) % 8)
			send_one(sender, &sender->lows[i % n]);
		else
			send_one(sender, &sender->frames[i % n]);
		if (is_up(position)) {
			frame_result(sender, &sender->result, position);
			send_one(sender, &sender->result);
		}
		if (i % 2)
			sched_yield(); /* there may be fewer cores than threads */
	}
}

static void *sender_main(void *argument)
{
	struct sender *sender = argument;

	pin(sender->core);
	for (uint64_t position = 0; position < fragments; position++)
		send_fragment(sender, position);
	return NULL;
}

/* ---- beside it: as plane/lane does it ---- */

static void daemon_send_up(struct uplink *up)
{
	static uint64_t words[WORDS];
	uint64_t position;

	while (uplink_next(up, rig.dense, &position)) {
		struct dense_cell *cell = cell_of(position);
		uint32_t index = dense_index(rig.dense, position);
		struct wire_header header = { .pos = (uint32_t)position };
		bool is_there;

		cell_lock(&cell->lock);
		is_there = uplink_claim(cell, position);
		if (is_there) {
			header.scale = cell->scale;
			memcpy(words, dense_packet(&rig.pool, index) + WIRE_HEADER, PAYLOAD);
			uplink_raise(up, rig.dense, cell, 0);
		}
		cell_unlock(&cell->lock);
		if (is_there) {
			sum_is_whole(&header, words);
			up_by_daemon++;
		}
	}
}

static void daemon_take(struct uplink *up, const struct packet *packet)
{
	uint64_t position = dense_position(rig.dense, &packet->header);
	struct dense_cell *cell = cell_of(position);
	uint32_t index = dense_index(rig.dense, position);
	enum dense_verdict verdict;

	cell_lock(&cell->lock);
	verdict = dense_take(rig.dense, cell, dense_packet(&rig.pool, index) + WIRE_HEADER,
	                     &packet->header, packet->words, PAYLOAD);
	/* A sum that the kernel left comes with the packet that it passed. */
	if (verdict == DENSE_SUMMED || (cell->position == position && uplink_is_left(cell)))
		uplink_push(up, rig.dense, cell);
	cell_unlock(&cell->lock);
}

static void daemon_lower(uint64_t position)
{
	static struct packet packet;
	struct dense_cell *cell = cell_of(position);
	uint32_t index = dense_index(rig.dense, position);
	struct rig_data data = result_of(position);

	packet_result(&packet, &data);
	cell_lock(&cell->lock);
	down_by_daemon += uplink_take(rig.dense, cell, dense_packet(&rig.pool, index) + WIRE_HEADER,
	                              &packet.header, packet.words, PAYLOAD) == DENSE_COMPLETE;
	cell_unlock(&cell->lock);
}

/* Complete at the higher scale, unless the next fragment is already in the cell. */
static bool is_right(uint64_t position)
{
	struct dense_cell *cell = cell_of(position);
	bool right;

	cell_lock(&cell->lock);
	right = cell->position > position || (cell->position == position && cell->scale == 1);
	cell_unlock(&cell->lock);
	return right;
}

static void daemon_main(void)
{
	static struct packet packet, low;
	static uint64_t ring[64];
	struct uplink up = { .ring = ring };
	uint64_t random = fragments, last = 0;

	for (uint64_t position = 0; position < fragments; position++) {
		struct rig_data data = data_of(position, BY_DAEMON, 1);
		struct rig_data low_data = data_of(position, BY_DAEMON, 0);

		packet_data(&packet, &data);
		packet_data(&low, &low_data);
		for (unsigned i = 0; !is_done(position); i++) {
			struct xdp_parent *parent = &rig.lane->parent;

			daemon_take(&up, i < 4 ? &low : &packet);
			daemon_send_up(&up);
			if (rig_random(&random) % 8 == 0 && is_up(position))
				daemon_lower(position);
			__atomic_store_n(&parent->allowed,
			                 parent->launched + rig_random(&random) % 8,
			                 __ATOMIC_RELAXED);
			uplink_settle(&up, rig.dense, &rig.pool);
			uplink_low(rig.dense, rig.dense->settled); /* the parent is as far */
			demand(rig.dense->low >= last);
			last = rig.dense->low;
			sched_yield();
		}
		demand(is_right(position));
	}
}

static void run(uint32_t cells, uint64_t n)
{
	static struct sender senders[2];
	struct xdp_counts before, after;

	fragments = n;
	up_by_kernel = up_by_daemon = low_went_up = down_by_daemon = 0;
	rig_lane(&rig, CHILDREN, cells, PAYLOAD);
	rig_routes(&rig, &shape_plain);
	rig.lane->entries = 1;
	rig_parent(&rig, &shape_plain);
	xdp_count(rig.plane, &before);
	for (unsigned i = 0; i < 2; i++) {
		senders[i].core = i;
		senders[i].children[0] = (uint8_t)(1 + i);
		senders[i].children[1] = 0;
		senders[i].children[2] = BY_DAEMON;
		senders[i].random = cells * 100 + i;
		demand(!pthread_create(&senders[i].id, NULL, sender_main, &senders[i]));
	}
	daemon_main();
	for (unsigned i = 0; i < 2; i++)
		demand(!pthread_join(senders[i].id, NULL));
	xdp_count(rig.plane, &after);
	printf("%u cells: %llu fragments; up %llu by the kernel, %llu by the daemon, %llu of a "
	       "lower "
	       "scale, %llu left; down %llu by the kernel, %llu by the daemon; %llu times busy\n",
	       cells, (unsigned long long)n, (unsigned long long)up_by_kernel,
	       (unsigned long long)up_by_daemon, (unsigned long long)low_went_up,
	       (unsigned long long)(after.left - before.left),
	       (unsigned long long)(after.lowered - before.lowered),
	       (unsigned long long)down_by_daemon, (unsigned long long)(after.busy - before.busy));
	demand(after.lowered - before.lowered + down_by_daemon == n);
	demand(after.raised - before.raised == up_by_kernel);
	demand(rig.lane->parent.launched == up_by_kernel);
	demand(!(after.verdicts[TAKEN_CORRUPTED] - before.verdicts[TAKEN_CORRUPTED]));
	demand(up_by_kernel && up_by_daemon && after.lowered > before.lowered);
}

int main(void)
{
	uint64_t n = test_count("fragments", test_is_long() ? 600 : 200, 100);
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set)) {
		printf("skipped: it takes cores 0 and 1\n");
		return 77;
	}
	rig_load(&rig, PAYLOAD);
	run(1, n);
	run(3, n);
	run(16, n);
	rig_unload(&rig);
	return 0;
}
