/* SPDX-License-Identifier: Apache-2.0 */
#include "channel_net.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_NS 5000u /* a process does not wake more often */
#define ROOM 65000u

struct net_event {
	uint64_t at, order;
	unsigned end, path;
	uint32_t bytes;
	uint8_t *data;
};

double net_random(struct net *net)
{
	net->random = net->random * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(net->random >> 11) / (double)(1ull << 53);
}

void net_init(struct net *net, unsigned paths, uint64_t seed)
{
	*net = (struct net){ .now = NET_S, .random = seed * 2654435761u + 1, .n_paths = paths };
	for (unsigned i = 0; i < paths; i++)
		net->paths[i] = (struct net_path){
			.bps = NET_BPS, .delay = 50000, .queue_ns = 20 * NET_MS, .link = i
		};
}

void net_free(struct net *net)
{
	while (net->n_events)
		free(net->events[--net->n_events].data);
	free(net->events);
	channel_free(net->ends[0]);
	channel_free(net->ends[1]);
}

struct channel_config net_config(unsigned end)
{
	struct channel_config config = {
		.connects = !end,
		.id = end ? 0 : 0x1122334455667788ull,
		.key = 42,
		.self = end,
		.peer = !end,
		.unit = 1448,
		.chunk = 51200,
		.longest = UINT32_MAX,
		.credit = CHANNEL_MESSAGES,
		.timeout = 2 * NET_S,
		.balancer = BALANCE_BANDWIDTH,
	};

	snprintf(config.name, sizeof(config.name), "rank %u", !end);
	return config;
}

void net_open(struct net *net, const struct channel_config config[2])
{
	struct path_address at = { .size = 4 };

	for (unsigned end = 0; end < 2; end++)
		net->ends[end] = channel_new(&config[end], net->now);
	for (unsigned i = 0; i < net->n_paths; i++)
		assert(channel_open_path(net->ends[0], i, &at, net->now));
}

/* ---- a heap of events ---- */

static int before(const struct net_event *a, const struct net_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct net_event *a, struct net_event *b)
{
	struct net_event c = *a;

	*a = *b;
	*b = c;
}

static void push(struct net *net, struct net_event event)
{
	unsigned i = net->n_events++;

	if (i == net->room) {
		net->room = net->room ? 2 * net->room : 1024;
		net->events = realloc(net->events, net->room * sizeof(*net->events));
		assert(net->events);
	}
	event.order = net->order++;
	net->events[i] = event;
	for (; i && before(&net->events[i], &net->events[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&net->events[i], &net->events[(i - 1) / 2]);
}

static struct net_event pop(struct net *net)
{
	struct net_event first = net->events[0];
	unsigned i = 0, n = --net->n_events;

	net->events[0] = net->events[n];
	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && before(&net->events[child + 1], &net->events[child]))
			child++;
		if (!before(&net->events[child], &net->events[i]))
			break;
		swap(&net->events[child], &net->events[i]);
	}
	return first;
}

/* ---- packets ---- */

static void travel(struct net *net, unsigned from, unsigned path, const uint8_t *packet,
                   uint32_t bytes, uint64_t arrives)
{
	struct net_path *p = &net->paths[path];
	struct net_event event = { .at = arrives, .end = !from, .path = path, .bytes = bytes };

	if (net_random(net) < p->late)
		event.at += (uint64_t)(net_random(net) * 2 * NET_MS);
	event.data = malloc(bytes);
	assert(event.data);
	memcpy(event.data, packet, bytes);
	if (net_random(net) < p->corrupt)
		event.data[(size_t)(net_random(net) * bytes)] ^= 1u << (net->order % 8);
	push(net, event);
}

static void transmit(struct net *net, unsigned from, unsigned path, const uint8_t *packet,
                     uint32_t bytes)
{
	struct net_path *p = &net->paths[path];
	uint64_t *busy = &net->paths[p->link].busy[from];

	if (*busy < net->now)
		*busy = net->now;
	if (*busy - net->now > p->queue_ns)
		return;
	*busy += (uint64_t)((bytes + 66) * 8e9 / (p->bps * (1 - p->load)));
	p->carried[from] += bytes;
	if (p->cut || (p->most && bytes > p->most) || net_random(net) < p->loss)
		return;
	travel(net, from, path, packet, bytes, *busy + p->delay);
	if (net_random(net) < p->duplicate)
		travel(net, from, path, packet, bytes, *busy + p->delay);
}

/* Data that stayed in messages is put behind its headers here. */
static uint32_t write_packets(struct net *net, unsigned end, unsigned path, uint8_t *buffer,
                              uint32_t *segment)
{
	struct channel_bodies bodies;
	uint32_t bytes =
		channel_output(net->ends[end], path, net->now, buffer, ROOM, segment, &bodies);
	uint32_t body = *segment - CHANNEL_HEADER;

	for (unsigned k = 0; k < bodies.packets; k++) {
		uint32_t left = bytes - k * *segment - CHANNEL_HEADER;

		memcpy(buffer + k * *segment + CHANNEL_HEADER, bodies.data + (size_t)k * body,
		       left < body ? left : body);
	}
	return bytes;
}

static void output(struct net *net, unsigned end)
{
	static _Alignas(64) uint8_t buffer[ROOM];
	bool any = true;

	while (any) {
		any = false;
		for (unsigned i = 0; i < net->n_paths; i++) {
			uint32_t segment, bytes = write_packets(net, end, i, buffer, &segment);

			for (uint32_t at = 0; at < bytes; at += segment)
				transmit(net, end, i, buffer + at,
				         bytes - at < segment ? bytes - at : segment);
			any |= bytes > 0;
		}
	}
}

static void receive(struct net *net)
{
	while (net->n_events && net->events[0].at <= net->now) {
		struct net_event event = pop(net);

		channel_receive(net->ends[event.end], event.path, net->now, event.data,
		                event.bytes);
		free(event.data);
	}
}

void net_run(struct net *net, uint64_t until)
{
	while (net->now < until) {
		uint64_t next = until;

		receive(net);
		if (net->work)
			net->work(net, net->user);
		for (unsigned end = 0; end < 2; end++) {
			uint64_t wake;

			output(net, end);
			wake = channel_wake(net->ends[end], net->now);
			next = wake < next ? wake : next;
		}
		if (net->n_events && net->events[0].at < next)
			next = net->events[0].at;
		net->now = next > net->now + STEP_NS ? next : net->now + STEP_NS;
	}
}
