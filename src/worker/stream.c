/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stream_internal.h"

#include <string.h>

#define EXPONENTS_LEAD 512u

void stream_init(struct stream *stream, unsigned lane, unsigned child, unsigned workers,
                 uint32_t cells, uint32_t payload)
{
	memset(stream, 0, sizeof(*stream));
	stream->lane = lane;
	stream->child = child;
	stream->workers = workers;
	stream->cells = cells;
	stream->payload = payload;
	stream->patience = PATIENCE_MIN;
	flight_init(&stream->flight);
	narrow_init(&stream->narrow);
	stream->rests = true;
}

void stream_clear(struct stream *stream)
{
	while (stream->first) {
		struct round *round = stream->first;

		stream->first = round->next;
		round_free(round);
	}
	stream->last = stream->fresh = stream->near = NULL;
	early_free(stream);
}

void stream_progress(struct stream *stream, uint64_t now)
{
	stream->progress_at = now;
	stream->patience = clamp(2 * stream->rtt + MS, PATIENCE_MIN, PATIENCE_MAX);
	stream->probe_at = stream->done;
	stream->silences = 0;
}

void stream_on_low(struct stream *stream, uint64_t low)
{
	/* Nobody's low can be above what we ourselves have acknowledged. */
	if (low > stream->low && low <= stream->done)
		stream->low = low;
}

bool stream_post(struct stream *stream, struct round *round, uint64_t now)
{
	round->base = stream->next_base;
	round->next = NULL;
	stream->next_base += round_fragments(round);
	if (stream->last)
		stream->last->next = round;
	else
		stream->first = round;
	stream->last = round;
	if (!stream->fresh)
		stream->fresh = round;
	if (!stream->shaken_at)
		stream->shaken_at = now;
	if (!round->contributes) {
		/* Nothing to send is as good as sent. But results may have come before this. */
		round->next_exponents = round->exponents;
		round->next_data = round->data;
		if (!stream->reliable)
			stream_report(stream, round->base);
	}
	stream->deaf += !round->receives;
	/* What others get of the links depends on who sends: he says so before he begins. */
	if (stream->rests && round->contributes && round_fragments(round) >= TAIL_MIN)
		stream_report_gap(stream);
	if (stream->first == round)
		stream_progress(stream, now);
	return round->contributes || early_take(stream, round, now);
}

static bool all_sent(const struct round *round)
{
	return round->next_exponents == round->exponents && round->next_data == round->data;
}

/* Moves `done` on; rounds below it are over. */
static void advance(struct stream *stream, uint64_t now)
{
	struct round *round;

	while ((round = stream->first)) {
		uint32_t n = round_fragments(round);
		uint32_t index = (uint32_t)bitmap_find(round->have, n,
		                                       (size_t)(stream->done - round->base), false);

		if (round->base + index > stream->done) {
			stream->done = round->base + index;
			stream_progress(stream, now);
		}
		if (index < n)
			return;
		stream->first = round->next;
		if (stream->last == round)
			stream->last = NULL;
		if (stream->fresh == round)
			stream->fresh = round->next;
		if (stream->near == round)
			stream->near = NULL;
		if (stream->on_over)
			stream->on_over(stream->context, round);
		else
			round_free(round);
	}
}

void stream_settle(struct stream *stream, struct round *round, uint32_t finished_before,
                   uint64_t now)
{
	if (round->finished == finished_before)
		return;
	if (round->finished == round_fragments(round)) {
		stream->deaf -= !round->receives;
		stream->on_finished(stream->context, round);
	}
	advance(stream, now);
}

static uint32_t send_fragment(struct stream *stream, struct round *round, uint32_t index,
                              uint64_t now, void *packet)
{
	struct wire_header *header = packet;
	uint64_t position = round->base + index;

	*header = (struct wire_header){ .magic = WIRE_MAGIC,
		                        .type = WIRE_DATA,
		                        .child = (uint8_t)stream->child,
		                        .pos = (uint32_t)position,
		                        .ack = (uint32_t)stream->done };
	round->sent_at[index] = stamp_of(now);
	stream->stats.sent++;
	stream->since_ack = 0;
	stream->left_at = now;
	stream->shut_at = 0;
	stream->flight.launched++;
	if (position >= stream->sent)
		stream->sent = position + 1;
	return WIRE_HEADER + round_build(round, index, stream->workers, header, header + 1);
}

