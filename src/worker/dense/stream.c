/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dense/stream_internal.h"

#include <stdlib.h>
#include <string.h>

/* Blocks that exponents are ahead of the data; more if data waits for the slowest rank's. */
#define EXPONENTS_LEAD 512u
#define WAITING_LEAD 2048u
/* One guess in so many may be too low. */
#define GUESSES_MISSED 8u
/* Exponents fragments of parts that leave together: each one alone would cut a message of data. */
#define PARTS_TOGETHER 8u

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
	window_probe_init(&stream->window_probe);
	stream->told_idle = true;
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

/* Takes results that came before the round was posted. With the last one the round may be over. */
static bool take_early(struct stream *stream, uint64_t base, uint32_t n, uint64_t now)
{
	bool ok = true;

	for (uint32_t i = 0; stream->early && i < n && i < stream->cells; i++) {
		uint32_t bytes;
		struct wire_header *packet = early_take(stream, base + i, &bytes);

		if (packet)
			ok &= stream_on_result(stream, packet, bytes, now);
		free(packet);
	}
	return ok;
}

bool stream_post(struct stream *stream, struct round *round, uint64_t now)
{
	stream_append(stream, round);
	round->waits |= stream->guesses_fail;
	if (!stream->fresh)
		stream->fresh = round;
	if (!stream->loss_at)
		stream->loss_at = now;
	if (!round->contributes) {
		/* There is nothing to send. Results may have come already: ask. */
		round->next_exponents = round->exponents;
		round->next_data = round->data;
		if (!stream->reliable)
			stream_report(stream, round->base);
	}
	stream->no_result += !round->receives;
	/* Rates depend on which ranks send, so an idle rank tells before it begins to send. */
	if (stream->told_idle && round->contributes && round_fragments(round) >= TAIL_MIN)
		stream_report_gap(stream);
	if (stream->first == round)
		stream_progress(stream, now);
	return round->contributes || take_early(stream, round->base, round_fragments(round), now);
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
		/* A block with special values leaves later, when the result of its specials is
		 * here. */
		if (round->next_data >= round_ready(round))
			return 0;
	}
	return 0;
}

static uint32_t lead_of(const struct round *round)
{
	return round->waits ? WAITING_LEAD : EXPONENTS_LEAD;
}

/* Have some of the exponents fragments left that are to leave together? */
static bool exponents_continue(const struct round *round)
{
	return round->coding == ROUND_PARTS && round->next_exponents % PARTS_TOGETHER &&
	       round->next_data >= (uint64_t)round->per_exponents * PARTS_TOGETHER;
}

/* At first the lead is smaller: links would be idle while all those blocks are read. */
static bool exponents_lead(const struct round *round)
{
	uint32_t most = lead_of(round);

	if (exponents_continue(round))
		return true;
	return round_scanned(round) <=
	       round->next_data + (round->next_data < most ? round->next_data : most);
}

/*
 * Data that waits for agreed classes can leave soon: enough exponents are on their way. More of
 * them would only delay it. Data beyond the window cannot leave: there the window waits for
 * exponents.
 */
static bool data_is_near(const struct round *round, uint64_t end)
{
	return round->waits &&
	       round_scanned(round) >= round->next_data + (uint64_t)lead_of(round) &&
	       round->base + round->exponents + round->specials + round->next_data < end;
}

static uint32_t next_of_round(struct stream *stream, struct round *round, uint64_t end,
                              uint64_t now, void *packet)
{
	bool lead = round->exponents && exponents_lead(round);
	uint32_t bytes = lead ? next_exponents(stream, round, end, now, packet) : 0;

	if (!bytes)
		bytes = next_data(stream, round, end, now, packet);
	if (bytes || data_is_near(round, end))
		return bytes;
	return next_exponents(stream, round, end, now, packet);
}

