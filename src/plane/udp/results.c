/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results leave straight from their cells. A run of neighbours is one message that
 * the kernel segments.
 */
#include "plane/stream/stream_packets.h"
#include "plane/udp/udp_carrier.h"

#include <string.h>

#define RECENT 512u /* results between two looks at losses */
#define SINGLE_NS 10000000000ull

struct run {
	struct stream_packet first;
	uint32_t bytes, segments;
	uint32_t last; /* bytes of the last packet */
};

/* May this packet join the run? Packets of a run are equally long; only the last may be shorter. */
static bool run_takes(const struct run *run, const struct stream_packet *packet)
{
	const struct stream_packet *first = &run->first;

	return run->segments && packet->position == first->position + run->segments &&
	       packet->again == first->again && packet->to == first->to &&
	       packet->data == first->data + (size_t)run->segments * first->apart &&
	       run->last == first->bytes && packet->bytes <= first->bytes &&
	       run->segments < UDP_GSO_SEGMENTS && run->bytes + packet->bytes <= UDP_GSO_BYTES;
}

static void message_send(struct thread *thread, const struct run *run, const struct udp_address *to)
{
	udp_tx_add_apart(thread->tx, run->first.data, run->bytes, run->first.bytes,
	                 run->first.apart, to);
	thread->counters.sends += run->segments;
	thread->counters.messages++;
}

static void run_send(struct thread *thread, struct agg_lane *lane, const struct run *run)
{
	uint64_t to = run->first.to & lane->known & ~lane->left;

	/* One multicast, if two or more children hear it. */
	if (!run->first.again && thread->now >= lane->single_until &&
	    __builtin_popcountll(to & lane->hears) > 1) {
		message_send(thread, run, &lane->group);
		to &= ~lane->hears;
	}
	for (; to; to &= to - 1)
		message_send(thread, run, &lane->addresses[__builtin_ctzll(to)]);
}

/*
 * The kernel slows a sender whose packets queue before a link. It does not for
 * copies of a multicast: they overflow the queue. If one child loses many results
 * and the others do not, its link is too slow for multicast, and results leave by
 * unicast for SINGLE_NS.
 */
static void watch_losses(struct thread *thread, struct agg_lane *lane)
{
	uint32_t most = 0, all = 0;

	if (++lane->recent_results < RECENT)
		return;
	for (unsigned child = 0; child < lane->comm->size; child++) {
		all += lane->recent_losses[child];
		if (lane->recent_losses[child] > most)
			most = lane->recent_losses[child];
	}
	if (most > RECENT / 4 && all - most < most / 2)
		lane->single_until = thread->now + SINGLE_NS;
	memset(lane->recent_losses, 0, sizeof(lane->recent_losses));
	lane->recent_results = 0;
}

bool results_send_udp(struct thread *thread, struct agg_lane *lane)
{
	struct stream_packet packet;
	struct run run = { 0 };

	while (stream_next_result(thread, lane, &packet)) {
		if (!run_takes(&run, &packet)) {
			if (run.segments)
				run_send(thread, lane, &run);
			run = (struct run){ .first = packet };
			if (udp_tx_room(thread->tx) <= lane->comm->size)
				return false;
		}
		run.last = packet.bytes;
		run.bytes += packet.bytes;
		run.segments++;
		watch_losses(thread, lane);
		stream_result_left(thread, lane, &packet);
	}
	if (run.segments)
		run_send(thread, lane, &run);
	return true;
}