/*
 * What everyone has acknowledged leaves its cell free: that is the window. It
 * may be wider than we know. If it stays shut for a while we try: the result
 * of `position - cells / 2` is here, so everyone had sent that, and most
 * likely had the result of `position - cells`. If not, the aggregator drops it,
 * so on a reliable path, where nothing is sent again, we wait.
 */
uint64_t stream_window_end(const struct stream *stream, uint64_t now)
{
	uint64_t surely = stream->low + stream->cells, likely = stream->done + stream->cells / 2;

	if (!stream->shut_at || now < stream->shut_at + SHUT_PATIENCE || surely > likely ||
	    stream->reliable)
		return surely;
	return likely;
}

static uint32_t next_repeat(struct stream *stream, uint64_t end, uint64_t now, void *packet)
{
	for (struct round *round = stream->first; round; round = round->next) {
		uint32_t n = round_fragments(round), index = 0, bytes;

		if (!round->todo)
			continue;
		while ((index = (uint32_t)bitmap_find(round->again, n, index, true)) < n) {
			if (round->base + index >= end)
				return 0;
			if (round_may_send(round, index))
				break;
			index++;
		}
		if (index == n)
			continue;
		bitmap_clear(round->again, index);
		round->todo--;
		stream->todo--;
		stream->stats.resent++;
		bytes = send_fragment(stream, round, index, now, packet);
		((struct wire_header *)packet)->flags |= WIRE_RESENT;
		return bytes;
	}
	return 0;
}

static uint32_t next_exponents(struct stream *stream, struct round *round, uint64_t end,
                               uint64_t now, void *packet)
{
	uint32_t index = round->next_exponents, bytes;

	if (index == round->exponents || round->base + index >= end)
		return 0;
	bytes = send_fragment(stream, round, index, now, packet);
	round->next_exponents++;
	return bytes;
}

static uint32_t next_data(struct stream *stream, struct round *round, uint64_t end, uint64_t now,
                          void *packet)
{
	uint32_t data = round->exponents + round->specials;

	for (; round->next_data < round->data; round->next_data++) {
		uint32_t index = data + round->next_data;

		if (round->base + index >= end)
			return 0;
		if (round_may_send(round, index)) {
			round->next_data++;
			return send_fragment(stream, round, index, now, packet);
		}
		/* Own specials go later, when the result of their fragment is in. */
		if (round->next_data >= round_scanned(round))
			return 0;
	}
	return 0;
}

/*
 * Exponents keep so many blocks ahead of the data, and more if that waits. Not
 * from the first on: links would be idle while all those blocks are read.
 */
static bool exponents_lead(const struct round *round)
{
	uint32_t ahead = round->next_data < EXPONENTS_LEAD ? round->next_data : EXPONENTS_LEAD;

	return round_scanned(round) <= round->next_data + ahead;
}

static uint32_t next_of_round(struct stream *stream, struct round *round, uint64_t end,
                              uint64_t now, void *packet)
{
	bool lead = round->exponents && exponents_lead(round);
	uint32_t bytes = lead ? next_exponents(stream, round, end, now, packet) : 0;

	if (!bytes)
		bytes = next_data(stream, round, end, now, packet);
	return bytes ? bytes : next_exponents(stream, round, end, now, packet);
}

bool stream_all_sent(struct stream *stream)
{
	while (stream->fresh && all_sent(stream->fresh))
		stream->fresh = stream->fresh->next;
	return !stream->fresh && !stream->todo;
}

static uint32_t next_fragment(struct stream *stream, uint64_t now, void *packet)
{
	uint64_t end = stream_window_end(stream, now);
	uint32_t bytes;

	if (stream->todo && (bytes = next_repeat(stream, end, now, packet)))
		return bytes;
	stream_all_sent(stream);
	for (struct round *round = stream->fresh; round && round->base < end; round = round->next)
		if ((bytes = next_of_round(stream, round, end, now, packet)))
			return bytes;
	if (!stream->shut_at && (stream->fresh || stream->todo))
		stream->shut_at = now;
	return 0;
}

