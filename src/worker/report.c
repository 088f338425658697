/* SPDX-License-Identifier: Apache-2.0 */
/* How losses are found: what a worker reports, when, and what the answers mean. */
#include "worker/stream_internal.h"

#include <string.h>

#define YOUNG_MIN (2 * MS)
#define ASK_MIN 64u /* results to ask for at the first silence: they may only be late */

#define ANEW_LEAST 100000u /* microseconds between two rates that are judged by themselves */
#define STAMP_OLD 1000000u /* microseconds: longer ago, a stamp says nothing any more */

static bool is_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

void stream_report(struct stream *stream, uint64_t base)
{
	for (unsigned i = 0; i < stream->n_reports; i++)
		if (base - stream->reports[i] < WIRE_GROUP / 2)
			return; /* that one speaks of it too */
	if (stream->n_reports < STREAM_REPORTS)
		stream->reports[stream->n_reports++] = base;
}

/* Above all of which an answer can tell anything: what has left, and rounds of others. */
static uint64_t reportable_end(struct stream *stream)
{
	uint64_t end;

	if (stream->reliable || stream_all_sent(stream) || !stream->fresh)
		return stream->next_base;
	end = stream->fresh->base;
	for (const struct round *round = stream->fresh; round; round = round->next) {
		uint64_t last = round->base + round_fragments(round);

		if (round->contributes && last > stream->sent)
			last = stream->sent;
		if (last > end)
			end = last;
	}
	return end;
}

/* Is its result to come, or word that it has arrived? */
static bool is_open(const struct round *round, uint32_t index)
{
	return !bitmap_get(round->have, index) &&
	       (!round->contributes || round_was_sent(round, index));
}

/*
 * The first fragment that something is to come of. What is not finished below
 * it has not left: special values that may not be needed stand before all data,
 * and are settled only with the exponents of their blocks.
 */
static uint64_t oldest_gap(struct stream *stream)
{
	uint64_t end = reportable_end(stream);

	if (stream->reliable)
		return stream->done;
	for (const struct round *round = stream->first; round && round->base < end;
	     round = round->next) {
		uint32_t n = round_fragments(round);
		uint32_t index =
			stream->done > round->base ? (uint32_t)(stream->done - round->base) : 0;

		if (round->base + n > end)
			n = (uint32_t)(end - round->base);
		for (; (index = (uint32_t)bitmap_find(round->have, n, index, false)) < n; index++)
			if (is_open(round, index))
				return round->base + index;
	}
	return end > stream->done ? end : stream->done;
}

void stream_report_gap(struct stream *stream)
{
	stream_report(stream, oldest_gap(stream));
}

void stream_report_sent(struct stream *stream, uint64_t now)
{
	uint64_t gap = oldest_gap(stream);
	uint64_t base = stream->reported > gap ? stream->reported : gap;
	uint64_t checked = stream->checked > gap && !stream->reliable ? stream->checked : gap;

	stream_report(stream, gap);
	/* Where results were last looked for; mostly one report covers both. */
	if (checked < base && base - checked < WIRE_GROUP / 2)
		base = checked;
	else
		stream_report(stream, checked);
	for (; base < stream->sent; base += WIRE_GROUP)
		stream_report(stream, base);
	stream->reported = stream->sent;
	stream->reported_at = now;
}

/* Marks the results to ask for: known to be lost, or (in silence) only late. Gives how many. */
static uint32_t fill_missing(struct stream *stream, struct wire_report *report, bool lost)
{
	uint32_t asked = 0;

	for (uint32_t i = 0; i < report->bits && (lost || asked < stream->ask); i++) {
		struct round *round = stream_find(stream, report->base + i);
		uint32_t index = round ? (uint32_t)(report->base + i - round->base) : 0;

		if (!round || !is_open(round, index) || !round_wants(round, index) ||
		    (lost && !bitmap_get(round->wanted, index)))
			continue;
		bitmap_clear(round->wanted, index);
		bitmap_set(report->missing, i);
		asked++;
	}
	return asked;
}

