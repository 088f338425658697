/* SPDX-License-Identifier: Apache-2.0 */
#include "simnet.h"
#include "base/random_bits.h"

#include "engine/uplink.h"
#include "path/in_flight.h"
#include "wire/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_GAP 2000ull /* ns between packets on the wire */
#define LATENCY 20000ull
#define NODE 256u
#define TICK 50000000ull
#define HEARTBEAT 500000000ull

struct sim_packet {
	uint64_t at;
	unsigned to; /* worker; from NODE on: aggregator */
	uint32_t bytes;
	uint8_t *data;
};

struct node {
	unsigned index;
	struct dense_lane lane;
	struct dense_cell *cells;
	struct dense_pool pool;
	uint64_t ranks;
	unsigned where[SIM_WORKERS_MAX]; /* worker or node of each child */
	struct uplink up;
	struct flight flight;
	uint64_t told_low;
};

struct simnet {
	struct simnet_options options;
	uint64_t missed; /* sums that parents reported as missing */
	uint64_t now, tick_at, last_at, random, packets, repeats, verdicts[DENSE_VERDICTS_END];
	uint64_t drained_at[SIM_WORKERS_MAX]; /* when each worker has taken all its packets */
	unsigned unfinished;
	struct stream streams[SIM_WORKERS_MAX];
	uint64_t spoke_at[SIM_WORKERS_MAX]; /* last report of each worker */
	struct node nodes[SIM_NODES_MAX];
	struct sim_packet *heap; /* a heap by time */
	size_t n, room;
};

uint64_t simnet_random(struct simnet *sim)
{
	return random_next(&sim->random);
}

static bool chance(struct simnet *sim, double p)
{
	return (double)(simnet_random(sim) >> 11) / (double)(1ull << 53) < p;
}

