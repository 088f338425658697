/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fabric/placement.h"
#include "plan/cluster/carve.h"
#include "plan/cluster/draw.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static size_t placement_carve(struct placement *placement, const struct fabric *fabric,
                              uint32_t most, char *work)
{
	size_t used = 0;

	placement->taken = carve(work, &used, fabric->hosts, 1);
	for (unsigned l = 1; l <= fabric->levels; l++) {
		size_t pods = fabric->pods[l];
		uint32_t stride = least(most, fabric->size[l]) + 1;

		placement->stride[l] = stride;
		placement->unused[l] = carve(work, &used, pods, sizeof(uint32_t));
		placement->whole[l] = carve(work, &used, pods, sizeof(uint32_t));
		placement->stale[l] = carve(work, &used, pods, 1);
		placement->score[l] = carve(work, &used, pods * stride, sizeof(double));
		placement->choice[l] =
			l == 1 ? NULL
			       : carve(work, &used, pods * fabric->down[l - 1] * stride,
		                       sizeof(uint16_t));
	}
	return used;
}

size_t placement_bytes(const struct fabric *fabric, uint32_t most)
{
	struct placement none;

	return placement_carve(&none, fabric, most, NULL);
}

void placement_init(struct placement *placement, const struct fabric *fabric, double alpha,
                    uint32_t most, void *work)
{
	size_t bytes = placement_carve(placement, fabric, most, work);

	memset(work, 0, bytes);
	placement->fabric = fabric;
	placement->alpha = alpha;
	placement->most = most;
	placement->steps = 0;
	for (unsigned l = 1; l <= fabric->levels; l++)
		for (uint32_t pod = 0; pod < fabric->pods[l]; pod++) {
			placement->unused[l][pod] = placement->whole[l][pod] = fabric->size[l];
			placement->stale[l][pod] = 1;
		}
}

/* Lists the first `n` free hosts of a pod of level 1. */
static void pod_first(const struct placement *placement, uint32_t pod, uint32_t n, uint32_t *hosts)
{
	uint32_t host = pod * placement->fabric->size[1];

	for (uint32_t i = 0; i < n; host++)
		if (!placement->taken[host])
			hosts[i++] = host;
}

static uint32_t unused_all(const struct placement *placement)
{
	return placement->unused[placement->fabric->levels][0];
}

bool placement_first(const struct placement *placement, uint32_t n, uint32_t *hosts)
{
	uint32_t found = 0;

	if (unused_all(placement) < n)
		return false;
	for (uint32_t pod = 0; found < n; pod++) {
		uint32_t here = least(placement->unused[1][pod], n - found);

		pod_first(placement, pod, here, hosts + found);
		found += here;
	}
	return true;
}

/* Selection sampling: every set of n free hosts is equally likely. */
bool placement_random(const struct placement *placement, uint32_t n, uint64_t *seed,
                      uint32_t *hosts)
{
	uint32_t left = unused_all(placement), found = 0;

	if (left < n)
		return false;
	for (uint32_t host = 0; found < n; host++)
		if (!placement->taken[host] && draw_below(seed, left--) < n - found)
			hosts[found++] = host;
	return true;
}

static void hosts_mark(struct placement *placement, const uint32_t *hosts, uint32_t n, bool taken)
{
	const struct fabric *fabric = placement->fabric;

	for (uint32_t i = 0; i < n; i++) {
		placement->taken[hosts[i]] = taken;
		for (unsigned l = 1; l <= fabric->levels; l++) {
			uint32_t pod = hosts[i] / fabric->size[l];

			placement->unused[l][pod] += taken ? -1u : 1u;
			placement->stale[l][pod] = 1;
		}
	}
}

void placement_take(struct placement *placement, const uint32_t *hosts, uint32_t n)
{
	hosts_mark(placement, hosts, n, true);
}

void placement_give(struct placement *placement, const uint32_t *hosts, uint32_t n)
{
	hosts_mark(placement, hosts, n, false);
}

void placement_lack(struct placement *placement, const uint32_t *hosts, uint32_t n)
{
	const struct fabric *fabric = placement->fabric;

	hosts_mark(placement, hosts, n, true);
	for (uint32_t i = 0; i < n; i++)
		for (unsigned l = 1; l <= fabric->levels; l++)
			placement->whole[l][hosts[i] / fabric->size[l]]--;
}

/* ---- fragments ---- */

