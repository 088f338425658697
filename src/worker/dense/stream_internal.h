/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the stream. stream.c (fragments out, results in) calls loss_report.c and
 * early.c; all of them use stream_rounds.c.
 */
#ifndef TRIB_WORKER_DENSE_STREAM_INTERNAL_H
#define TRIB_WORKER_DENSE_STREAM_INTERNAL_H

#include "worker/dense/stream.h"

#define MS 1000000ull
#define PATIENCE_MIN (4 * MS)   /* shortest silence that makes a report due */
#define PATIENCE_MAX (100 * MS) /* longest silence that makes a report due */
#define SHUT_PATIENCE (MS / 2)  /* a window that stays shut this long may be wider than known */
#define ACK_DELAY MS            /* an idle stream acknowledges results after this time */
#define REPORT_EVERY (10 * MS)  /* while fragments are sent: bounds the time to find a loss */
#define REPORT_SELDOM (40 * MS) /* replaces REPORT_EVERY if no loss was found for REPORT_CALM */
#define REPORT_CALM (100 * MS)  /* an older loss counts as long ago */
#define FLOW 16u                /* results without a packet of ours that count as a steady flow */
#define REPORT_MIN 16u          /* fragments that are worth a timed report */
#define TAIL_MIN 64u /* fragments that are worth a report at a tail, or before they leave */

static inline uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static inline uint32_t stamp_of(uint64_t now)
{
	return (uint32_t)(now / 1000) | 1; /* microseconds; 0 means: none */
}

/* Was a loss found within REPORT_CALM? */
static inline bool stream_lost_recently(const struct stream *stream, uint64_t now)
{
	return now < stream->loss_at + REPORT_CALM;
}

/* The bounds on what is in flight have changed. */
static inline void stream_bound(struct stream *stream)
{
	uint32_t most = (uint32_t)stream->path_window.packets;

	stream->flight.cap = stream->window_probe.cap;
	if (stream->by_delay && most < stream->flight.cap)
		stream->flight.cap = most;
}

/* stream_rounds.c: there is progress: silence counts from now. */
void stream_progress(struct stream *stream, uint64_t now);
/* Has everything left that was posted? */
bool stream_all_sent(struct stream *stream);
/* Fragments below this position may leave. */
uint64_t stream_window_end(const struct stream *stream, uint64_t now);

/* early.c: keeps a result whose round is not posted yet. False: no memory. */
bool early_keep(struct stream *stream, const struct wire_header *header, uint32_t bytes);
/* The result that is kept for a position, which the caller frees; NULL: none. */
struct wire_header *early_take(struct stream *stream, uint64_t position, uint32_t *bytes);
void early_free(struct stream *stream);

/* loss_report.c: makes a report on the fragment group from `base` on due. */
void stream_report(struct stream *stream, uint64_t base);
/* Makes a report from the oldest open fragment on due. */
void stream_report_gap(struct stream *stream);
/* Makes reports on all fragments sent since the last ones, and on the oldest open one, due. */
void stream_report_sent(struct stream *stream, uint64_t now);
/* When a report because of silence is due, if nothing comes. */
uint64_t stream_silent_at(const struct stream *stream, uint64_t now);

#endif
