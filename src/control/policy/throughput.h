/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how fast a communicator really sums, by the bytes that the roots of its trees report as
 * finished. Pure: time is an argument.
 *
 * Roots report at different times. When each root has reported once more, that makes one sample of
 * the sum. A rate is taken between two samples at which the sum had grown, at least
 * THROUGHPUT_SPAN_NS (1.25 s) apart. If steps are so long that some samples show no growth, the
 * rate spans at least THROUGHPUT_PAUSES (4) of these pauses. So it covers whole steps, and can be
 * compared with the share of a step that ranks wait.
 */
#ifndef TRIB_CONTROL_POLICY_THROUGHPUT_H
#define TRIB_CONTROL_POLICY_THROUGHPUT_H

#include "plan/tree/tree.h"

#define THROUGHPUT_TREES_MAX (FOREST_TREES_MAX + 1) /* the trees of a plan and a shared star */
#define THROUGHPUT_SPAN_NS 1250000000ull            /* a rate spans one to two times this */
#define THROUGHPUT_PAUSES 4u                        /* a rate spans at least this many pauses */
#define THROUGHPUT_PAUSE_MAX_NS 15000000000ull      /* 15 s: a longer pause is no part of a step */

/* The newest report of one root. */
struct throughput_tree {
	uint64_t id;
	uint64_t bytes, at; /* finished by time `at` */
	uint64_t counted;   /* bytes that are in the sum already */
	bool is_new;        /* reported since the last sample */
};

/* A sample at which the sum had grown. */
struct throughput_mark {
	double bytes; /* sum over all trees since the first sample */
	uint64_t at;
	uint64_t pause; /* longest pause between this mark and the next */
};

struct throughput {
	struct throughput_tree trees[THROUGHPUT_TREES_MAX];
	unsigned n;
	uint64_t silent_ns;
	struct throughput_mark marks[2]; /* the older one first; at 0: no sample yet */
	double bytes;
	uint64_t looked_at, moved_at; /* last sample; last sample at which the sum had grown */
	double bps;                   /* at the last growth; 0: unknown */
};

/*
 * The root with this id has finished `bytes` since its tree began. It is forgotten
 * `silent_ns` after its last report. If `bytes` goes back, the root has started again, and
 * measuring restarts.
 */
void throughput_take(struct throughput *throughput, uint64_t id, uint64_t bytes, uint64_t said_at,
                     uint64_t silent_ns);

/*
 * Bits of vectors per second. 0: unknown, because a root of the `trees` has not reported lately, or
 * too little time has passed, or the sum stands still for longer than before.
 */
double throughput_bps(const struct throughput *throughput, unsigned trees, uint64_t now);

#endif
