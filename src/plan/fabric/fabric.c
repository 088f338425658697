/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fabric/fabric.h"

#include <math.h>

/*
 * A node of level l is a pair: its pod p, and which of the pod's ways[l] switches it is. Its number
 * is p * ways[l] + way. A parent's way has one digit more than the child's. So the node on the path
 * to a root has way root % ways[l], and the link above it is p * ways[l + 1] + root % ways[l + 1].
 */
static trib_status numbers_fill(struct fabric *fabric)
{
	uint64_t hosts = 1, ways = 1, resources = 0, switches = 0;

	for (unsigned l = 0; l < fabric->levels; l++) {
		if (!fabric->down[l] || !fabric->up[l])
			return status_fail(TRIB_ERR_CONFIG,
			                   "level %u: links down and up are at least 1", l + 1);
		if (fabric->down[l] > FABRIC_HOSTS_MAX || fabric->up[l] > FABRIC_HOSTS_MAX ||
		    (hosts *= fabric->down[l]) > FABRIC_HOSTS_MAX)
			return status_fail(TRIB_ERR_CONFIG, "more than %u hosts", FABRIC_HOSTS_MAX);
		fabric->size[l + 1] = (uint32_t)hosts;
	}
	fabric->size[0] = fabric->ways[0] = 1;
	fabric->serves = NULL;
	fabric->hosts = (uint32_t)hosts;
	for (unsigned l = 0; l <= fabric->levels; l++) {
		fabric->pods[l] = (uint32_t)(hosts / fabric->size[l]);
		fabric->ways[l] = (uint32_t)ways;
		if (l < fabric->levels)
			ways *= fabric->up[l];
		if (ways * fabric->pods[l] > FABRIC_RESOURCES_MAX)
			return status_fail(TRIB_ERR_CONFIG, "more than %u links or switches",
			                   FABRIC_RESOURCES_MAX);
		if (l && l < fabric->levels && fabric->link_jobs) {
			fabric->link_base[l] = (uint32_t)resources;
			resources += fabric->pods[l] * ways;
		}
	}
	fabric->links = (uint32_t)resources;
	for (unsigned l = 1; l <= fabric->levels; l++) {
		switches += (uint64_t)fabric->pods[l] * fabric->ways[l];
		fabric->switch_base[l] = (uint32_t)resources;
		if (fabric->switch_jobs)
			resources += (uint64_t)fabric->pods[l] * fabric->ways[l];
	}
	if (resources > FABRIC_RESOURCES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "more than %u links and switches",
		                   FABRIC_RESOURCES_MAX);
	fabric->switches = (uint32_t)switches;
	fabric->resources = (uint32_t)resources;
	return TRIB_OK;
}

trib_status fabric_complete(struct fabric *fabric)
{
	if (!fabric->levels || fabric->levels > FABRIC_LEVELS_MAX)
		return status_fail(TRIB_ERR_CONFIG, "a fabric has 1 to %u levels of switches",
		                   FABRIC_LEVELS_MAX);
	return numbers_fill(fabric);
}

trib_status fabric_fat_tree(struct fabric *fabric, unsigned degree, double oversubscription)
{
	unsigned half = degree / 2, up;

	if (degree < 2 || degree % 2 || degree > 160)
		return status_fail(TRIB_ERR_CONFIG,
		                   "a fat tree's degree is even and from 2 to 160, not %u", degree);
	if (!(oversubscription >= 1 && oversubscription <= half))
		return status_fail(TRIB_ERR_CONFIG,
		                   "%u links down cannot be oversubscribed %g times", half,
		                   oversubscription);
	up = (unsigned)lround(half / oversubscription);
	fabric->levels = 3;
	fabric->down[0] = fabric->down[1] = half;
	fabric->down[2] = degree;
	fabric->up[0] = 1;
	fabric->up[1] = fabric->up[2] = up;
	return fabric_complete(fabric);
}

trib_status fabric_leaf_spine(struct fabric *fabric, unsigned hosts_per_leaf, unsigned leaves,
                              unsigned spines)
{
	fabric->levels = 2;
	fabric->down[0] = hosts_per_leaf;
	fabric->down[1] = leaves;
	fabric->up[0] = 1;
	fabric->up[1] = spines;
	return fabric_complete(fabric);
}

void footprint_fill(struct footprint *footprint, const struct fabric *fabric, const uint32_t *hosts,
                    uint32_t n, uint32_t *pods)
{
	uint32_t used = 0;
	unsigned level = 0;

	while (hosts[0] / fabric->size[level] != hosts[n - 1] / fabric->size[level])
		level++;
	*footprint = (struct footprint){ .level = level, .pods = pods };
	for (unsigned l = 1; l <= level; l++) {
		uint32_t size = fabric->size[l] / fabric->size[l - 1];
		const uint32_t *below = l == 1 ? hosts : pods + footprint->offset[l - 1];
		uint32_t count = l == 1 ? n : footprint->n[l - 1];

		footprint->offset[l] = used;
		for (uint32_t i = 0; i < count; i++)
			if (!i || below[i] / size != below[i - 1] / size)
				pods[used++] = below[i] / size;
		footprint->n[l] = used - footprint->offset[l];
	}
}

uint32_t footprint_resources(const struct footprint *footprint, const struct fabric *fabric)
{
	uint32_t n = 0;

	for (unsigned l = 1; l <= footprint->level; l++) {
		if (fabric->link_jobs && l < footprint->level)
			n += footprint->n[l];
		if (fabric->switch_jobs)
			n += footprint->n[l];
	}
	return n;
}

/* Lists resources in ascending order, so that two trees can be compared in one pass. */
uint32_t fabric_tree(const struct fabric *fabric, const struct footprint *footprint, uint32_t root,
                     uint32_t *resources)
{
	uint32_t n = 0;

	if (fabric->link_jobs)
		for (unsigned l = 1; l < footprint->level; l++) {
			uint32_t ways = fabric->ways[l + 1], way = root % ways;
			const uint32_t *pods = footprint->pods + footprint->offset[l];

			for (uint32_t i = 0; i < footprint->n[l]; i++)
				resources[n++] = fabric->link_base[l] + pods[i] * ways + way;
		}
	if (fabric->switch_jobs)
		for (unsigned l = 1; l <= footprint->level; l++) {
			uint32_t ways = fabric->ways[l], way = root % ways;
			const uint32_t *pods = footprint->pods + footprint->offset[l];

			for (uint32_t i = 0; i < footprint->n[l]; i++)
				resources[n++] = fabric->switch_base[l] + pods[i] * ways + way;
		}
	return n;
}
