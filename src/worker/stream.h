/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of a lane: which fragment to send next, what a result, a
 * status or silence means. Pure but for memory: no I/O, no clock; `now` comes
 * from the caller, in nanoseconds. The aggregator's end is engine/dense.h.
 *
 * A fragment leaves only inside the window, which ends at low + cells, and
 * only while not too many are under way (path/flight.h). Losses are found by
 * the receiver (XAgg §IV-D): after each group of fragments, at a tail, and
 * when nothing has come for a while, the worker sends a REPORT, and the
 * aggregator answers with a STATUS: which fragments it misses, and which are
 * complete. A result that left before the STATUS and is not here was lost;
 * the next REPORT asks for it. A lost REPORT or STATUS is covered by later
 * ones: every report comes with one on the oldest group that anything is to come of.
 *
 * On a path that is reliable and keeps the order nothing is looked for: the
 * path itself holds a sender back, and REPORTs only acknowledge, ask for the
 * window, and learn what has become of rounds without a result.
 */
#ifndef TRIB_WORKER_STREAM_H
#define TRIB_WORKER_STREAM_H

#include "path/flight.h"
#include "path/narrow.h"
#include "worker/round.h"

#define STREAM_REPORTS 6

struct stream_stats {
	uint64_t sent, resent, results, duplicates, reports;
	uint64_t judged, lost; /* packets of which it is known what became of them, repeats
	                          included, and how many of those were lost */
	uint64_t again;        /* results that came only when they were sent again */
};

struct stream {
	unsigned lane, child, workers;
	uint32_t cells, payload;
	bool reliable;       /* the path loses nothing and keeps the order; set after stream_init */
	uint32_t want;       /* told in reports: how fast we could send; 0: unknown */
	struct early *early; /* reliable: results of rounds that are not posted yet, by cell */

	uint64_t done;      /* every fragment below is finished here */
	uint64_t low;       /* every fragment below is finished everywhere, as far as we know */
	uint64_t next_base; /* where the next round starts */
	uint64_t sent;      /* above every fragment that has left */
	uint64_t waiting;   /* who owes the first unfinished fragment, by the last STATUS */

	struct round *first, *last; /* rounds not finished up to `done`, in order */
	struct round *fresh;        /* the first that has fragments never sent */
	struct round *near;         /* where the last result belonged */
	uint32_t todo;              /* fragments to send again, in all rounds */
	uint32_t deaf;              /* rounds that get no result here and are not finished */

	struct flight flight;
	struct narrow narrow;
	uint64_t shut_at;     /* since when the window has let nothing pass; 0: it does */
	uint64_t reported;    /* every fragment below is in a report */
	uint64_t reported_at; /* when those last left */
	uint64_t left_at;     /* when anything last did */
	uint64_t flow_at;     /* when results last were many */
	uint64_t shaken_at;   /* when something was last found to be lost, or it all began */
	bool rests;           /* the last report has said that there is nothing to send */
	uint64_t unposted;    /* above every result that came before its round was posted */
	uint64_t anew;     /* packets that had left when the rate last fell: they are not judged, */
	uint32_t anew_at;  /* ... as a stamp; 0: long ago */
	uint64_t checked;  /* every result below has been looked for, and asked for if lost */
	uint32_t asked_at; /* when lost results were last asked for, as a stamp */
	uint32_t since_ack;   /* results since an acknowledgement last left */
	uint64_t progress_at; /* when something last moved */
	uint64_t patience;    /* how long silence is borne; doubles with each report of it */
	unsigned silences;    /* reports of silence in a row */
	uint64_t probe_at;    /* the group that the next report of silence is about */
	uint64_t rtt;         /* smoothed, ns */
	uint64_t reports[STREAM_REPORTS]; /* groups to report now */
	unsigned n_reports;
	uint32_t ask; /* in a report of silence: for so many results that may be late; else 0 */

	/* Called when all fragments of a round are finished; the round stays the stream's. */
	void (*on_finished)(void *context, struct round *round);
	/* Called when it is the stream's no longer; NULL: it is freed then. */
	void (*on_over)(void *context, struct round *round);
	void *context;
	struct stream_stats stats;
};

void stream_init(struct stream *stream, unsigned lane, unsigned child, unsigned workers,
                 uint32_t cells, uint32_t payload);
/* Frees the rounds that are left. */
void stream_clear(struct stream *stream);

/* Takes the round over. False: no memory for results that had come before. */
bool stream_post(struct stream *stream, struct round *round, uint64_t now);

/*
 * Builds the next DATA packet (all header fields but cookie, job, comm, epoch
 * and check) and gives its bytes; 0: nothing may be sent now.
 */
uint32_t stream_next(struct stream *stream, uint64_t now, void *packet);

/* The same for a REPORT that is due; 0: none is. */
uint32_t stream_next_report(struct stream *stream, uint64_t now, void *packet);
/* A REPORT that says "I am here". */
uint32_t stream_heartbeat(struct stream *stream, uint64_t now, void *packet);

/* The position of a result's fragment. */
static inline uint64_t stream_position(const struct stream *stream,
                                       const struct wire_header *header)
{
	return wire_widen(header->pos, stream->done);
}

/* Takes a packet that was found sound, intact and for this lane. False: no memory. */
bool stream_on_result(struct stream *stream, const struct wire_header *header, uint32_t bytes,
                      uint64_t now);
void stream_on_status(struct stream *stream, const struct wire_control *header, uint64_t now);
/* A STATUS to everyone: the window, and what is complete, which ends rounds without a result. */
void stream_on_news(struct stream *stream, const struct wire_control *header, uint64_t now);
/* The aggregator says how far everyone is. */
void stream_on_low(struct stream *stream, uint64_t low);

/* It is sent at another rate from now on: what was sent before says nothing about that one. */
void stream_judge_anew(struct stream *stream, uint64_t now);

/* When to call stream_next or stream_next_report again if nothing comes; UINT64_MAX: never. */
uint64_t stream_wake(const struct stream *stream, uint64_t now);

static inline bool stream_is_idle(const struct stream *stream)
{
	return stream->first == NULL;
}

#endif