static uint32_t pod_fragments(const struct placement *placement, unsigned level, uint32_t pod,
                              bool is_free)
{
	const struct fabric *fabric = placement->fabric;
	uint32_t here = placement->unused[level][pod], whole = placement->whole[level][pod],
		 sum = 0;

	if (!is_free)
		here = whole - here;
	if (here == 0 || here == whole)
		return here != 0;
	if (level == 1)
		return here;
	for (uint32_t i = 0; i < fabric->down[level - 1]; i++)
		sum += pod_fragments(placement, level - 1, pod * fabric->down[level - 1] + i,
		                     is_free);
	return sum;
}

uint32_t placement_fragments(const struct placement *placement, bool is_free)
{
	return pod_fragments(placement, placement->fabric->levels, 0, is_free);
}

/* ---- the dynamic program ---- */

/* One more host makes one more fragment. A host left free costs alpha. */
static void leaf_solve(struct placement *placement, uint32_t pod)
{
	double *score = placement->score[1] + (size_t)pod * placement->stride[1];
	uint32_t unused = placement->unused[1][pod], whole = placement->whole[1][pod];

	for (uint32_t j = 0; j <= least(unused, placement->stride[1] - 1); j++)
		score[j] = j + (unused - j) * placement->alpha;
	if (unused && unused == whole) {
		score[0] = placement->alpha;
		if (whole < placement->stride[1])
			score[whole] = 1;
	}
	placement->stale[1][pod] = 0;
}

/*
 * Merges a child with `here` free hosts into children that have `before`: for each number of hosts,
 * the least sum of scores. Counts downward, so that an entry is read before it is overwritten. Of
 * equal sums, the one with the fewest hosts in this child wins.
 */
static uint64_t child_merge(double *row, uint16_t *choice, uint32_t before, const double *child,
                            uint32_t here, uint32_t most)
{
	uint64_t steps = 0;

	for (uint32_t j = least(before + here, most) + 1; j-- > 0;) {
		uint32_t from = j > before ? j - before : 0, to = least(here, j), best = from;
		double best_sum = child[from] + row[j - from];

		for (uint32_t i = from + 1; i <= to; i++) {
			double sum = child[i] + row[j - i];

			if (sum < best_sum) {
				best_sum = sum;
				best = i;
			}
		}
		steps += to - from + 1;
		row[j] = best_sum;
		choice[j] = (uint16_t)best;
	}
	return steps;
}

/* Computes the scores of a pod for 0 to `most` hosts. */
static void pod_solve(struct placement *placement, unsigned level, uint32_t pod, uint32_t most)
{
	const struct fabric *fabric = placement->fabric;
	uint32_t stride = placement->stride[level], before = 0;
	double *row = placement->score[level] + (size_t)pod * stride;
	uint16_t *choice;

	if (level == 1) {
		leaf_solve(placement, pod);
		return;
	}
	most = least(most, stride - 1);
	choice = placement->choice[level] + (size_t)pod * fabric->down[level - 1] * stride;
	row[0] = 0;
	for (uint32_t i = 0; i < fabric->down[level - 1]; i++, choice += stride) {
		uint32_t child = pod * fabric->down[level - 1] + i;
		uint32_t here = placement->unused[level - 1][child];

		if (!here)
			continue;
		if (placement->stale[level - 1][child])
			pod_solve(placement, level - 1, child, placement->most);
		placement->steps += child_merge(
			row, choice, before,
			placement->score[level - 1] + (size_t)child * placement->stride[level - 1],
			least(here, placement->stride[level - 1] - 1), most);
		before += here;
	}
	if (before && before == placement->whole[level][pod]) {
		row[0] = placement->alpha;
		if (before <= most)
			row[before] = 1;
	}
	placement->stale[level][pod] = 0;
}

/* Follows the choices back, from the last child to the first. */
static void pod_hosts(const struct placement *placement, unsigned level, uint32_t pod, uint32_t n,
                      uint32_t *hosts)
{
	const struct fabric *fabric = placement->fabric;
	uint32_t stride = placement->stride[level], children;

	if (level == 1) {
		pod_first(placement, pod, n, hosts);
		return;
	}
	children = fabric->down[level - 1];
	for (uint32_t i = children; n && i-- > 0;) {
		uint32_t child = pod * children + i, here;

		if (!placement->unused[level - 1][child])
			continue;
		here = placement->choice[level][((size_t)pod * children + i) * stride + n];
		pod_hosts(placement, level - 1, child, here, hosts + n - here);
		n -= here;
	}
}

bool placement_smart(struct placement *placement, uint32_t n, uint32_t *hosts, double *score)
{
	unsigned top = placement->fabric->levels;

	if (!n || n > placement->most || unused_all(placement) < n)
		return false;
	/* Every job changes the top level, so compute it only as far as this job needs. */
	pod_solve(placement, top, 0, n);
	pod_hosts(placement, top, 0, n, hosts);
	if (score)
		*score = placement->score[top][n];
	return true;
}
