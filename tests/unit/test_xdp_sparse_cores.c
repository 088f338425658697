/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two cores run the sparse engine's program on packets of two workers, while a third thread pushes,
 * freezes, reads and releases as the daemon does. Every flush has exactly the packets that its
 * records name, and at the end each packet was in one of them.
 */
#include "sparse_packets.h"
#include "wire/parse.h"
#include "xdp_rig.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define WORKERS 3u
#define BY_DAEMON 2u /* the worker whose packets arrive through a socket */
#define SERVER WORKERS
#define PAYLOAD 512u
#define WIDTH 3u
#define ROWS 300u
#define AT_ONCE 30u /* rows of a packet */
#define STEP (ROWS / AT_ONCE)

static struct rig rig;
static uint32_t packets; /* of each worker */

struct pusher {
	pthread_t thread;
	uint8_t child;
	uint64_t by_kernel, by_daemon;
	union sparse_packet packet;
	struct frame frame, out;
	struct engine_packet answers[2];
};

/* Values of all rows of a packet. */
static uint32_t value_of(uint32_t sequence)
{
	return sequence % 1000 + 1;
}

/* The payload's bytes of a worker's packet. */
static uint32_t make(union sparse_packet *packet, uint8_t child, uint32_t sequence)
{
	const struct wire_unsent unsent = rig_unsent(sequence);
	uint32_t values[AT_ONCE * WIDTH], bytes;
	uint16_t rows[AT_ONCE];

	for (uint32_t i = 0; i < AT_ONCE; i++)
		rows[i] = (uint16_t)(sequence % STEP + STEP * i);
	for (uint32_t i = 0; i < AT_ONCE * WIDTH; i++)
		values[i] = value_of(sequence);
	sparse_bare(packet, SPARSE_PUSH, child, sequence, 0);
	packet->header.comm = RIG_COMM;
	bytes = sparse_fill(packet, rows, AT_ONCE, WIDTH, values);
	wire_seal_fragment(packet, WIRE_HEADER + bytes, &unsent);
	return bytes;
}

/* What the program passes, the daemon takes. True: the packet was added. */
static bool send_one(struct pusher *pusher, uint32_t sequence)
{
	uint32_t bytes = make(&pusher->packet, pusher->child, sequence);
	struct xdp_run run = { .out = pusher->out.data, .repeat = 1 };
	enum engine_verdict verdict;

	frame_make(&pusher->frame, &shape_plain, pusher->child, &pusher->packet,
	           WIRE_HEADER + bytes);
	run.in = pusher->frame.data;
	run.bytes = pusher->frame.bytes;
	demand(xdp_run(rig.plane, &run) == TRIB_OK);
	if (run.action == XDP_TX) {
		pusher->by_kernel++;
		return true;
	}
	demand(run.action == XDP_PASS);
	verdict = engine_sparse.take(&rig.engine_pool, &pusher->packet.header, bytes,
	                             pusher->answers);
	pusher->by_daemon += verdict == ENGINE_ADDED;
	demand(verdict == ENGINE_ADDED || verdict == ENGINE_AHEAD);
	return verdict == ENGINE_ADDED;
}

static void *pusher_main(void *context)
{
	struct pusher *pusher = context;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(pusher->child, &set);
	demand(sched_setaffinity(0, sizeof(set), &set) == 0);
	for (uint32_t s = 0; s < packets;)
		if (send_one(pusher, s))
			s++;
		else
			sched_yield(); /* a block is full */
	return NULL;
}

/* ---- the daemon ---- */

static union sparse_packet packet;
static struct engine_packet out[2];

static void ask(enum sparse_kind kind, uint32_t pos, uint32_t ack)
{
	sparse_bare(&packet, kind, SERVER, pos, 0);
	packet.header.ack = ack;
	demand(engine_sparse.take(&rig.engine_pool, &packet.header, 0, out) == ENGINE_ACK);
	demand(!sparse_refused(&out[0]));
}

