/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/layout/layout.h"

#include "sparse/heat/key_hash.h"

#include <string.h>

uint32_t layout_register_random(const struct layout *layout, uint32_t rank, uint64_t seed)
{
	return (uint32_t)(key_hash(key_hash(seed) ^ rank) % layout->registers);
}

uint32_t layout_estimate(const struct layout *layout, uint32_t n)
{
	return n / layout->room + (n % layout->room != 0);
}

size_t layout_scratch(const struct layout *layout, uint32_t n)
{
	/*
	 * layout_pack: next of each register, and fill and link of each packet. There are fewer
	 * than twice as many packets as the estimate. layout_recirculations: the gradients in order
	 * of their packets, where a packet begins, and two numbers for each register.
	 */
	return 2 * ((size_t)layout->registers + 2ull * layout_estimate(layout, n) + 2) + n;
}

/* The first packet from `at` on that is not full. link[p] is p while p is not full. */
static uint32_t open_packet(uint32_t *link, uint32_t at)
{
	uint32_t found = at;

	while (link[found] != found)
		found = link[found];
	while (link[at] != found) {
		uint32_t next = link[at];

		link[at] = found;
		at = next;
	}
	return found;
}

uint32_t layout_pack(const struct layout *layout, const uint32_t *registers, uint32_t n,
                     uint32_t *packet_of, uint32_t *scratch)
{
	uint32_t packets = layout_estimate(layout, n), rest = 0;
	uint32_t *next = scratch, *fill = next + layout->registers, *link = fill + packets;

	memset(scratch, 0, ((size_t)layout->registers + packets) * sizeof(*scratch));
	for (uint32_t p = 0; p <= packets; p++)
		link[p] = p; /* the last one is no packet: it is found if there is none */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = registers[i], p = open_packet(link, next[k]);

		next[k] = p < packets ? p + 1 : packets;
		if (p == packets) {
			packet_of[i] = packets + rest++ / layout->room;
			continue;
		}
		packet_of[i] = p;
		if (++fill[p] == layout->room)
			link[p] = p + 1;
	}
	return packets + layout_estimate(layout, rest);
}

uint32_t layout_pack_in_order(const struct layout *layout, uint32_t n, uint32_t *packet_of)
{
	for (uint32_t i = 0; i < n; i++)
		packet_of[i] = i / layout->room;
	return layout_estimate(layout, n);
}

/* order: gradients by packet. first[p]: where those of packet p begin; one more ends the last. */
static void packets_sort(const uint32_t *packet_of, uint32_t n, uint32_t packets, uint32_t *order,
                         uint32_t *first)
{
	memset(first, 0, ((size_t)packets + 2) * sizeof(*first));
	for (uint32_t i = 0; i < n; i++)
		first[packet_of[i] + 2]++;
	for (uint32_t p = 2; p < packets + 2; p++)
		first[p] += first[p - 1];
	/* Now first[p + 1] is where p begins, and moves to where p ends. */
	for (uint32_t i = 0; i < n; i++)
		order[first[packet_of[i] + 1]++] = i;
}

uint64_t layout_recirculations(const struct layout *layout, const uint32_t *registers, uint32_t n,
                               const uint32_t *packet_of, uint32_t packets, uint32_t *scratch)
{
	uint32_t *uses = scratch, *packet = uses + layout->registers;
	uint32_t *order = packet + layout->registers, *first = order + n;
	uint64_t sum = 0;

	memset(scratch, 0, 2ull * layout->registers * sizeof(*scratch));
	packets_sort(packet_of, n, packets, order, first);
	for (uint32_t p = 0; p < packets; p++) {
		uint32_t most = 1;

		for (uint32_t at = first[p]; at < first[p + 1]; at++) {
			uint32_t k = registers[order[at]];

			/* packet[k] says for which packet uses[k] counts: 1 + its number. */
			uses[k] = packet[k] == p + 1 ? uses[k] + 1 : 1;
			packet[k] = p + 1;
			most = uses[k] > most ? uses[k] : most;
		}
		sum += most - 1;
	}
	return sum;
}
