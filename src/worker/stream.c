/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stream.h"

#include <string.h>

#define MS 1000000ull
#define PATIENCE_MIN (4 * MS)
#define PATIENCE_MAX (100 * MS)
#define YOUNG_MIN (2 * MS)
#define ACK_DELAY MS
#define GATE_MIN (MS / 5)
#define GATE_MAX (5 * MS)
#define SMALL_ROUND 32u /* data fragments: no use in waiting for exponents */
#define TAIL_MIN 64u    /* fragments that make a report at a tail worth its packet */
#define REORDER 64u     /* results may overtake one another by this much */
#define ASK_MIN 64u     /* results to ask for at the first silence: they may only be late */

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static uint32_t stamp(uint64_t now)
{
	return (uint32_t)(now / 1000) | 1; /* 0 means: none */
}

static bool stamp_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

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
	stream->rtt = MS / 2;
}

void stream_clear(struct stream *stream)
{
	while (stream->first) {
		struct round *round = stream->first;

		stream->first = round->next;
		round_free(round);
	}
	stream->last = stream->fresh = stream->near = NULL;
}

/* Something moved: silence is counted from now. */
static void mark_progress(struct stream *stream, uint64_t now)
{
	stream->progress_at = now;
	stream->patience = clamp(2 * stream->rtt + MS, PATIENCE_MIN, PATIENCE_MAX);
	stream->probe_at = stream->done;
	stream->silences = 0;
}

static void raise_low(struct stream *stream, uint64_t low)
{
	/* Nobody's low can be above what we ourselves have acknowledged. */
	if (low > stream->low && low <= stream->done)
		stream->low = low;
}

void stream_post(struct stream *stream, struct round *round, uint64_t now)
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
	if (!round->contributes) { /* nothing to send: as good as sent */
		round->next_exponents = round->exponents;
		round->next_data = round->data;
	}
	if (stream->first == round)
		mark_progress(stream, now);
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
			mark_progress(stream, now);
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
		round_free(round);
	}
}

/* After anything that may have finished fragments of a round. */
static void settle(struct stream *stream, struct round *round, uint32_t finished_before,
                   uint64_t now)
{
	if (round->finished == finished_before)
		return;
	if (round->finished == round_fragments(round))
		stream->on_finished(stream->context, round);
	advance(stream, now);
}

static void fill_header(const struct stream *stream, struct wire_header *header, uint8_t type,
                        uint64_t position)
{
	memset(header, 0, sizeof(*header));
	header->magic = WIRE_MAGIC;
	header->type = type;
	header->child = (uint8_t)stream->child;
	header->pos = wire_pos(stream->lane, position);
	header->ack = (uint32_t)stream->done;
}

static uint32_t send_fragment(struct stream *stream, struct round *round, uint32_t index,
                              uint64_t now, void *packet)
{
	struct wire_header *header = packet;
	uint64_t position = round->base + index;

	fill_header(stream, header, WIRE_DATA, position);
	round->sent_at[position / WIRE_GROUP - round->base / WIRE_GROUP] = stamp(now);
	stream->stats.sent++;
	stream->since_ack = 0;
	return WIRE_HEADER + round_build(round, index, stream->workers, header, header + 1);
}

/*
 * What everyone has acknowledged leaves its cell free. And without knowing
 * that: the result of `position - cells / 2` is here, so everyone had sent
 * it, so everyone had the result of `position - cells`.
 */
static uint64_t window_end(const struct stream *stream)
{
	uint64_t surely = stream->low + stream->cells, by_turn = stream->done + stream->cells / 2;

	return surely > by_turn ? surely : by_turn;
}

static bool in_window(const struct stream *stream, uint64_t position)
{
	return position < window_end(stream);
}

static uint32_t next_repeat(struct stream *stream, uint64_t now, void *packet)
{
	for (struct round *round = stream->first; round; round = round->next) {
		uint32_t n = round_fragments(round), index = 0;

		if (!round->todo)
			continue;
		while ((index = (uint32_t)bitmap_find(round->again, n, index, true)) < n) {
			if (!in_window(stream, round->base + index))
				return 0;
			if (round_may_send(round, index, now))
				break;
			index++;
		}
		if (index == n)
			continue;
		bitmap_clear(round->again, index);
		round->todo--;
		stream->todo--;
		stream->stats.resent++;
		uint32_t bytes = send_fragment(stream, round, index, now, packet);
		((struct wire_header *)packet)->flags |= WIRE_RESENT;
		return bytes;
	}
	return 0;
}

static uint32_t next_exponents(struct stream *stream, struct round *round, uint64_t now,
                               void *packet)
{
	uint32_t index = round->next_exponents, bytes;

	if (index == round->exponents || !in_window(stream, round->base + index))
		return 0;
	bytes = send_fragment(stream, round, index, now, packet);
	if (index == 0 && round->data > SMALL_ROUND)
		round->gate = now + clamp(2 * stream->rtt, GATE_MIN, GATE_MAX);
	round->next_exponents++;
	return bytes;
}