/* Data of the next round would wait for its first classes: they leave before this round ends. */
static uint32_t next_ahead(struct stream *stream, uint64_t end, uint64_t now, void *packet)
{
	const struct round *round = stream->fresh;
	struct round *next = round ? round->next : NULL;

	if (!next || !next->waits || next->next_exponents || next->base >= end ||
	    round->next_data + lead_of(next) < round->data)
		return 0;
	return next_exponents(stream, next, end, now, packet);
}

/* Is there nothing to send only because the classes of other ranks are on their way? */
static bool is_waiting(const struct stream *stream)
{
	const struct round *round = stream->fresh;

	return round && round->waits && round->agreed < round->next_exponents &&
	       round->next_data >= round_ready(round);
}

static uint32_t next_fragment(struct stream *stream, uint64_t now, void *packet)
{
	uint64_t end = stream_window_end(stream, now);
	uint32_t bytes;

	if (stream->todo && (bytes = next_repeat(stream, end, now, packet)))
		return bytes;
	stream_all_sent(stream);
	if ((bytes = next_ahead(stream, end, now, packet)))
		return bytes;
	for (struct round *round = stream->fresh; round && round->base < end; round = round->next)
		if ((bytes = next_of_round(stream, round, end, now, packet)))
			return bytes;
	if (!stream->shut_at && (stream->fresh || stream->todo) && !is_waiting(stream))
		stream->shut_at = now;
	return 0;
}

static bool report_is_due(const struct stream *stream, uint64_t now)
{
	uint64_t news = stream->sent - stream->reported;
	/* If the window is small, a rank may soon wait for it to move. */
	bool seldom = news < stream->cells / 8 && !stream_lost_recently(stream, now);
	uint64_t every = seldom ? REPORT_SELDOM : REPORT_EVERY;

	return flight_wants_report(&stream->flight, seldom ? 2 * WIRE_GROUP : WIRE_GROUP) ||
	       (news >= REPORT_MIN && now >= stream->reported_at + every);
}

uint32_t stream_next(struct stream *stream, uint64_t now, void *packet)
{
	uint32_t bytes;

	if (!stream->reliable && flight_is_full(&stream->flight)) {
		stream->path_window.full = true;
		return 0;
	}
	bytes = next_fragment(stream, now, packet);
	if (stream->reliable && !stream->no_result)
		return bytes;
	if (bytes) {
		if (report_is_due(stream, now))
			stream_report_sent(stream, now);
	} else if (stream->last) {
		/* A tail. A rank without a result learns by the answer that its part has arrived.
		 */
		if (stream->sent >= stream->reported + (stream->no_result ? 1 : TAIL_MIN))
			stream_report_sent(stream, now);
		else if (!stream->told_idle && stream_all_sent(stream))
			stream_report_gap(stream);
	}
	return bytes;
}

/* A result is taken: was it lost before, or had it only come too early to be used? */
static void judge_result(struct stream *stream, const struct round *round,
                         const struct wire_header *header, uint64_t position)
{
	bool lost = header->flags & WIRE_RESENT && position >= stream->unposted &&
	            !bitmap_get(round->came, (uint32_t)(position - round->base));

	stream->stats.again += lost;
	if (stream->reliable || position < stream->window_probe.until)
		return;
	window_probe_count(&stream->window_probe, lost, stream->sent);
	stream_bound(stream);
}

/* Classes of all ranks have come. What they say of guesses holds for the rounds that follow. */
static void judge_guesses(struct stream *stream, struct round *round)
{
	stream->guesses_fail = round->missed > round->agreed_blocks / GUESSES_MISSED;
	for (; round && stream->guesses_fail; round = round->next)
		round->waits = true;
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
		stream->stats.duplicates++; /* the next report asks for it again */
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
	if (index < round->exponents && round->coding == ROUND_SCALED && round->contributes)
		judge_guesses(stream, round);
	stream->todo += round->todo - todo;
	stream_settle(stream, round, before, now);
	return true;
}

void stream_new_path(struct stream *stream, bool by_delay)
{
	stream->by_delay = by_delay;
	path_window_init(&stream->path_window, stream->flight.launched, WINDOW_LONG_NS);
	stream_bound(stream);
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
