/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concurrency on one lane with one cell or a few. Two cores run the XDP program on frames of
 * different children and of the same child, while a third thread adds as the daemon does. Every sum
 * must be exact, every fragment complete once, and the window must never move back.
 */
#include "engine/cell_lock.h"
#include "xdp_rig.h"

#include "wire/parse.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#define CHILDREN 4u
#define PAYLOAD 1448u
#define WORDS (PAYLOAD / 8)
#define BY_DAEMON 3u /* the child whose packets arrive through a socket */

static struct rig rig;
static uint64_t fragments; /* in a run */
static uint64_t daemon_completed;
static sem_t sent; /* posted once for each call of a sender */

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

static struct dense_cell *cell_of(uint64_t position)
{
	return dense_cell(&rig.pool, dense_index(rig.dense, position));
}

/*
 * Complete, or the cell holds another fragment by now. Reads without the lock, so it may see a mix.
 */
static bool is_done(uint64_t position)
{
	struct dense_cell *cell = cell_of(position);
	bool done;

	if (!__atomic_load_n(&cell->complete, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&cell->position, __ATOMIC_RELAXED) == position)
		return false;
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

/* A thread that sends in the kernel: for its own child, and for the child that both send for. */
struct sender {
	pthread_t id;
	unsigned core;
	uint8_t children[2];
	uint64_t random;
	struct frame frames[2], low;
	struct frame out;
};

static void send_one(struct sender *sender, const struct frame *frame)
{
	struct xdp_run run = {
		.in = frame->data, .bytes = frame->bytes, .out = sender->out.data, .repeat = 1
	};

	/* Not by one call with a repeat above 1: the kernel waits for a grace period then. */
	for (uint64_t n = 1 + rig_random(&sender->random) % 4; n; n--)
		demand(xdp_run(rig.plane, &run) == TRIB_OK);
	sem_post(&sent);
}

/* Repeats until the fragment is complete, at first perhaps with a lower scale. */
static void send_fragment(struct sender *sender, uint64_t position)
{
	struct rig_data low = data_of(position, sender->children[0], 0);

	for (unsigned i = 0; i < 2; i++) {
		struct rig_data data = data_of(position, sender->children[i], 1);

		frame_data(&sender->frames[i], &shape_plain, &data);
	}
	frame_data(&sender->low, &shape_plain, &low);
	if (rig_random(&sender->random) % 4 == 0)
		send_one(sender, &sender->low);
	for (unsigned i = 0; !is_done(position); i++) {
		send_one(sender, &sender->frames[i % 2]);
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

/* As plane/lane/child_packets.c does it. */
static enum dense_verdict daemon_take(const struct packet *packet)
{
	uint64_t position = dense_position(rig.dense, &packet->header);
	struct dense_cell *cell = cell_of(position);
	uint32_t index = dense_index(rig.dense, position);
	enum dense_verdict verdict;

	cell_lock(&cell->lock);
	verdict = dense_take(rig.dense, cell, dense_packet(&rig.pool, index) + WIRE_HEADER,
	                     &packet->header, packet->words, PAYLOAD);
	cell_unlock(&cell->lock);
	return verdict;
}

/* This thread's child has not acknowledged the fragment, so the cell stays until then. */
static void sum_check(uint64_t position)
{
	const uint64_t *sum =
		(const void *)(dense_packet(&rig.pool, dense_index(rig.dense, position)) +
	                       WIRE_HEADER);
	static uint64_t wanted[WORDS];
	static struct packet packet;

	demand(cell_of(position)->position == position);
	demand(cell_of(position)->scale == 1);
	for (uint8_t child = 0; child < CHILDREN; child++) {
		struct rig_data data = data_of(position, child, 1);

		packet_data(&packet, &data);
		if (!child)
			combine_copy(wanted, packet.words, PAYLOAD);
		else
			combine(op_of(position), wanted, packet.words, PAYLOAD);
	}
	demand(!memcmp(sum, wanted, PAYLOAD));
}

static void daemon_main(void)
{
	static struct packet packet;
	uint64_t low = 0;

	for (uint64_t position = 0; position < fragments; position++) {
		struct rig_data data = data_of(position, BY_DAEMON, 1);

		packet_data(&packet, &data);
		for (;;) {
			uint64_t now = __atomic_load_n(&rig.dense->low, __ATOMIC_ACQUIRE);
			enum dense_verdict verdict;

			demand(now >= low);
			low = now;
			verdict = daemon_take(&packet);
			daemon_completed += verdict == DENSE_COMPLETE;
			dense_update_low(rig.dense); /* as each report does */
			if (is_done(position))
				break;
			while (sem_wait(&sent)) /* they send until it is done */
				;
		}
		sum_check(position);
	}
}

static void run(uint32_t cells, uint64_t n)
{
	static struct sender senders[2];
	struct xdp_counts before, after;
	uint64_t last = 0;

	fragments = n;
	daemon_completed = 0;
	rig_lane(&rig, CHILDREN, cells, PAYLOAD);
	xdp_count(rig.plane, &before);
	for (unsigned i = 0; i < 2; i++) {
		senders[i].core = i;
		senders[i].children[0] = (uint8_t)(1 + i);
		senders[i].children[1] = 0;
		senders[i].random = cells * 100 + i;
		demand(!pthread_create(&senders[i].id, NULL, sender_main, &senders[i]));
	}
	daemon_main();
	for (unsigned i = 0; i < 2; i++)
		demand(!pthread_join(senders[i].id, NULL));
	xdp_count(rig.plane, &after);
	for (unsigned child = 0; child < CHILDREN; child++)
		last += rig.lane->last[child];
	for (unsigned i = 0; i < XDP_VERDICTS; i++)
		after.verdicts[i] -= before.verdicts[i];
	printf("%u cells: %llu fragments; completed %llu by the kernel, %llu by the daemon; "
	       "%llu times busy, %llu duplicates, %llu lower\n",
	       cells, (unsigned long long)n, (unsigned long long)after.verdicts[DENSE_COMPLETE],
	       (unsigned long long)daemon_completed, (unsigned long long)(after.busy - before.busy),
	       (unsigned long long)after.verdicts[DENSE_DUPLICATE],
	       (unsigned long long)after.verdicts[DENSE_LOWER]);
	demand(after.verdicts[DENSE_COMPLETE] + daemon_completed == n);
	demand(last + daemon_completed == n);
	demand(!after.verdicts[TAKEN_CORRUPTED]);
}

int main(void)
{
	uint64_t n = test_count("fragments", test_is_long() ? 60000 : 6000, 2000);
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set)) {
		printf("skipped: it takes cores 0 and 1\n");
		return 77;
	}
	sem_init(&sent, 0, 0);
	rig_load(&rig, PAYLOAD);
	run(1, n);
	run(3, n);
	run(16, n);
	rig_unload(&rig);
	return 0;
}
