/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/load/load_lane.h"

#include "base/clock.h"
#include "wire/frame.h"

#include <errno.h>
#include <math.h>

static void latency_note(struct load_lane *lane, uint64_t ns)
{
	unsigned power = 0;
	uint64_t steps = ns / 2; /* the first full octave is 64 ns */

	while (steps >= 2 * LOAD_STEPS_OF_TWO) {
		steps >>= 1;
		power++;
	}
	if (steps >= LOAD_STEPS_OF_TWO)
		power++, steps -= LOAD_STEPS_OF_TWO;
	if (power < LOAD_BUCKETS / LOAD_STEPS_OF_TWO)
		lane->latencies[power * LOAD_STEPS_OF_TWO + steps]++;
}

/* The middle of a bucket, in seconds. */
static double latency_of(unsigned bucket)
{
	unsigned power = bucket / LOAD_STEPS_OF_TWO, step = bucket % LOAD_STEPS_OF_TWO;

	if (!power)
		return 2e-9 * (step + 0.5);
	return 2e-9 * (LOAD_STEPS_OF_TWO + step + 0.5) * pow(2, power - 1);
}

static bool sum_is_right(const struct load_lane *lane, const struct wire_header *header,
                         uint32_t bytes)
{
	const struct load *load = lane->load;
	const uint64_t *words = (const uint64_t *)(header + 1);
	uint32_t n = load->bytes / 8, first = 0, step = 1;

	if (bytes != load->stride)
		return false;
	if (!load->options.check) { /* looks at one word of each result, another one each time */
		first = header->pos % n;
		step = n;
	}
	for (uint32_t i = first; i < n; i += step)
		if (words[i] != (i + 1) * load->total * LOAD_WORD)
			return false;
	return true;
}

static void result_take(struct load_lane *lane, unsigned child, const struct wire_header *header,
                        uint32_t bytes, uint64_t now)
{
	uint64_t position = wire_widen(header->pos, lane->next);
	struct fragment *fragment = &lane->ring[position % LOAD_RING];
	const struct wire_unsent unsent = load_unsent(lane, position);

	if (bytes < WIRE_HEADER || header->magic != WIRE_MAGIC || header->type != WIRE_RESULT)
		return;
	if (lane->load->options.check && !lane->load->options.tcp &&
	    (wire_parse(header, bytes) != WIRE_SOUND || !wire_is_intact(header, bytes, &unsent))) {
		lane->wrong++;
		return;
	}
	if (!sum_is_right(lane, header, bytes))
		lane->wrong++;
	if (child) {
		lane->copies++;
		return;
	}
	if (fragment->position != position || fragment->state == FRAGMENT_NONE) {
		lane->repeated++;
		return;
	}
	lane->results++;
	if (fragment->state == FRAGMENT_SENT)
		lane->done++;
	fragment->state = FRAGMENT_NONE;
	lane->progress_at = now;
	if (atomic_load_explicit(&lane->load->note, memory_order_relaxed))
		latency_note(lane, now - fragment->sent_at);
}

static int datagrams_take(struct load_lane *lane, unsigned child)
{
	int n = udp_receive(lane->rx, lane->fds[child]);
	uint64_t now = n > 0 ? clock_now() : 0;

	for (int i = 0; i < n; i++) {
		const struct udp_message *message = udp_message(lane->rx, i);

		for (uint32_t at = 0; at < message->bytes; at += message->segment) {
			uint32_t left = message->bytes - at;

			result_take(lane, child, (const void *)(message->data + at),
			            left < message->segment ? left : message->segment, now);
		}
	}
	return n;
}

static int stream_take(struct load_lane *lane, unsigned child)
{
	int n = tcp_receive(&lane->bytes, &lane->tails[child], lane->fds[child]);
	uint64_t now = n > 0 ? clock_now() : 0;
	uint32_t at = 0, bytes;

	if (n <= 0)
		return n;
	for (;; at += bytes) {
		const struct wire_header *header = (const void *)(lane->bytes.data + at);

		if (wire_frame(header, lane->bytes.bytes - at, &bytes) != WIRE_SOUND) {
			lane->wrong++;
			return -EPROTO;
		}
		if (!bytes)
			break;
		result_take(lane, child, header, bytes, now);
	}
	tcp_keep(&lane->bytes, &lane->tails[child], at);
	return n;
}

int load_take(struct load_lane *lane, unsigned child)
{
	return lane->load->options.tcp ? stream_take(lane, child) : datagrams_take(lane, child);
}

bool load_take_all(struct load_lane *lane)
{
	const struct load_options *o = &lane->load->options;
	uint64_t before = lane->done;

	for (unsigned child = 0; child < (o->to_all ? o->children : 1); child++)
		while (load_take(lane, child) > 0 && o->to_all)
			;
	return lane->done != before;
}

double load_latency(const struct load *load, double share)
{
	uint64_t all = 0, seen = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned bucket = 0; bucket < LOAD_BUCKETS; bucket++) {
			for (unsigned i = 0; i < load->options.lanes; i++)
				*(pass ? &seen : &all) += load->lanes[i].latencies[bucket];
			if (pass && all && (double)seen >= share * (double)all)
				return latency_of(bucket);
		}
	}
	return 0;
}
