/* SPDX-License-Identifier: Apache-2.0 */
/* How losses are found: what this rank reports, when, and what the answers mean. */
#include "worker/dense/stream_internal.h"

#include <string.h>

#define YOUNG_MIN (2 * MS) /* a result that left this recently may still arrive */
#define ASK_MIN 64u        /* results to ask for at the first silence: they may be late */

#define RATE_FELL_LEAST 100000u /* microseconds: a lower rate restarts the judgement this often */
#define STAMP_OLD 1000000u      /* microseconds: an older stamp is cleared before it wraps */

static bool is_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

void stream_report(struct stream *stream, uint64_t base)
{
	for (unsigned i = 0; i < stream->n_reports; i++)
		if (base - stream->reports[i] < WIRE_GROUP / 2)
			return; /* that report covers it */
	if (stream->n_reports < STREAM_REPORTS)
		stream->reports[stream->n_reports++] = base;
}

/* An answer can tell of fragments below: those that have left, and rounds of other ranks. */
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

/* Is the fragment open: is its result missing, or the news that it has arrived? */
static bool is_open(const struct round *round, uint32_t index)
{
	return !bitmap_get(round->have, index) &&
	       (!round->contributes || round_was_sent(round, index));
}

/*
 * The first open fragment. Unfinished fragments below it have not left: special values stand before
 * all data, and whether they are needed is known only with the exponents of their blocks.
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
	/* Also from where results were last looked for; mostly one report covers both. */
	if (checked < base && base - checked < WIRE_GROUP / 2)
		base = checked;
	else
		stream_report(stream, checked);
	for (; base < stream->sent; base += WIRE_GROUP)
		stream_report(stream, base);
	stream->reported = stream->sent;
	stream->reported_at = now;
}

/* Marks results to ask for: lost ones, or (in silence) late ones. Gives their number. */
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

	if (stream->reliable && !stream->no_result)
		most = 1; /* the answer only tells which ranks owe it */
	*header = (struct wire_control){ .magic = WIRE_MAGIC,
		                         .type = WIRE_REPORT,
		                         .child = (uint8_t)stream->child,
		                         .pos = wire_pos(stream->lane, stream->done),
		                         .ack = (uint32_t)stream->done };
	memset(report, 0, sizeof(*report));
	report->base = base;
	report->stamp = stamp_of(now);
	report->serial = now;
	report->bits = (uint32_t)(left < most ? left : most);
	report->want = stream->want;
	report->judged = (uint32_t)stream->stats.judged;
	report->lost = (uint32_t)stream->stats.lost;
	report->again = (uint16_t)stream->stats.again;
	stream->told_idle = stream_all_sent(stream);
	header->flags = stream->told_idle ? WIRE_AT_REST : 0;
	if (stream->reliable) {
		; /* nothing is lost */
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
 * How many results to ask for that may only be late. In mid-stream an answer tells which are lost,
 * and a needless repeat delays other results. At the end all ranks wait for them.
 */
static uint32_t results_to_ask(struct stream *stream)
{
	unsigned patient = stream_all_sent(stream) ? 0 : 1;

	if (stream->silences <= patient)
		return 0;
	return (uint32_t)clamp((uint64_t)ASK_MIN << (stream->silences - patient - 1), ASK_MIN,
	                       WIRE_GROUP);
}

/* Are losses frequent, and is the round-trip time known? */
static bool is_rough(const struct stream *stream, uint64_t now)
{
	return stream->rtt && stream_lost_recently(stream, now);
}

/*
 * If packets are lost and nothing can leave, a few results that still come prove nothing about the
 * rest. Then silence counts from our last packet, which may be lost, too. A rank that has sent
 * everything waits as long as results flow.
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

/* Nothing has come for too long: asks about the oldest open fragment groups, in turn. */
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
		if (stream->reliable && !stream->no_result)
			break; /* only the window matters */
		stream_report(stream, stream->probe_at);
		stream->probe_at += WIRE_GROUP;
	}
	if (stream->silences < 8)
		stream->silences++;
	stream->ask = results_to_ask(stream);
	stream->progress_at = now;
	/* If losses are frequent, the report or its answer may have been lost. */
	if (is_rough(stream, now))
		most = clamp(2 * stream->rtt + MS, 2 * PATIENCE_MIN, PATIENCE_MAX);
	stream->patience = clamp(2 * stream->patience, PATIENCE_MIN, most);
}

/* Results have come and no packet has acknowledged them: other ranks' windows may wait for it. */
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

