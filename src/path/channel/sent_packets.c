/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/sent_packets.h"

uint32_t sent_add(struct sent_packets *sent, uint64_t now, struct sent_unit what)
{
	uint64_t place = sent->next % SENT_RING;

	sent->ring[place].at = now;
	sent->ring[place].what = what;
	bitmap_set(sent->open, place);
	bitmap_clear(sent->acked, place);
	sent->in_flight++;
	return (uint32_t)sent->next++;
}

static bool sent_close(struct sent_packets *sent, uint64_t place)
{
	if (!bitmap_get(sent->open, place))
		return false;
	bitmap_clear(sent->open, place);
	sent->in_flight--;
	return true;
}

static void sent_acked_one(struct sent_packets *sent, uint64_t sequence, struct sent_ack *ack)
{
	uint64_t place = sequence % SENT_RING;

	bitmap_set(sent->acked, place);
	ack->in_time += sent_close(sent, place);
	ack->units[ack->n++] = sent->ring[place].what;
}

bool sent_acked(struct sent_packets *sent, uint32_t newest, const uint64_t *came,
                struct sent_ack *ack)
{
	uint32_t back = (uint32_t)sent->next - newest;
	uint64_t last = sent->next - back;

	ack->n = ack->in_time = 0;
	ack->sent_at = 0;
	if (!back || back > SENT_RING || back > sent->next)
		return false;
	if (!bitmap_get(sent->acked, last % SENT_RING))
		ack->sent_at = sent->ring[last % SENT_RING].at;
	if (last + 1 > sent->newest)
		sent->newest = last + 1;
	/* Most numbers were acknowledged before. */
	for (uint64_t first = 0; first < PATH_ACK_BITS && first <= last; first += 64) {
		uint64_t fresh =
			came[first / 64] & ~bitmap_back(sent->acked, SENT_RING / 64, last - first);

		for (; fresh; fresh &= fresh - 1) {
			uint64_t i = first + (uint64_t)__builtin_ctzll(fresh);

			if (i > last || back + i > SENT_RING)
				return true;
			sent_acked_one(sent, last - i, ack);
		}
	}
	return true;
}

unsigned sent_lost(struct sent_packets *sent, uint64_t now, uint64_t wait, struct sent_unit *units,
                   unsigned most)
{
	bool oldest = true;
	unsigned n = 0;

	sent->lost_at = UINT64_MAX;
	for (uint64_t i = sent->first; i < sent->newest && n < most; i++) {
		uint64_t place = i % SENT_RING, at = sent->ring[place].at + wait;

		if (bitmap_get(sent->open, place)) {
			if (sent->newest - i <= SENT_LATER && at > now) {
				sent->lost_at = at < sent->lost_at ? at : sent->lost_at;
				oldest = false;
				continue;
			}
			sent_close(sent, place);
			units[n++] = sent->ring[place].what;
		}
		if (oldest)
			sent->first = i + 1;
	}
	return n;
}

unsigned sent_give_up(struct sent_packets *sent, struct sent_unit *units, unsigned most)
{
	unsigned n = 0;

	for (; sent->first < sent->next && n < most; sent->first++)
		if (sent_close(sent, sent->first % SENT_RING))
			units[n++] = sent->ring[sent->first % SENT_RING].what;
	sent->lost_at = UINT64_MAX;
	return n;
}
