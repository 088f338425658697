/* SPDX-License-Identifier: Apache-2.0 */
#include "simnet.h"

#include "wire/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_GAP 2000ull /* ns on the wire */
#define LATENCY 20000ull

struct sim_packet {
	uint64_t at;
	unsigned to; /* worker, or WIRE_ALL for the aggregator */
	uint32_t bytes;
	uint8_t *data;
};

struct sim {
	struct sim_options options;
	uint64_t now, last_at, random, packets, verdicts[DENSE_VERDICTS_END];
	unsigned unfinished;
	struct stream streams[SIM_WORKERS_MAX];
	struct dense_lane lane;
	struct dense_cell *cells;
	uint8_t *sums;
	struct sim_packet *heap; /* by time */
	size_t n, room;
};

uint64_t sim_random(struct sim *sim)
{
	uint64_t z = (sim->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool chance(struct sim *sim, double p)
{
	return (double)(sim_random(sim) >> 11) / (double)(1ull << 53) < p;
}

static void heap_push(struct sim *sim, struct sim_packet packet)
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

static struct sim_packet heap_pop(struct sim *sim)
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

static void transmit(struct sim *sim, unsigned to, const void *data, uint32_t bytes)
{
	unsigned copies = chance(sim, sim->options.dup) ? 2 : 1;

	sim->packets++;
	for (unsigned i = 0; i < copies; i++) {
		struct sim_packet packet = { .to = to, .bytes = bytes };

		if (chance(sim, sim->options.loss))
			continue;
		packet.at = sim->now + LATENCY + sim_random(sim) % 1000;
		if (sim->options.reliable && packet.at <= sim->last_at)
			packet.at = sim->last_at + 1;
		sim->last_at = packet.at;
		if (chance(sim, sim->options.delayed))
			packet.at += sim_random(sim) % 3000000;
		packet.data = malloc(bytes);
		assert(packet.data);
		memcpy(packet.data, data, bytes);
		heap_push(sim, packet);
	}
}

static void on_finished(void *context, struct round *round)
{
	struct sim *sim = context;

	(void)round;
	sim->unfinished--;
}

struct sim *sim_new(const struct sim_options *options)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	assert(sim);
	sim->options = *options;
	sim->random = options->seed;
	sim->lane.cells = options->cells;
	sim->lane.payload = options->payload;
	sim->lane.members = options->workers == 64 ? ~0ull : (1ull << options->workers) - 1;
	sim->cells = calloc(options->cells, sizeof(*sim->cells));
	sim->sums = calloc(options->cells, options->payload);
	assert(sim->cells && sim->sums);
	for (uint32_t i = 0; i < options->cells; i++)
		sim->cells[i].position = DENSE_EMPTY;
	for (unsigned w = 0; w < options->workers; w++) {
		stream_init(&sim->streams[w], 0, w, options->workers, options->cells,
		            options->payload);
		sim->streams[w].reliable = options->reliable;
		sim->streams[w].on_finished = on_finished;
		sim->streams[w].context = sim;
	}
	return sim;
}

void sim_free(struct sim *sim)
{
	while (sim->n)
		free(heap_pop(sim).data);
	for (unsigned w = 0; w < sim->options.workers; w++)
		stream_clear(&sim->streams[w]);
	free(sim->heap);
	free(sim->cells);
	free(sim->sums);
	free(sim);
}

struct stream *sim_stream(struct sim *sim, unsigned worker)
{
	return &sim->streams[worker];
}

void sim_post(struct sim *sim, unsigned worker, const struct round_spec *spec)
{
	struct round *round = round_new(spec, worker, sim->options.payload);

	assert(round);
	sim->unfinished++;
	stream_post(&sim->streams[worker], round, sim->now);
}

static void send_result(struct sim *sim, uint64_t position, uint64_t to)
{
	uint32_t index = dense_index(&sim->lane, position);
	struct dense_cell *cell = &sim->cells[index];
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	struct wire_header *header = (void *)packet;

	memset(header, 0, sizeof(*header));
	header->magic = WIRE_MAGIC;
	header->type = WIRE_RESULT;
	header->child = WIRE_ALL;
	header->pos = position;
	header->ack = (uint32_t)sim->lane.low;
	header->scale = cell->scale;
	header->op = cell->op;
	header->from = cell->from;
	header->to = cell->to;
	memcpy(header + 1, sim->sums + (size_t)index * sim->options.payload, cell->bytes);
	cell->sent_at = (uint32_t)(sim->now / 1000);
	for (unsigned w = 0; w < sim->options.workers; w++)
		if (to >> w & 1)
			transmit(sim, w, packet, WIRE_HEADER + cell->bytes);
}

static void aggregator_take(struct sim *sim, const struct wire_header *header, uint32_t bytes)
{
	uint64_t position = wire_position(header);
	uint32_t index = dense_index(&sim->lane, position);

	if (header->type == WIRE_DATA) {
		struct dense_cell *cell = &sim->cells[index];
		enum dense_verdict verdict = dense_take(
			&sim->lane, cell, sim->sums + (size_t)index * sim->options.payload, header,
			header + 1, bytes - WIRE_HEADER);

		sim->verdicts[verdict]++;
		if (verdict == DENSE_COMPLETE)
			send_result(sim, position,
			            cell->to == WIRE_ALL ? sim->lane.members : 1ull << cell->to);
	} else if (header->type == WIRE_REPORT) {
		const struct wire_report *report = (const void *)(header + 1);
		uint64_t packet[(WIRE_HEADER + sizeof(struct wire_status)) / 8] = { 0 };
		struct wire_header *answer = (void *)packet;
		struct wire_status *status = (void *)(answer + 1);
		uint64_t repeat[WIRE_GROUP / 64];
		struct dense_pool pool = { .cells = (uint8_t *)sim->cells,
			                   .cell_step = sizeof(*sim->cells) };

		dense_ack(&sim->lane, header->child, header->ack);
		dense_answer(&sim->lane, &pool, header->child, report, (uint32_t)(sim->now / 1000),
		             status, repeat);
		for (uint32_t i = 0; i < status->bits; i++)
			if (bitmap_get(repeat, i))
				send_result(sim, report->base + i, 1ull << header->child);
		answer->type = WIRE_STATUS;
		transmit(sim, header->child, packet, sizeof(packet));
	}
}

/* Everything a worker wants to send at this moment, a packet at a time. */
static bool worker_send(struct sim *sim, unsigned w)
{
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	uint32_t bytes;

	if (sim->now < sim->options.start_ns[w])
		return false;
	bytes = stream_next_report(&sim->streams[w], sim->now, packet);
	if (!bytes)
		bytes = stream_next(&sim->streams[w], sim->now, packet);
	if (bytes)
		transmit(sim, WIRE_ALL, packet, bytes);
	return bytes != 0;
}

static void deliver(struct sim *sim, const struct sim_packet *packet)
{
	const struct wire_header *header = (const void *)packet->data;

	if (packet->to == WIRE_ALL) {
		aggregator_take(sim, header, packet->bytes);
	} else if (header->type == WIRE_RESULT) {
		bool ok = stream_on_result(&sim->streams[packet->to], header,
		                           packet->bytes - WIRE_HEADER, sim->now);
		assert(ok);
	} else {
		stream_on_status(&sim->streams[packet->to], header, sim->now);
	}
}

bool sim_run(struct sim *sim, uint64_t limit_ns)
{
	uint64_t limit = sim->now + limit_ns;

	while (sim->unfinished) {
		bool sent = false;
		uint64_t next = sim->now + PACKET_GAP;

		if (sim->now > limit)
			return false;
		for (unsigned w = 0; w < sim->options.workers; w++)
			sent |= worker_send(sim, w);
		if (!sent) { /* jump to whatever comes first */
			next = sim->n ? sim->heap[0].at : UINT64_MAX;
			for (unsigned w = 0; w < sim->options.workers; w++) {
				uint64_t wake = stream_wake(&sim->streams[w], sim->now);

				if (wake < sim->options.start_ns[w])
					wake = sim->options.start_ns[w];
				if (wake < next)
					next = wake;
			}
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
	}
	return true;
}

uint64_t sim_packets(const struct sim *sim)
{
	return sim->packets;
}

uint64_t sim_now(const struct sim *sim)
{
	return sim->now;
}

uint64_t sim_verdicts(const struct sim *sim, enum dense_verdict verdict)
{
	return sim->verdicts[verdict];
}