void stream_rate_fell(struct stream *stream, uint64_t now)
{
	/* If the rate fell all the time, nothing would ever be judged. */
	if (stream->rate_fell_at && stamp_of(now) - stream->rate_fell_at < RATE_FELL_LEAST)
		return;
	stream->rate_fell_after = stream->flight.launched;
	stream->rate_fell_at = stamp_of(now);
}

uint32_t stream_heartbeat(struct stream *stream, uint64_t now, void *packet)
{
	return build_report(stream, oldest_gap(stream), now, packet);
}

/*
 * A rank without a result has finished a fragment when the aggregator has it in its final form. If
 * the rank had guessed an exponent, that is not enough: a higher exponent of another rank may have
 * replaced the fragment. Then it has to be complete.
 */
static bool is_delivered(const struct round *round, uint32_t index, bool missing, bool complete)
{
	if (round_wants(round, index))
		return false;
	return complete || (!missing && !round->guessed && round_is_final(round, index));
}

/* Sent before the rate fell: its loss does not count against the current rate. */
static bool left_before_rate_fell(const struct stream *stream, uint32_t sent_at)
{
	return stream->rate_fell_at && !is_after(sent_at, stream->rate_fell_at);
}

/* Takes what a STATUS says of one fragment. True: its last packet was lost. */
static bool take_verdict(struct stream *stream, uint64_t position, uint32_t stamp, bool missing,
                         bool complete, uint64_t now)
{
	struct round *round = stream_find(stream, position);
	uint32_t index, before, todo;
	bool lost = false;

	if (!round)
		return false;
	index = (uint32_t)(position - round->base);
	/* The STATUS counts only if its report left after the fragment. */
	if (bitmap_get(round->have, index) || !round_was_sent(round, index) ||
	    !is_after(stamp, round->sent_at[index]))
		return false;
	before = round->finished;
	todo = round->todo;
	if (is_delivered(round, index, missing, complete)) {
		round_finish(round, index);
	} else if (missing && round_is_settled(round, index)) {
		round_repeat(round, index);
		lost = round->todo > todo; /* if it was marked before, the loss is not new */
		stream->stats.lost += lost && !left_before_rate_fell(stream, round->sent_at[index]);
	} /* sent with a guessed exponent: it may be there, replaced by a higher one */
	stream->todo += round->todo - todo;
	stream_settle(stream, round, before, now);
	return lost;
}

/* A report is answered after `rtt`: of the packets that had left before it, `lost` were lost. */
static void confirm(struct stream *stream, uint32_t stamp, uint32_t lost, uint64_t rtt,
                    uint64_t now)
{
	struct flight *flight = &stream->flight;
	uint64_t judged = flight->confirmed;

	flight_confirm(flight, stamp, lost);
	if (stream->by_delay) {
		path_window_ack(&stream->path_window, (uint32_t)(flight->confirmed - judged), lost,
		                rtt, flight->confirmed, flight->launched, now);
		stream_bound(stream);
	}
	if (judged < stream->rate_fell_after)
		judged = stream->rate_fell_after;
	if (flight->confirmed > judged)
		stream->stats.judged += flight->confirmed - judged;
}

/* Results that left before this STATUS and are not here are lost. */
static bool find_lost_results(struct stream *stream, const struct wire_status *status)
{
	uint64_t gap = oldest_gap(stream), checked = stream->checked > gap ? stream->checked : gap;
	bool lost = false;

	/* The report left before results that were asked for could come: nothing new. */
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

	/* Old stamps would compare wrongly when the clock wraps. */
	if (stamp_of(now) - stream->asked_at > STAMP_OLD)
		stream->asked_at = 0;
	if (stamp_of(now) - stream->rate_fell_at > STAMP_OLD)
		stream->rate_fell_at = 0;
	if (status->stamp)
		stream->silences = 0;
	stream_on_low(stream, status->low);
	stream->waiting = status->waiting;
	if (stream->first && stream->first->from != WIRE_ALL) /* only that rank contributes */
		stream->waiting &= 1ull << stream->first->from;
	if (status->stamp && rtt < 1000 * MS) /* falls fast, as when a queue has drained */
		stream->rtt = !stream->rtt        ? rtt
		              : rtt < stream->rtt ? (stream->rtt + rtt) / 2
		                                  : (7 * stream->rtt + rtt) / 8;
	for (uint32_t i = 0; i < status->bits; i++)
		lost += take_verdict(stream, status->base + i, status->stamp,
		                     bitmap_get(status->missing, i),
		                     bitmap_get(status->complete, i), now);
	confirm(stream, status->stamp, lost, status->stamp ? rtt : 0, now);
	if ((!stream->reliable && find_lost_results(stream, status)) || lost) {
		stream_progress(stream, now); /* repeats should come soon */
		stream->loss_at = now;
	}
}
