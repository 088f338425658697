/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_flusher: what a parameter server says to the aggregator, for one table and one incarnation.
 * Pure but for memory; the clock is an argument.
 *
 * A round goes through these phases:
 *
 *   SETUP (once) -> REST -> FREEZE -> SURVEY (records, and which blocks are dirty) -> BLOCKS
 *     -> HANDED (the caller logs and applies) -> WRITE (new values, if they are cached)
 *     -> RELEASE -> REST
 *
 * Within a phase several questions may be under way; each is repeated until it is answered. All
 * questions are about the present epoch, and an answer about another one is ignored: so a round's
 * rows are handed over once. A round begins `every_ns` after the last one that had something, and
 * `idle_ns` after one that had nothing. If a round takes longer, the next one begins after the same
 * time again. If a worker waits, it begins soon.
 *
 * If it is `failed`, the aggregator answers what no aggregator of ours does: the incarnation should
 * end.
 */
#ifndef TRIB_SPARSE_HOT_HOT_FLUSHER_H
#define TRIB_SPARSE_HOT_HOT_FLUSHER_H

#include "sparse/hot/hot_timer.h"
#include "wire/sparse_packet.h"

#include <stdbool.h>
#include <stddef.h>

enum hot_phase {
	HOT_SETUP,
	HOT_REST,
	HOT_FREEZE,
	HOT_SURVEY,
	HOT_BLOCKS,
	HOT_HANDED,
	HOT_WRITE,
	HOT_RELEASE,
};

/* A question: SETUP, FREEZE, RELEASE, or about a page or a block. */
struct hot_question {
	uint64_t sent_at; /* ns */
	uint32_t page;
	uint32_t number; /* of the last WRITE for it */
	uint8_t tries;   /* 0: not sent yet */
	bool is_answered;
};

struct hot_flusher_options {
	unsigned workers; /* children 0 to workers - 1; the server is the next */
	uint32_t payload;
	struct sparse_setup setup;
	uint64_t every_ns, idle_ns;
	void *context;
	/* The present values of a row, as a pull of it would give; only with SPARSE_VALUES. NULL:
	   the row has no key. */
	const float *(*value)(void *context, uint32_t row);
};

/* What was summed since the last round. */
struct hot_flush {
	uint32_t epoch;
	uint32_t generation;                 /* of the map that the rows are numbered by */
	const struct sparse_record *records; /* of each worker: all rounds up to this one */
	uint32_t n;
	const uint32_t *numbers; /* of rows */
	const uint32_t *values;  /* n times the width */
};

struct hot_flusher {
	struct hot_flusher_options options;
	enum hot_phase phase;
	uint32_t per_block, blocks;
	uint32_t epoch;
	uint32_t generation; /* that the live bank is summed by */
	uint32_t wanted;     /* from the next FREEZE on */
	uint32_t freezing;   /* that the present FREEZE names */
	uint32_t summed;     /* generation of the frozen bank */
	uint32_t written;    /* number of the last WRITE */
	uint64_t begin_at;   /* ns: when the next round begins */
	uint64_t began_at;
	uint64_t took;  /* ns: the last round */
	bool is_urgent; /* a worker waits */
	bool failed;
	uint32_t refusals; /* since the last answer */
	struct hot_timer timer;
	struct hot_question *questions;     /* of the phase, with ascending pages */
	uint32_t n_questions, unsent, open; /* questions below `open` are answered */
	uint32_t in_flight;
	uint64_t look_at;              /* ns: no timer of a question runs out before */
	uint32_t *numbers, *values, n; /* rows of the round */
	uint64_t *dirty;               /* blocks, as bits */
	uint64_t *touched;             /* blocks whose values have changed otherwise, as bits */
	bool is_touched;               /* one of them is set */
	uint32_t touch_epoch;          /* the last round that told such values */
	struct sparse_record records[WIRE_CHILDREN_MAX], before[WIRE_CHILDREN_MAX];
	uint64_t rounds, rows, repeats; /* for counters */
};

/* False: no memory, or the setup does not fit the payload. */
bool hot_flusher_open(struct hot_flusher *flusher, const struct hot_flusher_options *options,
                      uint64_t now);
void hot_flusher_close(struct hot_flusher *flusher);

/* From the next FREEZE on, rows are numbered by this map; it is newer than the present one. */
static inline void hot_flusher_remap(struct hot_flusher *flusher, uint32_t generation)
{
	flusher->wanted = generation;
}

/* The values of this row have changed: the next round tells the aggregator; only with
 * SPARSE_VALUES. */
void hot_flusher_touch(struct hot_flusher *flusher, uint32_t row);

/* The round after whose end the aggregator has all values of rows that were touched. */
static inline uint32_t hot_flusher_shown(const struct hot_flusher *flusher)
{
	return flusher->is_touched ? flusher->epoch + 1 : flusher->touch_epoch;
}

/* The next packet that is due, as hot_sender_next(). Its position is `pos`. */
uint32_t hot_flusher_next(struct hot_flusher *flusher, uint64_t now, void *packet);
/* When hot_flusher_next() has something, if nothing comes before; UINT64_MAX: never. */
uint64_t hot_flusher_wake(const struct hot_flusher *flusher);
/* Takes a RESULT that was found intact; `bytes` counts the header. */
void hot_flusher_take(struct hot_flusher *flusher, const struct wire_header *header, uint32_t bytes,
                      uint64_t now);

/* False: no round waits to be logged. Else it is valid until hot_flusher_logged(). */
bool hot_flusher_flush(const struct hot_flusher *flusher, struct hot_flush *flush);
/* The round is in the log, and applied. */
void hot_flusher_logged(struct hot_flusher *flusher);

#endif
