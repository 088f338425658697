/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a stream: which one a fragment belongs to, and how far they are. */
#include "worker/dense/stream_internal.h"

void stream_progress(struct stream *stream, uint64_t now)
{
	stream->progress_at = now;
	stream->patience = clamp(2 * stream->rtt + MS, PATIENCE_MIN, PATIENCE_MAX);
	stream->probe_at = stream->done;
	stream->silences = 0;
}

void stream_on_low(struct stream *stream, uint64_t low)
{
	/* A true `low` is never above what this rank itself has acknowledged. */
	if (low > stream->low && low <= stream->done)
		stream->low = low;
}

/*
 * A cell is free when all ranks have acknowledged its fragment: that is the window. It may be wider
 * than this rank knows. If it stays shut for SHUT_PATIENCE, the rank tries. The result of
 * `position - cells / 2` is here, so all ranks had sent that fragment. Most likely they had the
 * result of `position - cells` by then. If not, the aggregator drops the packet. On a reliable path
 * nothing is sent again, so there the rank waits.
 */
uint64_t stream_window_end(const struct stream *stream, uint64_t now)
{
	uint64_t surely = stream->low + stream->cells, likely = stream->done + stream->cells / 2;

	if (!stream->shut_at || now < stream->shut_at + SHUT_PATIENCE || surely > likely ||
	    stream->reliable)
		return surely;
	return likely;
}

static bool all_sent(const struct round *round)
{
	return round->next_exponents == round->exponents && round->next_data == round->data;
}

bool stream_all_sent(struct stream *stream)
{
	while (stream->fresh && all_sent(stream->fresh))
		stream->fresh = stream->fresh->next;
	return !stream->fresh && !stream->todo;
}

/* Moves `done` on. Rounds below it are over. */
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
		stream->no_result -= !round->receives;
		stream->on_finished(stream->context, round);
	}
	advance(stream, now);
}
