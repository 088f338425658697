/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense: the worker's end of the dense engine. Pure but for memory: no I/O, no clock; `now` comes
 * from the caller, in nanoseconds. The room owns rounds (round.h), the stream of fragments of a
 * lane (this header), its loss reports, and the split of vectors over lanes (striping.h). It must
 * not touch communicators, sockets or threads: comm and transport stand above it. The aggregator's
 * end is engine/dense.h.
 *
 * A stream decides which fragment leaves next, and what a result, a STATUS or silence means.
 *
 * A fragment leaves only inside the window, which ends at low + cells, and only while not too many
 * fragments are in flight (path/in_flight.h). The receiver finds losses (XAgg IV-D): after each
 * fragment group, at a tail, and when nothing has come for a while, the worker sends a REPORT. The
 * aggregator answers with a STATUS: which fragments it misses, and which are complete. If a
 * fragment is complete and its result is not here, the result was lost, and the next REPORT asks
 * for it. If a REPORT or STATUS is lost, later ones cover it: a report on the oldest open fragment
 * group goes along with every report.
 *
 * If routers are on the way, links behind them may be slower than our own, and their queues short.
 * Then the round trips of reports also bound what is in flight (by_delay, path/path_window.h).
 *
 * On a reliable path that keeps the order, no losses are looked for. The path itself holds a sender
 * back, and REPORTs only acknowledge, ask for the window, and ask about rounds without a result.
 */
#ifndef TRIB_WORKER_DENSE_STREAM_H
#define TRIB_WORKER_DENSE_STREAM_H

#include "path/in_flight.h"
#include "path/path_window.h"
#include "path/window_probe.h"
#include "worker/dense/round.h"

#define STREAM_REPORTS 6

struct stream_stats {
	uint64_t sent, resent, results, duplicates, reports;
	uint64_t judged, lost; /* packets whose fate is known, repeats included;
	                          how many of them were lost */
	uint64_t again;        /* results that came only after they were sent again */
};

struct stream {
	unsigned lane, child, workers;
	uint32_t cells, payload;
	bool reliable;       /* the path loses nothing and keeps the order; set after stream_init */
	bool by_delay;       /* delay in queues bounds what is in flight */
	uint32_t want;       /* for reports: rate at which this rank could send; 0: unknown */
	struct early *early; /* reliable: results whose rounds are not posted yet, by cell */

	uint64_t done;      /* every fragment below is finished here */
	uint64_t low;       /* every fragment below is finished at all ranks, as far as known */
	uint64_t next_base; /* where the next round starts */
	uint64_t sent;      /* every fragment that was sent is below */
	bool guesses_fail;  /* this rank's classes are often too low: data waits for all ranks' */
	uint64_t waiting;   /* ranks that owe the first unfinished fragment, by the last STATUS */

	struct round *first, *last; /* rounds not finished up to `done`, in order */
	struct round *fresh;        /* the first round with fragments that were never sent */
	struct round *near;         /* the round of the last result */
	uint32_t todo;              /* fragments to send again, of all rounds */
	uint32_t no_result;         /* unfinished rounds whose result is not wanted here */

	struct flight flight;
	struct window_probe window_probe;
	struct path_window path_window; /* if by_delay */
	uint64_t shut_at;               /* since when the window is shut; 0: it is open */
	uint64_t reported;              /* every fragment below was in a report */
	uint64_t reported_at;           /* when `reported` last grew */
	uint64_t left_at;               /* when a packet last left */
	uint64_t flow_at;               /* when FLOW results had last come since our last packet */
	uint64_t loss_at;               /* when a loss was last found; at first, the first post */
	bool told_idle;                 /* the last report said that there is nothing to send */
	uint64_t unposted;        /* results that came before their round was posted are below */
	uint64_t rate_fell_after; /* packets sent by then: their losses do not count */
	uint32_t rate_fell_at;    /* when the rate last fell, as a stamp; 0: long ago */
	uint64_t checked;         /* every lost result below was asked for */
	uint32_t asked_at;    /* when lost results were last asked for, as a stamp; 0: long ago */
	uint32_t since_ack;   /* results since the last packet that acknowledged */
	uint64_t progress_at; /* when there was last any progress */
	uint64_t patience;    /* silence of this length makes a report due; doubles each time */
	unsigned silences;    /* reports because of silence, in a row */
	uint64_t probe_at;    /* fragment group of the next report because of silence */
	uint64_t rtt;         /* smoothed, ns */
	uint64_t reports[STREAM_REPORTS]; /* fragment groups to report now */
	unsigned n_reports;
	uint32_t ask; /* in a report because of silence: results to ask for that may be late */

