/* SPDX-License-Identifier: Apache-2.0 */
/* What stream.c (fragments out, results in) and report.c (losses) share. */
#ifndef TRIB_WORKER_STREAM_INTERNAL_H
#define TRIB_WORKER_STREAM_INTERNAL_H

#include "worker/stream.h"

#define MS 1000000ull
#define PATIENCE_MIN (4 * MS)
#define PATIENCE_MAX (100 * MS)
#define SHUT_PATIENCE (MS / 2)
#define ACK_DELAY MS
#define REPORT_EVERY (10 * MS)  /* while something is sent: losses are found as soon */
#define REPORT_SELDOM (40 * MS) /* where none have been found for a while */
#define REPORT_CALM (100 * MS)
#define FLOW 16u       /* results without a word of ours are many */
#define REPORT_MIN 16u /* fragments that are worth one then */
#define TAIL_MIN 64u   /* ... at a tail, or before so many */

static inline uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static inline uint32_t stamp_of(uint64_t now)
{
	return (uint32_t)(now / 1000) | 1; /* 0 means: none */
}

/* Has something been lost of late? */
static inline bool stream_is_shaken(const struct stream *stream, uint64_t now)
{
	return now < stream->shaken_at + REPORT_CALM;
}

struct round *stream_find(struct stream *stream, uint64_t position);
/* Something moved: silence is counted from now. */
void stream_progress(struct stream *stream, uint64_t now);
/* After anything that may have finished fragments of a round. */
void stream_settle(struct stream *stream, struct round *round, uint32_t finished_before,
                   uint64_t now);
uint64_t stream_window_end(const struct stream *stream, uint64_t now);

/*
 * early.c: a result may come before its round is posted here, where this rank
 * gives nothing to it. If it will not be sent again it has to be kept. False:
 * no memory.
 */
bool early_keep(struct stream *stream, const struct wire_header *header, uint32_t bytes);
/* The round is posted: its results, if there are any, are taken. False: no memory. */
bool early_take(struct stream *stream, const struct round *round, uint64_t now);
void early_free(struct stream *stream);

/* report.c: a report on the group from `base` on is due. */
void stream_report(struct stream *stream, uint64_t base);
/* The same from the oldest fragment on that something is to come of. */
void stream_report_gap(struct stream *stream);
/* Reports on all that was sent since the last ones, and on the oldest gap. */
void stream_report_sent(struct stream *stream, uint64_t now);
/* When silence has lasted too long, if nothing comes. */
uint64_t stream_silent_at(const struct stream *stream, uint64_t now);
/* stream.c: is all sent that was posted? */
bool stream_all_sent(struct stream *stream);

#endif
