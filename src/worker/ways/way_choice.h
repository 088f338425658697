/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways: which way a large vector takes if there is an aggregator: through it, or among the ranks
 * themselves, around the ring or directly. A vector that slots can take goes through the aggregator
 * in slots or by the dense engine, so it has three ways. A short one of an allreduce may also be
 * summed at one rank, so it has four. The room owns this decision. It is pure: it must not touch
 * sockets, clocks, requests.
 *
 * Calls of one kind and of similar length are a class. The first calls of a class are a trial: they
 * take the ways in turn, each alone. Short vectors do so in blocks of calls, because what is
 * buffered on the way hides how long a single one takes. After each turn, a block on every way, the
 * ranks agree on how long each took. If one way is far better in two turns, or after the last turn,
 * the fastest way is kept: the one with the shortest block, because other programs only make blocks
 * longer. Every rank makes the same calls in the same order, and all know the same times, so all
 * decide alike.
 *
 * A busy machine can make a trial wrong, and networks change. So there are further trials, soon at
 * first and then ever more rarely. Such a trial ends after one turn if that confirms the way. If it
 * does not, the next trial is soon again. A way that was confirmed is given up only after two such
 * trials in a row.
 *
 * A rank that calls early would wait for the others, which is no fault of the way. So before each
 * call of a trial all ranks meet. The time of a block is the longest one of all ranks.
 */
#ifndef TRIB_WORKER_WAYS_WAY_CHOICE_H
#define TRIB_WORKER_WAYS_WAY_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* WAY_AGGREGATOR: in slots if the vector is small enough. WAY_RANKS: among the ranks, each of which
 * sums a share. WAY_DENSE: through the aggregator, but not in slots. WAY_ONE: among the ranks, and
 * one of them sums: few messages, but long ones on one link. */
enum way { WAY_AGGREGATOR, WAY_RANKS, WAY_DENSE, WAY_ONE, WAYS };
enum way_kind { WAY_ALLREDUCE, WAY_REDUCE, WAY_BROADCAST, WAY_KINDS };

#define WAY_TURNS 3u            /* of a trial: a block on each way */
#define WAY_BLOCK 524288u       /* bytes of a block; a longer vector is a block by itself */
#define WAY_SIZES 6u            /* classes of a kind: up to 64 KiB, up to 256 KiB, ... */
#define WAY_SHORTEST 16384u     /* bytes; shorter vectors always go through the aggregator */
#define WAY_KEEP_FIRST 16u      /* blocks until the second trial; a confirming one doubles it */
#define WAY_KEEP_LONGEST 16384u /* largest distance between two trials, in blocks */
#define WAY_FAR 2.0             /* a way this many times as fast needs only WAY_LEAST turns */
#define WAY_LEAST 2u            /* turns of the first trial at least */
#define WAY_CLEARLY 1.05 /* another way than WAY_AGGREGATOR has to be as many times as fast */
#define WAY_BETTER 1.15  /* ... than the way that was kept, in later trials */

struct way_class {
	uint32_t ways;  /* that it can take; 0: no call yet */
	uint32_t block; /* calls in a block */
	uint32_t calls; /* since the trial began; the first WAY_TURNS turns are the trial */
	uint32_t keep;  /* calls from this trial to the next */
	enum way way;   /* the result of the last trial */
	bool known;     /* there was one */
	bool confirmed; /* the last trial had the same result as the one before */
	/* Nanoseconds of each block of the trial, scaled; UINT64_MAX: not made. */
	uint64_t took[WAY_TURNS * WAYS];
};

struct way_choice {
	struct way_class classes[WAY_KINDS][WAY_SIZES];
};

/* NULL: there is no choice. `fits`: slots take vectors of such lengths. `several`: there are more
 * than two ranks. */
struct way_class *way_class_of(struct way_choice *choice, enum way_kind kind, uint64_t bytes,
                               bool fits, bool several);
/* The kind of the class's calls, and the bytes of its shortest vectors. */
enum way_kind way_class_kind(const struct way_choice *choice, const struct way_class *class);
uint64_t way_class_from(const struct way_choice *choice, const struct way_class *class);

/* Is the next call a part of a trial? */
bool way_is_trial(const struct way_class *class);
/* The times of the newest turn, one for each of its ways, on which the ranks have to agree; NULL:
 * it has not ended. */
uint64_t *way_turn(struct way_class *class);
/* The way of the next call, which is counted. */
enum way way_take(struct way_class *class);
/* The last call was a part of a trial, and took this time, scaled. */
void way_note(struct way_class *class, uint64_t took);
/* The time of a vector, as if it were as long as the shortest ones of its class. */
uint64_t way_scaled(uint64_t took, uint64_t from, uint64_t bytes);
/* The ranks have agreed on the newest turn. True: the trial is over, and `way` is its result. */
bool way_settle(struct way_class *class);
/* How many times as fast the ranks' own way is in the class that gains most by it; 0: all classes
 * go through the aggregator. */
double way_gain(const struct way_choice *choice);
/* The shortest time on a way, in the newest trial. */
uint64_t way_best(const struct way_class *class, enum way way);
/* The same of the ways through the aggregator, and of those among the ranks. */
uint64_t way_best_through(const struct way_class *class);
uint64_t way_best_among(const struct way_class *class);
/* Is it a way among the ranks? */
static inline bool way_is_among(enum way way)
{
	return way == WAY_RANKS || way == WAY_ONE;
}

#endif
