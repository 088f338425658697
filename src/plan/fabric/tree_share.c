/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fabric/tree_share.h"

#include <math.h>

void share_want(struct share *share, const uint32_t *tree, uint32_t n, double demand, int sign)
{
	for (uint32_t i = 0; i < n; i++)
		share->want[tree[i]] += sign * demand / fabric_capacity(share->fabric, tree[i]);
}

/* Do all jobs in the way of the tree belong to one sharing group? */
static bool group_alone(const struct groups *groups, const uint32_t *tree, uint32_t n)
{
	uint32_t group = GROUPS_NONE;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = groups->at[tree[i]];

		if (at == GROUPS_NONE)
			continue;
		if (group != GROUPS_NONE && group != groups->group[at])
			return false;
		group = groups->group[at];
	}
	return true;
}

/* The highest demand on any resource of a tree; INFINITY: the job may not use it. */
static double tree_want(const struct share *share, const struct footprint *footprint, uint32_t root,
                        const struct share_job *job)
{
	uint32_t n = fabric_tree(share->fabric, footprint, root, share->tree);
	double most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, share->want[share->tree[i]]);
	if (job->meets && most + job->demand <= 1)
		return most;
	return group_alone(share->groups, share->tree, n) ? most : INFINITY;
}

/* An estimate of the seconds that a job loses if the others' demand is `want`. */
static double want_loss(const struct share_job *job, double want)
{
	return isfinite(want) ? job->worth * want / (1 + want) : INFINITY;
}

uint32_t share_root(const struct share *share, const struct assign *assign, uint32_t slot,
                    const struct share_job *job)
{
	const struct footprint *footprint = &assign->jobs[slot].footprint;
	uint32_t roots = assign_roots(assign, slot), best = ASSIGN_NONE;
	double best_want = INFINITY, want, saved;

	for (uint32_t i = 0; i < roots; i++) {
		uint32_t root = assign_root(assign, slot, i);

		want = tree_want(share, footprint, root, job);
		if (want < best_want) {
			best_want = want;
			best = root;
		}
	}
	if (job->root == ASSIGN_NONE || best == ASSIGN_NONE)
		return best;
	want = tree_want(share, footprint, job->root, job);
	saved = want_loss(job, want) - want_loss(job, best_want);
	return saved <= job->migration_s ? job->root : best;
}
