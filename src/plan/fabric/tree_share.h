/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_share: chooses a tree with conflicts for a job that has no tree of its own. MINA's
 * rule (III-C): the tree conflicts with a single sharing group, which the job joins. If jobs
 * give way only to jobs whose trees they meet (turn_rule.h), the tree may conflict with
 * several sharing groups, as long as its resources are not overloaded. Among these trees it
 * picks the one in least demand. A job that has a tree stays there unless a migration pays.
 */
#ifndef TRIB_PLAN_FABRIC_TREE_SHARE_H
#define TRIB_PLAN_FABRIC_TREE_SHARE_H

#include "plan/fabric/assign.h"
#include "plan/fabric/sharing_groups.h"

struct share {
	const struct fabric *fabric;
	const struct groups *groups;
	double *want;   /* by resource: sum of its trees' demands (pattern.h) over its capacity */
	uint32_t *tree; /* scratch for the longest tree */
};

/* The job to place. Its own tree is not counted in `groups` and `want`. */
struct share_job {
	uint32_t root; /* its present root, or ASSIGN_NONE */
	double demand;
	double worth;       /* seconds that a tree would gain */
	double migration_s; /* seconds that a migration costs */
	bool meets;         /* only jobs whose trees meet give way to each other */
};

/* Adds (sign 1) or removes (sign -1) the demand of a tree. */
void share_want(struct share *share, const uint32_t *tree, uint32_t n, double demand, int sign);

/* The best root, or ASSIGN_NONE: no tree qualifies. `assign` supplies the candidates. */
uint32_t share_root(const struct share *share, const struct assign *assign, uint32_t slot,
                    const struct share_job *job);

#endif