static uint32_t build_report(struct stream *stream, uint64_t base, uint64_t now, void *packet)
{
	struct wire_control *header = packet;
	struct wire_report *report = (void *)(header + 1);
	uint64_t end = reportable_end(stream), most = WIRE_GROUP;
	uint64_t left = end > base ? end - base : 0;

	if (stream->reliable && !stream->deaf)
		most = 1; /* who owes it is all that there is to learn */
	*header = (struct wire_control){ .magic = WIRE_MAGIC,
		                         .type = WIRE_REPORT,
		                         .child = (uint8_t)stream->child,
		                         .pos = wire_pos(stream->lane, stream->done),
		                         .ack = (uint32_t)stream->done };
	memset(report, 0, sizeof(*report));
	report->base = base;
	report->stamp = stamp_of(now);
	report->bits = (uint32_t)(left < most ? left : most);
	report->want = stream->want;
	report->judged = (uint32_t)stream->stats.judged;
	report->lost = (uint32_t)stream->stats.lost;
	report->again = (uint16_t)stream->stats.again;
	stream->rests = stream_all_sent(stream);
	header->flags = stream->rests ? WIRE_AT_REST : 0;
	if (stream->reliable) {
		; /* what is not here is on its way */
	} else if (fill_missing(stream, report, true)) {
		stream->asked_at = report->stamp;
	} else if (stream->ask) {
		report->young = (uint32_t)(clamp(stream->rtt, YOUNG_MIN, PATIENCE_MAX) / 1000);
		fill_missing(stream, report, false);
	}
	stream->since_ack = 0;
	stream->left_at = now;
	stream->stats.reports++;
	flight_mark(&stream->flight, report->stamp);
	return WIRE_CONTROL + sizeof(*report);
}

/*
 * Results that have not come may only be late. In mid-stream the answer tells, or a later one does,
 * and what is sent again for nothing is in the way of all others. At the end all wait for it.
 */
static uint32_t results_to_ask(struct stream *stream)
{
	unsigned patient = stream_all_sent(stream) ? 0 : 1;

	if (stream->silences <= patient)
		return 0;
	return (uint32_t)clamp((uint64_t)ASK_MIN << (stream->silences - patient - 1), ASK_MIN,
	                       WIRE_GROUP);
}

/* Is something lost now and then, and is it known how long an answer takes? */
static bool is_rough(const struct stream *stream, uint64_t now)
{
	return stream->rtt && stream_is_shaken(stream, now);
}

/*
 * Where packets are lost and nothing of ours can leave, the little that still
 * comes says nothing about the rest: it counts from when we last said something,
 * which may be lost too. Who has sent all may wait as long as results are many.
 */
uint64_t stream_silent_at(const struct stream *stream, uint64_t now)
{
	uint64_t at = stream->progress_at + stream->patience, soon = stream->left_at;
	bool has_more = stream->fresh || stream->todo;
	bool is_stuck = has_more ? stream->shut_at || flight_is_full(&stream->flight)
	                         : stream->sent > stream->done;

	if (stream->reliable || !is_rough(stream, now) || !is_stuck)
		return at;
	if (!has_more && stream->flow_at > soon)
		soon = stream->flow_at;
	soon += clamp(stream->rtt + stream->rtt / 2, PATIENCE_MIN, PATIENCE_MAX);
	return soon < at ? soon : at;
}