	/* Called when all fragments of a round are finished; the stream still owns it. */
	void (*on_finished)(void *context, struct round *round);
	/* Called when the stream gives the round up; NULL: the stream frees it. */
	void (*on_over)(void *context, struct round *round);
	void *context;
	struct stream_stats stats;
};

void stream_init(struct stream *stream, unsigned lane, unsigned child, unsigned workers,
                 uint32_t cells, uint32_t payload);
/* Frees the rounds that are left. */
void stream_clear(struct stream *stream);

/* Takes the round over. False: no memory for results that had come early. */
bool stream_post(struct stream *stream, struct round *round, uint64_t now);

/*
 * Builds the next DATA packet, without comm and check in its header. Gives its bytes; 0: nothing
 * may be sent now.
 */
uint32_t stream_next(struct stream *stream, uint64_t now, void *packet);

/* Builds a REPORT that is due. Gives its bytes; 0: none is due. */
uint32_t stream_next_report(struct stream *stream, uint64_t now, void *packet);
/* Builds a REPORT that only proves life. */
uint32_t stream_heartbeat(struct stream *stream, uint64_t now, void *packet);

/* The position of a fragment, from the header's 32 bits. */
static inline uint64_t stream_position(const struct stream *stream,
                                       const struct wire_header *header)
{
	return wire_widen(header->pos, stream->done);
}

/* Takes a RESULT that is well-formed, intact and of this lane. False: no memory. */
bool stream_on_result(struct stream *stream, const struct wire_header *header, uint32_t bytes,
                      uint64_t now);
void stream_on_status(struct stream *stream, const struct wire_control *header, uint64_t now);
/* A STATUS to all ranks: the window, and complete fragments, for rounds without a result. */
void stream_on_news(struct stream *stream, const struct wire_control *header, uint64_t now);
/* The aggregator says that all ranks have finished everything below `low`. */
void stream_on_low(struct stream *stream, uint64_t low);

/* The rate has fallen: losses of packets that were sent before do not count against it. */
void stream_rate_fell(struct stream *stream, uint64_t now);

/* The packets take another path from now on. by_delay: it may have slow links behind routers. */
void stream_new_path(struct stream *stream, bool by_delay);

/* When to call stream_next and stream_next_report again if nothing comes; UINT64_MAX: never. */
uint64_t stream_wake(const struct stream *stream, uint64_t now);

/* The round is the last one, and gets its positions. */
static inline void stream_append(struct stream *stream, struct round *round)
{
	round->base = stream->next_base;
	round->next = NULL;
	stream->next_base += round_fragments(round);
	if (stream->last)
		stream->last->next = round;
	else
		stream->first = round;
	stream->last = round;
}

/* The round of a position; NULL: none. */
static inline struct round *stream_find(struct stream *stream, uint64_t position)
{
	struct round *round =
		stream->near && stream->near->base <= position ? stream->near : stream->first;

	while (round && position >= round->base + round_fragments(round))
		round = round->next;
	if (!round || position < round->base)
		return NULL;
	return stream->near = round;
}

/* stream_rounds.c: to be called after fragments of a round may have finished. */
void stream_settle(struct stream *stream, struct round *round, uint32_t finished_before,
                   uint64_t now);

static inline bool stream_is_idle(const struct stream *stream)
{
	return stream->first == NULL;
}

#endif
