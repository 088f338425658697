/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the vectors of a communicator really go, by what the roots of its trees say that they
 * have finished. Pure: time is an argument.
 *
 * Roots speak at different times: when each has spoken once more, that is one look at them all. A
 * rate is from one look at which something had moved to another, over 1.25 s at least; and where a
 * step is so long that there were looks at which nothing had, over four such pauses: or it would be
 * that of a part of a step. So it can be held beside the share of a step that ranks wait, which is
 * of whole steps too.
 */
#ifndef TRIB_CONTROL_PACE_H
#define TRIB_CONTROL_PACE_H

#include "plan/tree.h"

#define PACE_TREES_MAX (FOREST_TREES_MAX + 1) /* and a star that jobs share */
#define PACE_SPAN 1250000000ull               /* ns: a rate is over one to two of it */
#define PACE_PAUSES 4u                        /* ... and over so many pauses */
#define PACE_PAUSE_MAX 15000000000ull         /* a longer one is not of the step */

/* What a root has said. */
struct pace_tree {
	uint64_t id;
	uint64_t bytes, at; /* that it had finished then */
	uint64_t counted;   /* ... of which so many are in the sum */
	bool is_new;        /* said since the last look */
};

/* A look at which something had moved. */
struct pace_mark {
	double bytes; /* of all trees, since the first look */
	uint64_t at;
	uint64_t pause; /* the longest from here to the next mark */
};

struct pace {
	struct pace_tree trees[PACE_TREES_MAX];
	unsigned n;
	uint64_t silent_ns;
	struct pace_mark marks[2]; /* the older one first; at 0: there was no look */
	double bytes;
	uint64_t looked_at, moved_at; /* the last look; the last at which something had moved */
	double bps;                   /* of the last such; 0: unknown */
};

/*
 * A root has finished so many bytes since its tree began; `silent_ns` after its last word it is
 * forgotten. When bytes go back it has begun anew, and so does all.
 */
void pace_take(struct pace *pace, uint64_t id, uint64_t bytes, uint64_t said_at,
               uint64_t silent_ns);

/*
 * Bits of vectors a second; 0: unknown, for not all `trees` have spoken of late, or not long
 * enough, or it stands still for longer than it used to.
 */
double pace_bps(const struct pace *pace, unsigned trees, uint64_t now);

#endif