static bool report_is_due(const struct stream *stream, uint64_t now)
{
	uint64_t news = stream->sent - stream->reported;
	/* Where the window is small, we or others may soon wait for it to move. */
	bool seldom = news < stream->cells / 8 && !stream_is_shaken(stream, now);
	uint64_t every = seldom ? REPORT_SELDOM : REPORT_EVERY;

	return flight_wants_report(&stream->flight, seldom ? 2 * WIRE_GROUP : WIRE_GROUP) ||
	       (news >= REPORT_MIN && now >= stream->reported_at + every);
}

uint32_t stream_next(struct stream *stream, uint64_t now, void *packet)
{
	uint32_t bytes;

	if (!stream->reliable && flight_is_full(&stream->flight))
		return 0;
	bytes = next_fragment(stream, now, packet);
	if (stream->reliable && !stream->deaf)
		return bytes;
	if (bytes) {
		if (report_is_due(stream, now))
			stream_report_sent(stream, now);
	} else if (stream->last) {
		/* A tail. Who gets no result learns from the answer that its part has arrived. */
		if (stream->sent >= stream->reported + (stream->deaf ? 1 : TAIL_MIN))
			stream_report_sent(stream, now);
		else if (!stream->rests && stream_all_sent(stream))
			stream_report_gap(stream);
	}
	return bytes;
}

struct round *stream_find(struct stream *stream, uint64_t position)
{
	struct round *round =
		stream->near && stream->near->base <= position ? stream->near : stream->first;

	while (round && position >= round->base + round_fragments(round))
		round = round->next;
	if (!round || position < round->base)
		return NULL;
	return stream->near = round;
}

/* A result that is taken: was it lost before, or did it only come when nothing could use it? */
static void judge_result(struct stream *stream, const struct round *round,
                         const struct wire_header *header, uint64_t position)
{
	bool lost = header->flags & WIRE_RESENT && position >= stream->unposted &&
	            !bitmap_get(round->came, (uint32_t)(position - round->base));

	stream->stats.again += lost;
	if (stream->reliable || position < stream->narrow.until)
		return;
	narrow_count(&stream->narrow, lost, stream->sent);
	stream->flight.cap = stream->narrow.cap;
}

bool stream_on_result(struct stream *stream, const struct wire_header *header, uint32_t bytes,
                      uint64_t now)
{
	uint64_t position = stream_position(stream, header);
	struct round *round = stream_find(stream, position);
	uint32_t before, todo, index;

	stream->stats.results++;
	stream_on_low(stream, wire_widen(header->ack, stream->low));
	if (!round && stream->reliable && position >= stream->next_base)
		return early_keep(stream, header, bytes);
	if (!round) {
		if (position >= stream->next_base && position < stream->low + stream->cells &&
		    position >= stream->unposted)
			stream->unposted = position + 1;
		stream->stats.duplicates++;
		return true;
	}
	index = (uint32_t)(position - round->base);
	if (bitmap_get(round->have, index) || !round_wants(round, index) ||
	    !round_fits(round, index, header, bytes)) {
		stream->stats.duplicates++;
		return true;
	}
	if (!round_may_take(round, index)) {
		if (stream->reliable)
			return round_keep(round, index, header->scale, header + 1);
		bitmap_set(round->came, index);
		stream->stats.duplicates++; /* it will be asked for again */
		return true;
	}
	judge_result(stream, round, header, position);
	if (++stream->since_ack % FLOW == 0)
		stream->flow_at = now;
	stream->progress_at = now;
	stream->silences = 0;
	before = round->finished;
	todo = round->todo;
	if (!round_take(round, index, stream->workers, header->scale, header + 1))
		return false;
	stream->todo += round->todo - todo;
	stream_settle(stream, round, before, now);
	return true;
}

uint64_t stream_wake(const struct stream *stream, uint64_t now)
{
	uint64_t wake;

	if (!stream->first)
		return stream->since_ack ? stream->progress_at + ACK_DELAY : UINT64_MAX;
	wake = stream_silent_at(stream, now);
	if (stream->shut_at && stream->since_ack && now < stream->shut_at + SHUT_PATIENCE / 2)
		wake = stream->shut_at + SHUT_PATIENCE / 2;
	else if (stream->shut_at && now < stream->shut_at + SHUT_PATIENCE && !stream->reliable)
		wake = stream->shut_at + SHUT_PATIENCE;
	return wake;
}