/* How many packets have been flushed. `sums` are those of each row. */
static uint64_t flush(uint32_t epoch, uint64_t sums[ROWS])
{
	const struct sparse_lane *lane = sparse_lane_of(&rig.engine_pool);
	static uint64_t before[WORKERS];
	uint64_t want = 0, total = 0, all = 0;

	if (epoch == 1)
		memset(before, 0, sizeof(before));
	ask(SPARSE_FREEZE, epoch, 0);
	ask(SPARSE_READ, epoch, lane->blocks);
	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t low = ((const struct sparse_record *)sparse_body(&out[0]))[i].low;

		for (; before[i] < low; before[i]++)
			want += AT_ONCE * WIDTH * (uint64_t)value_of((uint32_t)before[i]);
		all += low;
	}
	for (uint32_t block = 0; block < lane->blocks; block++) {
		const uint64_t *page = sparse_body(&out[0]);
		const uint32_t *values = (const uint32_t *)(page + 1);

		ask(SPARSE_READ, epoch, block);
		for (uint64_t left = page[0]; left; left &= left - 1, values += WIDTH) {
			sums[block * lane->per_block + (unsigned)__builtin_ctzll(left)] +=
				values[0];
			demand(values[1] == values[0] && values[2] == values[0]);
			total += WIDTH * (uint64_t)values[0];
		}
	}
	demand(total == want);
	ask(SPARSE_RELEASE, epoch, 0);
	return all;
}

static void push_here(uint32_t *sequence)
{
	uint32_t bytes = make(&packet, BY_DAEMON, *sequence);

	if (*sequence < packets &&
	    engine_sparse.take(&rig.engine_pool, &packet.header, bytes, out) == ENGINE_ADDED)
		++*sequence;
}

static void check_sums(const uint64_t sums[ROWS])
{
	for (uint32_t row = 0; row < ROWS; row++) {
		uint64_t want = 0;

		for (uint32_t s = row % STEP; s < packets; s += STEP)
			want += WORKERS * (uint64_t)value_of(s);
		demand(sums[row] == want);
	}
}

int main(void)
{
	static struct pusher pushers[2];
	static uint64_t sums[ROWS];
	uint32_t epoch = 0, sequence = 0;
	cpu_set_t set;

	packets = (uint32_t)test_count("packets", test_is_long() ? 100000 : 10000, 3000);
	if (sched_getaffinity(0, sizeof(set), &set) || !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set)) {
		printf("skipped: it takes cores 0 and 1\n");
		return 77;
	}
	rig_load(&rig, PAYLOAD);
	rig_engine_lane(&rig, &engine_sparse, WORKERS + 1, 64, PAYLOAD, &shape_plain);
	demand(engine_sparse.take(&rig.engine_pool, &packet.header,
	                          sparse_set(&packet, SERVER, WIDTH, ROWS, 0), out) == ENGINE_ACK);
	for (uint8_t i = 0; i < 2; i++) {
		pushers[i].child = i;
		demand(!pthread_create(&pushers[i].thread, NULL, pusher_main, &pushers[i]));
	}
	do
		for (unsigned i = 0; i < 20; i++)
			push_here(&sequence);
	while (flush(++epoch, sums) < WORKERS * (uint64_t)packets);
	for (unsigned i = 0; i < 2; i++)
		demand(!pthread_join(pushers[i].thread, NULL));
	check_sums(sums);
	printf("%u flushes; worker 0: %llu packets by the kernel, %llu by the daemon; worker 1: "
	       "%llu and %llu\n",
	       epoch, (unsigned long long)pushers[0].by_kernel,
	       (unsigned long long)pushers[0].by_daemon, (unsigned long long)pushers[1].by_kernel,
	       (unsigned long long)pushers[1].by_daemon);
	demand(pushers[0].by_kernel && pushers[1].by_kernel);
	rig_unload(&rig);
	return 0;
}