static void heap_push(struct simnet *sim, struct sim_packet packet)
{
	size_t i = sim->n++;

	if (sim->n > sim->room) {
		sim->room = sim->room ? 2 * sim->room : 1024;
		sim->heap = realloc(sim->heap, sim->room * sizeof(*sim->heap));
		assert(sim->heap);
	}
	for (; i && packet.at < sim->heap[(i - 1) / 2].at; i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = packet;
}

static struct sim_packet heap_pop(struct simnet *sim)
{
	struct sim_packet top = sim->heap[0], last = sim->heap[--sim->n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= sim->n)
			break;
		if (child + 1 < sim->n && sim->heap[child + 1].at < sim->heap[child].at)
			child++;
		if (last.at <= sim->heap[child].at)
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
	return top;
}

/* Queues a packet behind those that wait. False: the ring is full. */
static bool ring_take(struct simnet *sim, unsigned worker, uint64_t *at)
{
	uint64_t *drained = &sim->drained_at[worker];

	if (*drained < *at)
		*drained = *at;
	if (*drained - *at >= sim->options.ring * sim->options.drain_ns)
		return false;
	*drained += sim->options.drain_ns;
	*at = *drained;
	return true;
}

static void transmit(struct simnet *sim, unsigned to, const void *data, uint32_t bytes)
{
	unsigned copies = chance(sim, sim->options.dup) ? 2 : 1;

	sim->packets++;
	for (unsigned i = 0; i < copies; i++) {
		struct sim_packet packet = { .to = to, .bytes = bytes };

		if (chance(sim, sim->options.loss))
			continue;
		packet.at = sim->now +
		            (sim->options.latency_ns ? sim->options.latency_ns : LATENCY) +
		            simnet_random(sim) % 1000;
		if (sim->options.ring && to < NODE && !ring_take(sim, to, &packet.at))
			continue;
		if (sim->options.reliable && packet.at <= sim->last_at)
			packet.at = sim->last_at + 1;
		sim->last_at = packet.at;
		if (chance(sim, sim->options.delayed))
			packet.at += simnet_random(sim) % 3000000;
		packet.data = malloc(bytes);
		assert(packet.data);
		memcpy(packet.data, data, bytes);
		heap_push(sim, packet);
	}
}

static void on_finished(void *context, struct round *round)
{
	struct simnet *sim = context;

	(void)round;
	sim->unfinished--;
}

static void node_init(struct simnet *sim, unsigned index)
{
	struct node *node = &sim->nodes[index];
	const struct simnet_options *options = &sim->options;

	node->index = index;
	node->lane.cells = options->cells;
	node->lane.payload = options->payload;
	node->lane.has_parent = index > 0;
	node->cells = calloc(options->cells, sizeof(*node->cells));
	node->pool = (struct dense_pool){ .cells = (uint8_t *)node->cells,
		                          .cell_step = sizeof(*node->cells),
		                          .packets = calloc(options->cells, options->payload),
		                          .packet_step = options->payload };
	node->up.ring = calloc(options->cells, sizeof(*node->up.ring));
	assert(node->cells && node->pool.packets && node->up.ring);
	for (uint32_t i = 0; i < options->cells; i++)
		node->cells[i].position = DENSE_EMPTY;
	flight_init(&node->flight);
}

static void node_adopt(struct node *node, uint64_t covers, unsigned where)
{
	unsigned child = (unsigned)__builtin_ctzll(covers);

	dense_add_child(&node->lane, child, covers);
	node->where[child] = where;
	node->ranks |= covers;
}

struct simnet *simnet_new(const struct simnet_options *options)
{
	struct simnet *sim = calloc(1, sizeof(*sim));

	assert(sim);
	sim->options = *options;
	sim->random = options->seed;
	if (!sim->options.nodes)
		sim->options.nodes = 1;
	for (unsigned n = 0; n < sim->options.nodes; n++)
		node_init(sim, n);
	for (unsigned w = 0; w < options->workers; w++) {
		node_adopt(&sim->nodes[options->leaf[w]], 1ull << w, w);
		stream_init(&sim->streams[w], 0, w, options->workers, options->cells,
		            options->payload);
		sim->streams[w].reliable = options->reliable;
		sim->streams[w].on_finished = on_finished;
		sim->streams[w].context = sim;
	}
	for (unsigned n = sim->options.nodes; n-- > 1;)
		node_adopt(&sim->nodes[options->parent[n]], sim->nodes[n].ranks, NODE + n);
	return sim;
}

void simnet_free(struct simnet *sim)
{
	for (size_t i = 0; i < sim->n; i++)
		free(sim->heap[i].data);
	for (unsigned w = 0; w < sim->options.workers; w++)
		stream_clear(&sim->streams[w]);
	for (unsigned n = 0; n < sim->options.nodes; n++) {
		free(sim->nodes[n].cells);
		free(sim->nodes[n].pool.packets);
		free(sim->nodes[n].up.ring);
	}
	free(sim->heap);
	free(sim);
}

struct stream *simnet_stream(struct simnet *sim, unsigned worker)
{
	return &sim->streams[worker];
}

void simnet_post(struct simnet *sim, unsigned worker, const struct round_spec *spec)
{
	struct round *round = round_new(spec, worker, sim->options.payload);

	assert(round);
	sim->unfinished++;
	stream_post(&sim->streams[worker], round, sim->now);
}

static uint32_t now_us(const struct simnet *sim)
{
	return (uint32_t)(sim->now / 1000);
}

/* Builds a packet from the cell: a result for children, or the sum for the parent. */
static uint32_t build(const struct node *node, const struct dense_cell *cell, uint8_t type,
                      uint64_t *packet)
{
	struct wire_header *header = (void *)packet;
	uint32_t index = dense_index(&node->lane, cell->position);

	memset(header, 0, sizeof(*header));
	header->magic = WIRE_MAGIC;
	header->type = type;
	header->child = type == WIRE_DATA ? (uint8_t)__builtin_ctzll(node->ranks) : WIRE_ALL;
	header->flags = cell->shape;
	header->pos = (uint32_t)cell->position;
	header->ack = (uint32_t)(type == WIRE_DATA ? node->lane.settled : node->lane.low);
	header->scale = cell->scale;
	header->op = cell->op;
	header->from = cell->from;
	header->to = cell->to;
	memcpy(header + 1, dense_packet(&node->pool, index), cell->bytes);
	return WIRE_HEADER + cell->bytes;
}

static void send_result(struct simnet *sim, struct node *node, uint64_t position, uint64_t to,
                        bool again)
{
	struct dense_cell *cell = uplink_cell(&node->lane, &node->pool, position);
	uint64_t packet[WIRE_PACKET_MAX / 8];
	uint32_t bytes = build(node, cell, WIRE_RESULT, packet);

	((struct wire_header *)packet)->flags |= again ? WIRE_RESENT : 0;
	sim->repeats += again;
	if (!again)
		cell->sent_at = now_us(sim);
	for (; to; to &= to - 1)
		transmit(sim, node->where[__builtin_ctzll(to)], packet, bytes);
}

static void report_up(struct simnet *sim, struct node *node, uint64_t base, uint32_t bits,
                      const uint64_t *asked, const uint64_t *lost)
{
	uint64_t packet[(WIRE_CONTROL + sizeof(struct wire_report)) / 8] = { 0 };
	struct wire_control *header = (void *)packet;

	uplink_settle(&node->up, &node->lane, &node->pool);
	header->type = WIRE_REPORT;
	header->child = (uint8_t)__builtin_ctzll(node->ranks);
	header->ack = (uint32_t)node->lane.settled;
	uplink_report(&node->up, &node->lane, &node->pool, base, bits, asked, lost, now_us(sim),
	              (void *)(header + 1));
	flight_mark(&node->flight, uplink_stamp(now_us(sim)));
	transmit(sim, NODE + sim->options.parent[node->index], packet, sizeof(packet));
}

static void send_up(struct simnet *sim, struct node *node)
{
	uint64_t packet[WIRE_PACKET_MAX / 8];
	struct dense_cell *cell;

	while (!flight_is_full(&node->flight) &&
	       (cell = uplink_pop(&node->up, &node->lane, &node->pool))) {
		uint32_t bytes = build(node, cell, WIRE_DATA, packet);

		uplink_raise(&node->up, &node->lane, cell, now_us(sim));
		node->flight.launched++;
		transmit(sim, NODE + sim->options.parent[node->index], packet, bytes);
		if (flight_wants_report(&node->flight, WIRE_GROUP))
			report_up(sim, node, node->lane.settled, WIRE_GROUP, NULL, NULL);
	}
}

static void node_take_data(struct simnet *sim, struct node *node, const struct wire_header *header,
                           uint32_t bytes)
{
	uint32_t index = dense_index(&node->lane, dense_position(&node->lane, header));
	struct dense_cell *cell = &node->cells[index];
	void *sum = dense_packet(&node->pool, index);
	enum dense_verdict verdict =
		dense_take(&node->lane, cell, sum, header, header + 1, bytes - WIRE_HEADER);

	if (verdict == DENSE_AHEAD && node->lane.has_parent) {
		uplink_settle(&node->up, &node->lane, &node->pool);
		verdict =
			dense_take(&node->lane, cell, sum, header, header + 1, bytes - WIRE_HEADER);
	}
	sim->verdicts[verdict]++;
	if (verdict == DENSE_COMPLETE)
		send_result(sim, node, cell->position, dense_expected(&node->lane, cell->to),
		            false);
	if (verdict == DENSE_SUMMED)
		uplink_push(&node->up, &node->lane, cell);
}

static void node_take_report(struct simnet *sim, struct node *node,
                             const struct wire_control *header)
{
	const struct wire_report *report = (const void *)(header + 1);
	uint64_t packet[(WIRE_CONTROL + sizeof(struct wire_status)) / 8] = { 0 };
	struct wire_control *answer = (void *)packet;
	struct wire_status *status = (void *)(answer + 1);
	uint64_t repeat[WIRE_GROUP / 64];

	dense_ack(&node->lane, header->child, header->ack);
	if (node->lane.has_parent)
		uplink_settle(&node->up, &node->lane, &node->pool);
	dense_answer(&node->lane, &node->pool, header->child, report, now_us(sim), 0, status,
	             repeat);
	for (uint32_t i = 0; i < status->bits; i++)
		if (bitmap_get(repeat, i))
			send_result(sim, node, report->base + i, 1ull << header->child, true);
	answer->type = WIRE_STATUS;
	if (!status->waiting)
		status->waiting = node->up.waiting;
	transmit(sim, node->where[header->child], packet, sizeof(packet));
	send_up(sim, node);
	if (node->lane.has_parent &&
	    uplink_is_due(&node->up, &node->lane, &node->pool, report, now_us(sim)))
		report_up(sim, node, report->base, report->bits, report->missing, NULL);
	else if (node->lane.has_parent &&
	         uplink_ack_is_due(&node->up, &node->lane, &node->pool, now_us(sim)))
		report_up(sim, node, node->lane.settled, WIRE_GROUP, NULL, NULL);
}

/* Sends all children a status: the window, and the complete fragments from `base` on. */
static void tell_all(struct simnet *sim, struct node *node, uint64_t base, uint32_t bits)
{
	uint64_t packet[(WIRE_CONTROL + sizeof(struct wire_status)) / 8] = { 0 };
	struct wire_control *header = (void *)packet;
	struct wire_status *status = (void *)(header + 1);

	node->told_low = node->lane.low;
	header->type = WIRE_STATUS;
	header->child = WIRE_ALL;
	status->low = node->lane.low;
	dense_complete(&node->lane, &node->pool, base, bits, status);
	for (uint64_t to = node->lane.members; to; to &= to - 1)
		transmit(sim, node->where[__builtin_ctzll(to)], packet, sizeof(packet));
}

static void node_take_result(struct simnet *sim, struct node *node,
                             const struct wire_header *header, uint32_t bytes)
{
	uint32_t index = dense_index(&node->lane, dense_position(&node->lane, header));
	struct dense_cell *cell = &node->cells[index];
	enum dense_verdict verdict =
		uplink_take(&node->lane, cell, dense_packet(&node->pool, index), header, header + 1,
	                    bytes - WIRE_HEADER);

	sim->verdicts[verdict]++;
	if (verdict == DENSE_COMPLETE)
		send_result(sim, node, cell->position, dense_expected(&node->lane, cell->to),
		            false);
}

static void node_take_status(struct simnet *sim, struct node *node,
                             const struct wire_control *header)
{
	const struct wire_status *status = (const void *)(header + 1);
	struct uplink_news news;

	uplink_status(&node->up, &node->lane, &node->pool, status, now_us(sim), &news);
	flight_confirm(&node->flight, status->stamp, news.n_again);
	sim->missed += news.n_again;
	for (uint32_t i = 0; news.n_again && i < status->bits; i++)
		if (bitmap_get(news.again, i))
			uplink_push(&node->up, &node->lane,
			            uplink_cell(&node->lane, &node->pool, status->base + i));
	if (news.n_lost)
		report_up(sim, node, status->base, status->bits, NULL, news.lost);
	if (news.n_done)
		tell_all(sim, node, status->base, status->bits);
}

static void node_take(struct simnet *sim, struct node *node, const struct wire_header *header,
                      uint32_t bytes)
{
	switch (header->type) {
	case WIRE_DATA:
		node_take_data(sim, node, header, bytes);
		break;
	case WIRE_REPORT:
		node_take_report(sim, node, wire_control(header));
		break;
	case WIRE_RESULT:
		node_take_result(sim, node, header, bytes);
		break;
	default:
		node_take_status(sim, node, wire_control(header));
	}
	if (node->lane.has_parent)
		send_up(sim, node);
	if (sim->options.nodes > 1 && node->lane.low >= node->told_low + sim->options.cells / 8 + 1)
		tell_all(sim, node, 0, 0);
}

/* Finished workers send nothing more, but their sums may still be in flight. */
static void nodes_tick(struct simnet *sim)
{
	if (sim->options.nodes == 1 || sim->now < sim->tick_at)
		return;
	sim->tick_at = sim->now + TICK;
	for (unsigned n = 1; n < sim->options.nodes; n++) {
		struct node *node = &sim->nodes[n];

		uplink_settle(&node->up, &node->lane, &node->pool);
		if (uplink_ack_is_due(&node->up, &node->lane, &node->pool, now_us(sim)))
			report_up(sim, node, node->lane.settled, WIRE_GROUP, NULL, NULL);
		send_up(sim, node);
	}
}

/* Sends one packet of those that a worker may send now. */
static bool worker_send(struct simnet *sim, unsigned w)
{
	uint64_t packet[WIRE_PACKET_MAX / 8];
	uint32_t bytes;

	if (sim->now < sim->options.start_ns[w])
		return false;
	bytes = stream_next_report(&sim->streams[w], sim->now, packet);
	/* As a lane's thread does: finished workers send heartbeats too. */
	if (!bytes && sim->now >= sim->spoke_at[w] + HEARTBEAT)
		bytes = stream_heartbeat(&sim->streams[w], sim->now, packet);
	if (bytes)
		sim->spoke_at[w] = sim->now;
	if (!bytes)
		bytes = stream_next(&sim->streams[w], sim->now, packet);
	if (bytes)
		transmit(sim, NODE + sim->options.leaf[w], packet, bytes);
	return bytes != 0;
}

static void deliver(struct simnet *sim, const struct sim_packet *packet)
{
	const struct wire_header *header = (const void *)packet->data;

	if (packet->to >= NODE) {
		node_take(sim, &sim->nodes[packet->to - NODE], header, packet->bytes);
	} else if (header->type == WIRE_RESULT) {
		bool ok = stream_on_result(&sim->streams[packet->to], header,
		                           packet->bytes - WIRE_HEADER, sim->now);
		assert(ok);
	} else if (header->child == WIRE_ALL) {
		stream_on_news(&sim->streams[packet->to], wire_control(header), sim->now);
	} else {
		stream_on_status(&sim->streams[packet->to], wire_control(header), sim->now);
	}
}

bool simnet_run(struct simnet *sim, uint64_t limit_ns)
{
	uint64_t limit = sim->now + limit_ns;

	while (sim->unfinished) {
		bool sent = false;
		uint64_t next = sim->now + PACKET_GAP;

		if (sim->now > limit)
			return false;
		for (unsigned w = 0; w < sim->options.workers; w++)
			sent |= worker_send(sim, w);
		if (!sent) { /* advance to the next event */
			next = sim->n ? sim->heap[0].at : UINT64_MAX;
			for (unsigned w = 0; w < sim->options.workers; w++) {
				uint64_t wake = stream_wake(&sim->streams[w], sim->now);

				if (wake > sim->spoke_at[w] + HEARTBEAT)
					wake = sim->spoke_at[w] + HEARTBEAT;
				if (wake < sim->options.start_ns[w])
					wake = sim->options.start_ns[w];
				if (wake < next)
					next = wake;
			}
			if (sim->options.nodes > 1 && sim->tick_at < next)
				next = sim->tick_at;
			if (next == UINT64_MAX)
				return false;
		}
		if (next > sim->now)
			sim->now = next;
		while (sim->n && sim->heap[0].at <= sim->now) {
			struct sim_packet packet = heap_pop(sim);

			deliver(sim, &packet);
			free(packet.data);
		}
		nodes_tick(sim);
	}
	return true;
}

uint64_t simnet_packets(const struct simnet *sim)
{
	return sim->packets;
}

struct simnet_losses simnet_losses(const struct simnet *sim)
{
	struct simnet_losses losses = { .missed = sim->missed };

	for (unsigned n = 1; n < sim->options.nodes; n++) {
		losses.judged += sim->nodes[n].up.judged;
		losses.lost += sim->nodes[n].up.lost;
		losses.again += sim->nodes[n].up.again;
	}
	return losses;
}

uint64_t simnet_repeats(const struct simnet *sim)
{
	return sim->repeats;
}

uint64_t simnet_now(const struct simnet *sim)
{
	return sim->now;
}

uint64_t simnet_verdicts(const struct simnet *sim, enum dense_verdict verdict)
{
	return sim->verdicts[verdict];
}