static uint32_t next_data(struct stream *stream, struct round *round, uint64_t now, void *packet)
{
	uint32_t data = round->exponents + round->specials;

	for (; round->next_data < round->data; round->next_data++) {
		uint32_t index = data + round->next_data;

		if (!in_window(stream, round->base + index))
			return 0;
		if (round_may_send(round, index, now)) {
			round->next_data++;
			return send_fragment(stream, round, index, now, packet);
		}
		/* Own specials go later, when the result of their fragment is in; others wait. */
		if (!round->receives ||
		    round->next_data / round->per_exponents >= round->next_exponents ||
		    !bitmap_get(round->own_special, round->next_data))
			return 0;
	}
	return 0;
}

/* Exponents keep a fragment's worth of blocks ahead of the data, and more if that waits. */
static uint32_t next_of_round(struct stream *stream, struct round *round, uint64_t now,
                              void *packet)
{
	bool lead = round->exponents &&
	            round->next_exponents < round->next_data / round->per_exponents + 2;
	uint32_t bytes = lead ? next_exponents(stream, round, now, packet) : 0;

	if (!bytes)
		bytes = next_data(stream, round, now, packet);
	return bytes ? bytes : next_exponents(stream, round, now, packet);
}

static void queue_report(struct stream *stream, uint64_t base)
{
	for (unsigned i = 0; i < stream->n_reports; i++)
		if (stream->reports[i] == base)
			return;
	if (stream->n_reports < sizeof(stream->reports) / sizeof(stream->reports[0]))
		stream->reports[stream->n_reports++] = base;
}

static uint64_t group_of(uint64_t position)
{
	return position - position % WIRE_GROUP;
}

/* A report on the group that has just been sent, and on the oldest one that is not finished. */
static void report_group(struct stream *stream, uint64_t sent)
{
	uint64_t base = group_of(sent - 1);

	if (group_of(stream->done) < base)
		queue_report(stream, stream->done);
	if (base > stream->unreported) /* a tail of the group before */
		queue_report(stream, group_of(stream->unreported));
	queue_report(stream, base);
	stream->unreported = sent;
}

uint32_t stream_next(struct stream *stream, uint64_t now, void *packet)
{
	uint32_t bytes;

	if (stream->todo && (bytes = next_repeat(stream, now, packet)))
		return bytes;
	while (stream->fresh && all_sent(stream->fresh))
		stream->fresh = stream->fresh->next;
	for (struct round *round = stream->fresh; round; round = round->next) {
		uint64_t sent;

		if (!in_window(stream, round->base))
			break;
		bytes = next_of_round(stream, round, now, packet);
		if (!bytes)
			continue;
		sent = wire_position(packet) + 1;
		if (sent > stream->unreported && sent % WIRE_GROUP == 0)
			report_group(stream, sent);
		return bytes;
	}
	/* Nothing to send: a tail, be it of a round or of the window. */
	if (stream->fresh || stream->last) {
		struct round *round = stream->fresh ? stream->fresh : stream->last;
		uint64_t sent =
			round->base +
			(round->next_data ? round->exponents + round->specials + round->next_data
		                          : round->next_exponents);

		/* Who gets no result learns from the answer that its part has arrived. */
		if (sent >= stream->unreported + (round->receives ? TAIL_MIN : 1))
			report_group(stream, sent);
	}
	return 0;
}

static struct round *find_round(struct stream *stream, uint64_t position)
{
	struct round *round =
		stream->near && stream->near->base <= position ? stream->near : stream->first;

	while (round && position >= round->base + round_fragments(round))
		round = round->next;
	if (!round || position < round->base)
		return NULL;
	return stream->near = round;
}

bool stream_on_result(struct stream *stream, const struct wire_header *header, uint32_t bytes,
                      uint64_t now)
{
	uint64_t position = wire_position(header);
	struct round *round = find_round(stream, position);
	uint32_t before, todo, index;

	stream->stats.results++;
	raise_low(stream, wire_widen(header->ack, stream->low));
	if (!round) {
		stream->stats.duplicates++;
		return true;
	}
	index = (uint32_t)(position - round->base);
	if (bitmap_get(round->have, index) || !round_wants(round, index) ||
	    bytes != round_bytes(round, index)) {
		stream->stats.duplicates++;
		return true;
	}
	if (position > stream->top)
		stream->top = position;
	stream->since_ack++;
	stream->progress_at = now;
	before = round->finished;
	todo = round->todo;
	if (!round_take(round, index, stream->workers, header->scale, header + 1))
		return false;
	stream->todo += round->todo - todo;
	settle(stream, round, before, now);
	return true;
}