/* Nothing has come for too long: ask about the oldest unfinished groups, in turn. */
static void report_silence(struct stream *stream, uint64_t now)
{
	uint64_t end = stream_window_end(stream, now), sent = reportable_end(stream);
	uint64_t gap = oldest_gap(stream), most = PATIENCE_MAX;

	if (end > sent)
		end = sent;
	if (stream->probe_at < gap || stream->probe_at >= end)
		stream->probe_at = gap;
	stream_report(stream, gap);
	for (int i = 1; i < STREAM_REPORTS && stream->probe_at < end; i++) {
		if (stream->reliable && !stream->deaf)
			break; /* only the window is of interest */
		stream_report(stream, stream->probe_at);
		stream->probe_at += WIRE_GROUP;
	}
	if (stream->silences < 8)
		stream->silences++;
	stream->ask = results_to_ask(stream);
	stream->progress_at = now;
	/* Where packets are lost, the question or its answer may have been. */
	if (is_rough(stream, now))
		most = clamp(2 * stream->rtt + MS, 2 * PATIENCE_MIN, PATIENCE_MAX);
	stream->patience = clamp(2 * stream->patience, PATIENCE_MIN, most);
}

/* Results have come and no packet has said so: the window of others may hang on it. */
static bool ack_is_due(const struct stream *stream, uint64_t now)
{
	uint32_t limit = stream->cells / 4;

	if (limit > WIRE_GROUP / 4 && !stream->reliable)
		limit = WIRE_GROUP / 4;
	if (!stream->since_ack || stream->since_ack > limit)
		return stream->since_ack;
	return stream->first ? stream->shut_at && now >= stream->shut_at + SHUT_PATIENCE / 2
	                     : now >= stream->progress_at + ACK_DELAY;
}

uint32_t stream_next_report(struct stream *stream, uint64_t now, void *packet)
{
	if (!stream->n_reports && ack_is_due(stream, now))
		stream_report_gap(stream);
	if (!stream->n_reports && stream->first && now >= stream_silent_at(stream, now))
		report_silence(stream, now);
	if (!stream->n_reports) {
		stream->ask = 0;
		return 0;
	}
	return build_report(stream, stream->reports[--stream->n_reports], now, packet);
}

void stream_judge_anew(struct stream *stream, uint64_t now)
{
	/* Where it falls all the time nothing would ever be judged. */
	if (stream->anew_at && stamp_of(now) - stream->anew_at < ANEW_LEAST)
		return;
	stream->anew = stream->flight.launched;
	stream->anew_at = stamp_of(now);
}

uint32_t stream_heartbeat(struct stream *stream, uint64_t now, void *packet)
{
	return build_report(stream, oldest_gap(stream), now, packet);
}

/*
 * Who does not get a result is done with a fragment when it is at the
 * aggregator, in its final form; after a guess, that it was there is not
 * enough, as a higher exponent may have thrown it out: then it must be complete.
 */
static bool is_delivered(const struct round *round, uint32_t index, bool missing, bool complete)
{
	if (round_wants(round, index))
		return false;
	return complete || (!missing && !round->guessed && round_is_final(round, index));
}

/* At a rate of before: that it was lost says nothing about this one. */
static bool left_before(const struct stream *stream, uint32_t sent_at)
{
	return stream->anew_at && !is_after(sent_at, stream->anew_at);
}

/* One fragment that the status speaks of. True: the last packet that it left in was lost. */
static bool take_word(struct stream *stream, uint64_t position, uint32_t stamp, bool missing,
                      bool complete, uint64_t now)
{
	struct round *round = stream_find(stream, position);
	uint32_t index, before, todo;
	bool lost = false;

	if (!round)
		return false;
	index = (uint32_t)(position - round->base);
	/* Only what was asked after it had left says anything about it. */
	if (bitmap_get(round->have, index) || !round_was_sent(round, index) ||
	    !is_after(stamp, round->sent_at[index]))
		return false;
	before = round->finished;
	todo = round->todo;
	if (is_delivered(round, index, missing, complete)) {
		round_finish(round, index);
	} else if (missing && round_is_settled(round, index)) {
		round_repeat(round, index);
		lost = round->todo > todo; /* one already marked is no new loss */
		stream->stats.lost += lost && !left_before(stream, round->sent_at[index]);
	} /* sent on a guess, it may be there, below another's exponent */
	stream->todo += round->todo - todo;
	stream_settle(stream, round, before, now);
	return lost;
}

