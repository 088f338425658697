/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/fabric owns networks of switches that many jobs share, and which hosts and trees jobs
 * get there. It must not touch turns (plan/turns), nor stripes over idle servers.
 *
 * fabric: a network that jobs share: hosts below layers of switches, equal within each level
 * (fat trees, also oversubscribed, and leaf-spine). Hosts are level 0. A node of level l has
 * up[l] parents, and a switch of level l + 1 has down[l] children. A *pod* of level l is the
 * part below a switch of that level: hosts p * size[l] to (p + 1) * size[l] - 1.
 *
 * A job's hosts and its root determine its tree. The root is one of the ways[level] closest
 * common ancestors of the hosts. A tree uses *resources*: links between switches, and
 * switches, if these serve a limited number of jobs at once. A host serves one job, so its
 * own link is not a resource.
 */
#ifndef TRIB_PLAN_FABRIC_FABRIC_H
#define TRIB_PLAN_FABRIC_FABRIC_H

#include "base/status.h"

#include <stdint.h>

#define FABRIC_LEVELS_MAX 5u
#define FABRIC_HOSTS_MAX (1u << 20)
#define FABRIC_RESOURCES_MAX (1u << 27)

struct fabric {
	unsigned levels; /* of switches */
	uint32_t down[FABRIC_LEVELS_MAX], up[FABRIC_LEVELS_MAX];
	uint32_t link_jobs, switch_jobs; /* jobs at once; 0: no limit */

	/* Filled by fabric_complete: */
	uint32_t hosts, switches;
	uint32_t size[FABRIC_LEVELS_MAX + 1]; /* hosts in a pod of a level */
	uint32_t pods[FABRIC_LEVELS_MAX + 1];
	uint32_t ways[FABRIC_LEVELS_MAX + 1]; /* switches of a level above one host */
	uint32_t link_base[FABRIC_LEVELS_MAX], switch_base[FABRIC_LEVELS_MAX + 1];
	uint32_t resources, links; /* ids: links first, then switches */

	/* Jobs at once of each resource, at most the numbers above. Set it after
	 * fabric_complete; NULL: all resources are equal. */
	const uint32_t *serves;
};

/* Checks levels, down and up, and fills in the rest. */
trib_status fabric_complete(struct fabric *fabric);

/* Three layers of switches with `degree` ports; each ratio downward links to one upward. */
trib_status fabric_fat_tree(struct fabric *fabric, unsigned degree, double oversubscription);
trib_status fabric_leaf_spine(struct fabric *fabric, unsigned hosts_per_leaf, unsigned leaves,
                              unsigned spines);

/*
 * Reads a fabric from text. One line a level, from the hosts upward: `level DOWN UP`, the
 * children of a switch of that level and the parents of each child. `link N` and `switch N`:
 * jobs that each serves at once (0: any number). # starts a comment. An error starts with the
 * line number.
 */
trib_status fabric_parse(struct fabric *fabric, const char *text);

/* Jobs at once on a resource. */
static inline uint32_t fabric_capacity(const struct fabric *fabric, uint32_t resource)
{
	if (fabric->serves)
		return fabric->serves[resource];
	return resource < fabric->links ? fabric->link_jobs : fabric->switch_jobs;
}

/* The pods of each level that contain a job's hosts, up to the pod that contains all of them. */
struct footprint {
	unsigned level;                         /* level of the closest common ancestors */
	uint32_t n[FABRIC_LEVELS_MAX + 1];      /* number of pods of level l, from 1 */
	uint32_t offset[FABRIC_LEVELS_MAX + 1]; /* where level l starts in `pods` */
	uint32_t *pods;
};

/* Most pods that contain n hosts, over all levels. */
#define FOOTPRINT_PODS(fabric, n) ((size_t)(n) * (fabric)->levels)

/* `pods` has room for FOOTPRINT_PODS; hosts are in ascending order. */
void footprint_fill(struct footprint *footprint, const struct fabric *fabric, const uint32_t *hosts,
                    uint32_t n, uint32_t *pods);

/* The number of resources of each of its trees, which is the same for all. */
uint32_t footprint_resources(const struct footprint *footprint, const struct fabric *fabric);

/* Writes the resources of the tree with this root (0 to ways[level] - 1). Returns their number. */
uint32_t fabric_tree(const struct fabric *fabric, const struct footprint *footprint, uint32_t root,
                     uint32_t *resources);

#endif
