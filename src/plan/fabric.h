/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric that jobs share: hosts below layers of switches, alike at each
 * level (fat trees, also oversubscribed, and leaf-spine). A node of level l has
 * up[l] parents and a switch of level l + 1 has down[l] children; hosts are of
 * level 0. A *pod* of level l is what is below a switch of that level: the
 * hosts p * size[l] to (p + 1) * size[l] - 1.
 *
 * A job's tree follows from its hosts and its root, and the root is one of the
 * closest common ancestors of the hosts: ways[level] of them. What a tree takes
 * are *resources*: links between switches, and switches, where those serve a
 * limited number of jobs at once. A host serves one job, so its own link is none.
 */
#ifndef TRIB_PLAN_FABRIC_H
#define TRIB_PLAN_FABRIC_H

#include "base/status.h"

#include <stdint.h>

#define FABRIC_LEVELS_MAX 5u
#define FABRIC_HOSTS_MAX (1u << 20)
#define FABRIC_RESOURCES_MAX (1u << 27)

struct fabric {
	unsigned levels; /* of switches */
	uint32_t down[FABRIC_LEVELS_MAX], up[FABRIC_LEVELS_MAX];
	uint32_t link_jobs, switch_jobs; /* at once; 0 is no limit */

	/* What follows from it: fabric_complete. */
	uint32_t hosts, switches;
	uint32_t size[FABRIC_LEVELS_MAX + 1]; /* hosts in a pod of a level */
	uint32_t pods[FABRIC_LEVELS_MAX + 1];
	uint32_t ways[FABRIC_LEVELS_MAX + 1]; /* switches of a level above one host */
	uint32_t link_base[FABRIC_LEVELS_MAX], switch_base[FABRIC_LEVELS_MAX + 1];
	uint32_t resources, links; /* ids: links first, then switches */

	/* Jobs at once of each resource, at most the numbers above, set behind fabric_complete
	 * where resources are not alike; else NULL. */
	const uint32_t *serves;
};

/* Checks levels, down and up, and fills in the rest. */
trib_status fabric_complete(struct fabric *fabric);

/* Three layers of switches with `degree` ports; each ratio downward links to one upward. */
trib_status fabric_fat_tree(struct fabric *fabric, unsigned degree, double oversubscription);
trib_status fabric_leaf_spine(struct fabric *fabric, unsigned hosts_per_leaf, unsigned leaves,
                              unsigned spines);

/*
 * From text, one line a level from the hosts upward, `level DOWN UP`: children
 * of a switch of that level, and parents of each child; and `link N`, `switch N`:
 * jobs that one serves at once (0: any number). # begins a comment. An error
 * begins with the line's number.
 */
trib_status fabric_parse(struct fabric *fabric, const char *text);

/* Jobs at once on a resource. */
static inline uint32_t fabric_capacity(const struct fabric *fabric, uint32_t resource)
{
	if (fabric->serves)
		return fabric->serves[resource];
	return resource < fabric->links ? fabric->link_jobs : fabric->switch_jobs;
}

/* The pods of each level that a job's hosts are in, up to the one that has them all. */
struct footprint {
	unsigned level;                         /* of the closest common ancestors */
	uint32_t n[FABRIC_LEVELS_MAX + 1];      /* pods of level l, from 1 */
	uint32_t offset[FABRIC_LEVELS_MAX + 1]; /* in pods */
	uint32_t *pods;
};

/* Pods that n hosts may be in, over all levels. */
#define FOOTPRINT_PODS(fabric, n) ((size_t)(n) * (fabric)->levels)

/* `pods` has room for FOOTPRINT_PODS; hosts ascend. */
void footprint_fill(struct footprint *footprint, const struct fabric *fabric, const uint32_t *hosts,
                    uint32_t n, uint32_t *pods);

/* Resources of each of its trees: always as many. */
uint32_t footprint_resources(const struct footprint *footprint, const struct fabric *fabric);

/* Those of the tree with a root, 0 to ways[level] - 1; returns how many. */
uint32_t fabric_tree(const struct fabric *fabric, const struct footprint *footprint, uint32_t root,
                     uint32_t *resources);

#endif