uint32_t stream_on_status(struct stream *stream, const struct wire_header *header, uint64_t now)
{
	const struct wire_status *status = (const void *)(header + 1);
	uint32_t missing = 0;

	raise_low(stream, status->low);
	stream->waiting = status->waiting;
	if (status->stamp) {
		uint64_t rtt = (uint64_t)(stamp(now) - status->stamp) * 1000;

		if (rtt < 1000 * MS)
			stream->rtt = (7 * stream->rtt + rtt) / 8;
	}
	for (uint32_t i = 0; i < status->bits; i++) {
		uint64_t position = status->base + i;
		struct round *round = find_round(stream, position);
		uint32_t index, before, todo;

		if (!round)
			continue;
		index = (uint32_t)(position - round->base);
		if (bitmap_get(round->have, index) || !round_was_sent(round, index) ||
		    stamp_before(status->stamp,
		                 round->sent_at[position / WIRE_GROUP - round->base / WIRE_GROUP]))
			continue;
		before = round->finished;
		todo = round->todo;
		if (bitmap_get(status->missing, i)) {
			/* Sent on a guess: it may be there, below another's exponent. */
			if (!round_is_settled(round, index))
				continue;
			round_repeat(round, index);
			stream->todo += round->todo - todo;
			missing += round->todo - todo; /* those already marked are no new loss */
		} else if (!round_wants(round, index) && round_is_final(round, index)) {
			round_finish(round, index);
			stream->todo += round->todo - todo;
			settle(stream, round, before, now);
		}
	}
	if (missing)
		stream->progress_at = now;
	return missing;
}

static uint32_t build_report(struct stream *stream, uint64_t base, uint64_t now, void *packet)
{
	struct wire_header *header = packet;
	struct wire_report *report = (void *)(header + 1);
	struct round *round = NULL;
	uint32_t asked = 0;

	fill_header(stream, header, WIRE_REPORT, stream->done);
	memset(report, 0, sizeof(*report));
	report->base = base;
	report->stamp = stamp(now);
	report->young = (uint32_t)(clamp(stream->rtt, YOUNG_MIN, PATIENCE_MAX) / 1000);
	report->bits = (uint32_t)(stream->next_base - base < WIRE_GROUP ? stream->next_base - base
	                                                                : WIRE_GROUP);
	for (uint32_t i = 0; i < report->bits; i++) {
		uint64_t position = base + i;

		if (stream->ask ? asked == stream->ask : position + REORDER >= stream->top)
			break;
		if (position < stream->done)
			continue;
		if (!round || position >= round->base + round_fragments(round))
			round = find_round(stream, position);
		if (round && !bitmap_get(round->have, position - round->base)) {
			bitmap_set(report->missing, i);
			asked++;
		}
	}
	stream->since_ack = 0;
	stream->stats.reports++;
	return WIRE_HEADER + sizeof(*report);
}

/* Nothing has come for too long: ask about the oldest unfinished groups, in turn. */
static void report_silence(struct stream *stream, uint64_t now)
{
	uint64_t end = window_end(stream);

	if (end > stream->next_base)
		end = stream->next_base;
	if (stream->probe_at < stream->done || stream->probe_at >= end)
		stream->probe_at = stream->done;
	for (int i = 0; i < 3 && stream->probe_at < end; i++) {
		queue_report(stream, stream->probe_at);
		stream->probe_at += WIRE_GROUP;
	}
	if (stream->silences < 8)
		stream->silences++;
	stream->ask =
		(uint32_t)clamp((uint64_t)ASK_MIN << (stream->silences - 1), ASK_MIN, WIRE_GROUP);
	stream->progress_at = now;
	stream->patience = clamp(2 * stream->patience, PATIENCE_MIN, PATIENCE_MAX);
}

/* Results have come and no packet has said so: the window of others may hang on it. */
static bool ack_is_due(const struct stream *stream, uint64_t now)
{
	uint32_t limit = stream->cells / 4 < WIRE_GROUP / 4 ? stream->cells / 4 : WIRE_GROUP / 4;

	return stream->since_ack > limit ||
	       (stream->since_ack && !stream->first && now >= stream->progress_at + ACK_DELAY);
}

uint32_t stream_next_report(struct stream *stream, uint64_t now, void *packet)
{
	if (!stream->n_reports && ack_is_due(stream, now))
		queue_report(stream, stream->done);
	if (!stream->n_reports && stream->first && now >= stream->progress_at + stream->patience)
		report_silence(stream, now);
	if (!stream->n_reports) {
		stream->ask = 0;
		return 0;
	}
	return build_report(stream, stream->reports[--stream->n_reports], now, packet);
}

uint32_t stream_heartbeat(struct stream *stream, uint64_t now, void *packet)
{
	return build_report(stream, stream->done, now, packet);
}

uint64_t stream_wake(const struct stream *stream, uint64_t now)
{
	uint64_t wake;

	if (!stream->first)
		return stream->since_ack ? stream->progress_at + ACK_DELAY : UINT64_MAX;
	wake = stream->progress_at + stream->patience;
	for (const struct round *round = stream->fresh; round; round = round->next)
		if (round->gate > now && round->gate < wake)
			wake = round->gate;
	return wake;
}
