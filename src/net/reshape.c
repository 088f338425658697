/* SPDX-License-Identifier: Apache-2.0 */
/* reshape: changes links in use. If only the rate changes, packets in the queue stay there. */
#include "net/cluster.h"
#include "net/cluster_plan.h"
#include "net/fabric_plan.h"
#include "net/fabric_routes.h"
#include "net/kernel/link_shape.h"
#include "net/state.h"

#include <stdio.h>
#include <string.h>

/* One end of a link, and the namespace that it is in. */
struct place {
	char namespace[64];
	struct link_end end;
};

static void places_find(const struct cluster *cluster, unsigned link, struct place out[2])
{
	unsigned leaf, spine;

	if (fabric_is_core(cluster, link, &leaf, &spine)) {
		fabric_leaf_namespace(cluster, leaf, out[0].namespace);
		fabric_leaf_end(cluster, leaf, spine, &out[0].end);
		fabric_spine_namespace(cluster, spine, out[1].namespace);
		fabric_spine_end(cluster, leaf, spine, &out[1].end);
	} else {
		plan_port_namespace(cluster, link, out[0].namespace);
		plan_port_end(cluster, link, &out[0].end);
		snprintf(out[1].namespace, sizeof(out[1].namespace), "%s", cluster->hosts[link].ns);
		plan_host_end(cluster, link, &out[1].end);
	}
}

/* What an end of a link is to become. */
struct shape {
	bool is_cut, batches;
	uint64_t bps;     /* 0: not shaped */
	uint64_t highest; /* the rate that the link was made with */
};

static trib_status end_shape(const struct link_end *end, const struct shape *shape)
{
	if (shape->is_cut)
		return shape_cut(end);
	return shape->bps ? shape_again(end, shape->bps, shape->batches, shape->highest)
	                  : shape_none(end);
}

static trib_status link_shape(const struct cluster *cluster, unsigned link,
                              const struct shape *shape)
{
	struct place places[2] = { 0 };
	trib_status status = TRIB_OK;

	places_find(cluster, link, places);
	for (unsigned i = 0; status == TRIB_OK && i < 2; i++) {
		struct netns ns;

		status = netns_open(places[i].namespace, &ns);
		if (status != TRIB_OK)
			return status;
		places[i].end.ns = &ns;
		status = end_shape(&places[i].end, shape);
		netns_close(&ns);
	}
	return status;
}

trib_status cluster_shape(const struct cluster *cluster, const char *host, uint64_t bps,
                          bool batches)
{
	const struct cluster_host *found = cluster_find(cluster, host);
	struct shape shape = { .bps = bps, .batches = batches };

	if (!found || !bps || cluster->is_switch)
		return status_fail(TRIB_ERR_ARGUMENT, "the rate of %s's link cannot be changed",
		                   host);
	shape.highest = found->rate_bps;
	return link_shape(cluster, (unsigned)(found - cluster->hosts), &shape);
}

/* ---- changes that are recorded ---- */

static trib_status leafs_route(const struct cluster *cluster)
{
	trib_status status = TRIB_OK;

	for (unsigned leaf = 1; status == TRIB_OK && leaf <= cluster->fabric.leafs; leaf++) {
		struct netns ns;
		char name[64];

		fabric_leaf_namespace(cluster, leaf, name);
		status = netns_open(name, &ns);
		if (status != TRIB_OK)
			return status;
		status = fabric_leaf_routes(cluster, leaf, &ns);
		netns_close(&ns);
	}
	return status;
}

/*
 * Another process may have changed a link since `cluster` was loaded. So it is loaded again, under
 * the lock.
 */
static trib_status change_begin(struct cluster *cluster, int *lock)
{
	char name[sizeof(cluster->name)];
	trib_status status;

	*lock = state_lock(&status);
	if (*lock < 0)
		return status;
	memcpy(name, cluster->name, sizeof(name));
	status = cluster_load(name, cluster);
	if (status != TRIB_OK)
		state_unlock(*lock);
	return status;
}

/* Makes the link what `to` says, and records that. */
static trib_status change_end(struct cluster *cluster, unsigned link, struct link_change to,
                              int lock)
{
	bool reroute = (cluster->changes[link].cut == LINK_DOWN) != (to.cut == LINK_DOWN);
	struct shape shape = { .is_cut = to.cut != LINK_WHOLE, .batches = !cluster->is_single };
	trib_status status;

	cluster->changes[link] = (struct link_change){ 0 };
	shape.highest = cluster_link_rate(cluster, link);
	cluster->changes[link] = to;
	shape.bps = cluster_link_rate(cluster, link);
	status = link_shape(cluster, link, &shape);
	if (status == TRIB_OK && reroute)
		status = leafs_route(cluster);
	if (status == TRIB_OK)
		status = state_write(cluster);
	state_unlock(lock);
	return status;
}

trib_status cluster_link_cut(struct cluster *cluster, unsigned link, enum link_cut cut)
{
	struct link_change to;
	trib_status status;
	int lock;

	if (cut == LINK_DOWN && link < cluster->n)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "%s has no other link to route around this one; only a link of "
		                   "a fabric, like leaf1-spine1, can be down",
		                   cluster->hosts[link].name);
	status = change_begin(cluster, &lock);
	if (status != TRIB_OK)
		return status;
	to = cluster->changes[link];
	to.cut = cut;
	return change_end(cluster, link, to, lock);
}

trib_status cluster_link_slow(struct cluster *cluster, unsigned link, uint64_t bps)
{
	struct link_change to;
	trib_status status;
	int lock;

	if (bps < CLUSTER_RATE_MIN)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a link has a rate of at least 8kbit; a rate of 0 is a cut");
	status = change_begin(cluster, &lock);
	if (status != TRIB_OK)
		return status;
	to = cluster->changes[link];
	to.slow_bps = bps;
	return change_end(cluster, link, to, lock);
}

trib_status cluster_link_restore(struct cluster *cluster, unsigned link)
{
	int lock;
	trib_status status = change_begin(cluster, &lock);

	return status == TRIB_OK ? change_end(cluster, link, (struct link_change){ 0 }, lock)
	                         : status;
}
