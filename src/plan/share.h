/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees for jobs that have none of their own: which of those that others are
 * in the way of. MINA's rule (III-C) is that such a tree conflicts with a single
 * sharing group, which the job joins. Where jobs give way only to those that
 * they meet (turn.h), it may conflict with several, as long as nobody wants too
 * much of it. Of those the one that is wanted least, and a job that has one
 * stays unless moving pays.
 */
#ifndef TRIB_PLAN_SHARE_H
#define TRIB_PLAN_SHARE_H

#include "plan/assign.h"
#include "plan/groups.h"

struct share {
	const struct fabric *fabric;
	const struct groups *groups;
	double *want; /* of a resource: the demands (pattern.h) of trees on it, over its capacity */
	uint32_t *tree; /* scratch for the longest tree */
};

/* Who asks. Its own tree is not among those of `groups` and `want`. */
struct share_job {
	uint32_t root; /* that it has, or ASSIGN_NONE */
	double demand;
	double worth; /* seconds to be gained */
	double move;  /* seconds that moving costs */
	bool meets;   /* whether only jobs whose trees meet give way to each other */
};

/* A tree comes (1) or goes (-1). */
void share_want(struct share *share, const uint32_t *tree, uint32_t n, double demand, int sign);

/* The root, or ASSIGN_NONE where none may be had; the candidates are those of `assign`. */
uint32_t share_root(const struct share *share, const struct assign *assign, uint32_t slot,
                    const struct share_job *job);

#endif
