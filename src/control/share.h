/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets the next turn at a shared aggregator, and for which requests. Pure:
 * from what jobs have told of their steps, and of how far they are, to a choice.
 *
 * `greedy`: who could use it first, for the rest of his step. `fair`: of those,
 * who has had the least. `score`: only who would end his step sooner, and of
 * those, who gains most for a second of the aggregator, the wait for it included
 * (MINA III-D); what a job has missed in steps before counts as gain. The turn is
 * for the rest of the step, and ends for another job when what is left of it is
 * worth less. `none`: nobody.
 *
 * It is not held back for one that is worth more but comes later, as MINA does:
 * turns can be cut short, and waiting left it idle (test_sharing.c).
 */
#ifndef TRIB_CONTROL_SHARE_H
#define TRIB_CONTROL_SHARE_H

#include "wire/packet.h"

#include <stdbool.h>

/* In the order of the words of TRIB_SHARING. */
enum share_policy { SHARE_SCORE, SHARE_GREEDY, SHARE_FAIR, SHARE_NONE, SHARE_POLICIES_END };

const char *share_policy_name(enum share_policy sharing);

/* A job as it was told by its rank 0; times in nanoseconds on one clock. */
struct share_job {
	unsigned ops; /* of a step; 0: not known */
	struct wire_turn_op op[WIRE_TURN_OPS_MAX];
	uint64_t compute;
	uint64_t base, next, finished; /* requests: of the step's first, not begun, not over */
	uint64_t began_at;             /* the step */
	uint64_t busy_at; /* since when the request is under way that ends next; 0: none is */
	bool fast;        /* what is under way is at the aggregator */
	uint64_t used;    /* how long it has had turns */
	uint64_t wants_since;
	/* share_note: what it has missed. */
	double debt, peak; /* seconds: of steps that were not served; of this one */
	uint64_t noted_base;
	bool served;
};

/* What a job would do with the next turn. */
struct share_wish {
	uint64_t from, to; /* requests; the same: nothing */
	uint64_t begin,
		end; /* when those of them would be under way that are needed for the gain */
	uint64_t by; /* when it is found by which way the first of them goes */
	double gain; /* seconds by which the step ends sooner */
};

/*
 * `sharers`: so many jobs there are; the more, the less there is to spare.
 * `agree_ns`: so long ranks take to agree, and what comes sooner is missed.
 */
void share_wish(const struct share_job *job, enum share_policy sharing, unsigned sharers,
                uint64_t agree_ns, uint64_t now, struct share_wish *wish);

/* So long before it is needed is a turn given. */
static inline uint64_t share_lead(uint64_t agree_ns)
{
	return 3000000 + 2 * agree_ns;
}

/* What was wished for, and whether it was given: to be called for all, each time. */
void share_note(struct share_job *job, const struct share_wish *wish, bool served);

/* Should this one have the turn of another, to whom the rest of it is worth so much? */
bool share_overtakes(const struct share_job *job, const struct share_wish *wish,
                     const struct share_wish *holder, uint64_t now);

/* Of these, who gets a turn now; -1: nobody. Jobs that may have none have an empty wish. */
int share_choose(const struct share_job *const *jobs, const struct share_wish *wishes, unsigned n,
                 enum share_policy sharing, uint64_t agree_ns, uint64_t now);

#endif