/* The answer to a report is here: so many packets that had left before it were lost. */
static void confirm(struct stream *stream, uint32_t stamp, uint32_t lost)
{
	uint64_t judged = stream->flight.confirmed;

	flight_confirm(&stream->flight, stamp, lost);
	if (judged < stream->anew)
		judged = stream->anew;
	if (stream->flight.confirmed > judged)
		stream->stats.judged += stream->flight.confirmed - judged;
}

/* Results that left before this STATUS did and are not here are lost. */
static bool find_lost_results(struct stream *stream, const struct wire_status *status)
{
	uint64_t gap = oldest_gap(stream), checked = stream->checked > gap ? stream->checked : gap;
	bool lost = false;

	/* Asked before what was asked for last could come: it says nothing new. */
	if (stream->asked_at && is_after(stream->asked_at, status->stamp))
		return false;
	for (uint32_t i = 0; i < status->bits; i++) {
		uint64_t position = status->base + i;
		struct round *round = stream_find(stream, position);
		uint32_t index = round ? (uint32_t)(position - round->base) : 0;
		bool complete = bitmap_get(status->complete, i);

		if (position == checked && (complete || !round || !is_open(round, index)))
			checked++;
		if (!complete || !round || bitmap_get(round->have, index) ||
		    !round_wants(round, index))
			continue;
		bitmap_set(round->wanted, index);
		lost = true;
	}
	stream->checked = checked;
	if (lost)
		stream_report(stream, status->base);
	return lost;
}

void stream_on_news(struct stream *stream, const struct wire_control *header, uint64_t now)
{
	const struct wire_status *status = (const void *)(header + 1);

	stream_on_low(stream, status->low);
	for (uint32_t i = 0; i < status->bits; i++) {
		struct round *round = bitmap_get(status->complete, i)
		                              ? stream_find(stream, status->base + i)
		                              : NULL;
		uint32_t index = round ? (uint32_t)(status->base + i - round->base) : 0;
		uint32_t before = round ? round->finished : 0, todo = round ? round->todo : 0;

		if (!round || bitmap_get(round->have, index) || round_wants(round, index))
			continue;
		round_finish(round, index);
		stream->todo += round->todo - todo;
		stream_settle(stream, round, before, now);
	}
}

void stream_on_status(struct stream *stream, const struct wire_control *header, uint64_t now)
{
	const struct wire_status *status = (const void *)(header + 1);
	uint64_t rtt = (uint64_t)(stamp_of(now) - status->stamp) * 1000;
	uint32_t lost = 0;

	/* Or they would be ahead of all when half of the clock is round. */
	if (stamp_of(now) - stream->asked_at > STAMP_OLD)
		stream->asked_at = 0;
	if (stamp_of(now) - stream->anew_at > STAMP_OLD)
		stream->anew_at = 0;
	if (status->stamp)
		stream->silences = 0;
	stream_on_low(stream, status->low);
	stream->waiting = status->waiting;
	if (stream->first && stream->first->from != WIRE_ALL) /* nobody else owes anything */
		stream->waiting &= 1ull << stream->first->from;
	if (status->stamp && rtt < 1000 * MS) /* quick to fall, as when a queue has drained */
		stream->rtt = !stream->rtt        ? rtt
		              : rtt < stream->rtt ? (stream->rtt + rtt) / 2
		                                  : (7 * stream->rtt + rtt) / 8;
	for (uint32_t i = 0; i < status->bits; i++)
		lost += take_word(stream, status->base + i, status->stamp,
		                  bitmap_get(status->missing, i), bitmap_get(status->complete, i),
		                  now);
	confirm(stream, status->stamp, lost);
	if ((!stream->reliable && find_lost_results(stream, status)) || lost) {
		stream_progress(stream, now); /* what comes of it should be here soon */
		stream->shaken_at = now;
	}
}
