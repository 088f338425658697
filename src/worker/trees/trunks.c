/* SPDX-License-Identifier: Apache-2.0 */
/* Trunks are made from a plan's trees; their lanes are opened, started, stopped and closed. */
#include "worker/trees/trees.h"
#include "worker/transport/lane_carrier.h"
#include "worker/transport/lane_engine_table.h"
#include "worker/transport/lane_page.h"
#include "worker/transport/lane_paths.h"
#include "worker/transport/transport.h"

#include "base/clock.h"
#include "worker/dense/lane_count.h"

#include <errno.h>
#include <string.h>

#define REACH_MS 50

static trib_status resolve(const struct tree_node *node, struct udp_address *address)
{
	trib_status status = udp_resolve(node->name, UDP_DEFAULT_PORT, address);
	int family = address->storage.ss_family;

	if (status == TRIB_OK && family != AF_INET && family != AF_INET6)
		return status_fail(TRIB_ERR_CONFIG, "%s is no IP address", node->name);
	return status;
}

static trib_status fill_hop(struct wire_hop *hop, const struct tree_node *node)
{
	struct udp_address address;
	trib_status status = resolve(node, &address);

	if (status != TRIB_OK)
		return status;
	*hop = (struct wire_hop){ .ranks = node->ranks, .port = udp_port(&address) };
	if (address.storage.ss_family == AF_INET) {
		hop->family = 4;
		memcpy(hop->address, &((struct sockaddr_in *)&address.storage)->sin_addr, 4);
	} else {
		hop->family = 6;
		memcpy(hop->address, &((struct sockaddr_in6 *)&address.storage)->sin6_addr, 16);
	}
	return TRIB_OK;
}

/* Finds this rank's aggregator in the tree, and the aggregators above. */
static trib_status plan_trunk(struct trunk *trunk, const struct tree *tree, unsigned rank)
{
	int leaf = tree_leaf(tree, rank);
	trib_status status;

	if (leaf < 0)
		return status_fail(TRIB_ERR_CONFIG, "rank %u is not in the tree of %s", rank,
		                   tree->nodes[0].name);
	trunk->share = tree->share;
	trunk->ranks = tree->nodes[leaf].ranks;
	status = resolve(&tree->nodes[leaf], &trunk->aggregator);
	for (int node = tree->nodes[leaf].parent; status == TRIB_OK && node >= 0;
	     node = tree->nodes[node].parent)
		status = fill_hop(&trunk->up[trunk->hops++], &tree->nodes[node]);
	return status;
}

_Static_assert(TREE_DEPTH_MAX <= WIRE_HOPS_MAX + 1, "the way up has to fit a JOIN");
_Static_assert(FOREST_TREES_MAX <= LANES_MAX, "each tree needs a lane");

/*
 * Small vectors meet at the root of the first tree, whichever aggregators are between: each level
 * would cost more time than it saves bytes.
 */
static trib_status plan_slots(struct trib_comm *comm)
{
	const struct comm_config *config = &comm->config;
	struct trunk *trunk = &comm->trunks[comm->n_trunks];
	trib_status status = TRIB_OK;

	if (config->tcp || config->engine == ENGINE_DENSE_ONLY || config->own_trees ||
	    comm->n_trunks == FOREST_TREES_MAX)
		return TRIB_OK;
	*trunk = (struct trunk){ .tree = comm->n_trunks,
		                 .engine = lane_engine_find(ENGINE_SLOT),
		                 .aggregator = config->aggregator };
	if (config->trees)
		status = resolve(&config->trees->trees[0].nodes[0], &trunk->aggregator);
	comm->n_trunks++;
	return status;
}

trib_status trunks_plan(struct trib_comm *comm)
{
	const struct forest *trees = comm->config.trees;
	trib_status status = TRIB_OK;

	memset(comm->trunks, 0, sizeof(comm->trunks));
	comm->n_trunks = trees ? trees->n_trees : 1;
	comm->lanes_wanted = lanes_choose(comm->config.lanes, comm->config.cores, comm->n_trunks);
	for (unsigned i = 0; i < comm->n_trunks; i++)
		comm->trunks[i].engine = lane_engine_find(ENGINE_DENSE);
	if (!trees) {
		comm->trunks[0].share = 1;
		comm->trunks[0].aggregator = comm->config.aggregator;
		return plan_slots(comm);
	}
	for (unsigned i = 0; status == TRIB_OK && i < trees->n_trees; i++) {
		comm->trunks[i].tree = i;
		status =
			plan_trunk(&comm->trunks[i], &trees->trees[i], (unsigned)comm->config.rank);
	}
	return status == TRIB_OK ? plan_slots(comm) : status;
}

static trib_status reach(struct lane *lane, uint64_t deadline)
{
	char address[64];

	while (!lane->carrier->reach(lane, REACH_MS))
		if (clock_now() > deadline)
			return status_fail(TRIB_ERR_AGGREGATOR,
			                   "no connection to lane %u of the aggregator, at %s: %s",
			                   lane->index,
			                   udp_text(&lane->peer, address, sizeof(address)),
			                   strerror(lane->connect_error));
	return TRIB_OK;
}

trib_status trunk_add_lane(struct trib_comm *comm, struct trunk *trunk)
{
	struct lane *lane = lane_make(comm, trunk);

	if (!lane)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a lane");
	trunk->lanes[trunk->n_lanes++] = lane;
	return lane_open(lane);
}

/* The other lanes of a joined tree. */
static trib_status open_lanes(struct trib_comm *comm, struct trunk *trunk, uint64_t deadline)
{
	trib_status status = TRIB_OK;

	while (status == TRIB_OK && trunk->n_lanes < trunk->welcome.lanes) {
		status = trunk_add_lane(comm, trunk);
		if (status == TRIB_OK)
			status = reach(trunk->lanes[trunk->n_lanes - 1], deadline);
	}
	return status;
}

/* The slot lanes are the last ones. */
static void line_up_slots(struct trib_comm *comm, unsigned first)
{
	static const double equal[SLOT_LANES_MAX] = { 1, 1, 1, 1 };

	comm->small = (struct lane_set){ .first = first, .slot = true };
	if (first == comm->n_lanes)
		return;
	comm->small.driven = comm->lanes[first]->engine;
	striping_init(&comm->small.striping, equal, comm->n_lanes - first);
}

/*
 * Lists the lanes of all trunks, and sets which share of a vector each carries. The payload stays
 * that of the previous trees: blocks depend on it, and with them the bits of sums and the ledgers.
 */
static trib_status line_up(struct trib_comm *comm)
{
	unsigned own_trees = comm->config.own_trees ? comm->config.own_trees : comm->n_trunks;
	uint32_t payload = WIRE_PAYLOAD_MAX;
	unsigned own = 0, dense = 0;
	double weights[LANES_ALL];

	pthread_mutex_lock(&comm->lock);
	comm->quiet_lanes = 0;
	for (unsigned i = 0; i < comm->n_trunks; i++) {
		const struct trunk *trunk = &comm->trunks[i];

		if (trunk->welcome.payload < payload)
			payload = trunk->welcome.payload;
		for (unsigned k = 0; k < trunk->n_lanes; k++) {
			weights[comm->n_lanes] = trunk->share / trunk->n_lanes;
			trunk->lanes[k]->number = comm->n_lanes;
			comm->lanes[comm->n_lanes++] = trunk->lanes[k];
			own += i < own_trees && !trunk->engine->small;
			dense += !trunk->engine->small;
		}
	}
	if (!comm->payload)
		comm->payload = payload;
	pthread_mutex_unlock(&comm->lock);
	if (payload < comm->payload)
		return status_fail(TRIB_ERR_SYSTEM,
		                   "packets of %u bytes do not pass the new trees, only %u: set "
		                   "TRIB_MTU to what all networks carry",
		                   comm->payload, payload);
	striping_init(&comm->own.striping, weights, own);
	comm->shared.first = own;
	comm->shared.striping.n = 0;
	if (own < dense)
		striping_init(&comm->shared.striping, weights + own, dense - own);
	line_up_slots(comm, dense);
	pthread_mutex_lock(&comm->lock); /* the turn client reads it */
	comm->star = (struct star){ .step = own < dense ? STAR_JOINED : STAR_NONE };
	pthread_mutex_unlock(&comm->lock);
	return TRIB_OK;
}

trib_status trunks_open(struct trib_comm *comm, uint64_t deadline)
{
	trib_status status = TRIB_OK;

	for (unsigned i = 0; status == TRIB_OK && i < comm->n_trunks; i++)
		status = route_wait(comm, &comm->trunks[i].aggregator, "aggregator", deadline);
	if (status == TRIB_OK)
		lane_paths_find(comm);
	for (unsigned i = 0; status == TRIB_OK && i < comm->n_trunks; i++)
		status = trunk_add_lane(comm, &comm->trunks[i]);
	if (status == TRIB_OK)
		status = comm_join(comm, deadline);
	for (unsigned i = 0; status == TRIB_OK && i < comm->n_trunks; i++)
		status = open_lanes(comm, &comm->trunks[i], deadline);
	if (status == TRIB_OK)
		status = line_up(comm);
	if (status == TRIB_OK)
		lane_page_open(comm);
	if (!comm->first_aggregator.length)
		comm->first_aggregator = comm->trunks[0].aggregator;
	for (unsigned i = 0; status == TRIB_OK && i < comm->n_lanes; i++)
		status = lane_start(comm->lanes[i]);
	if (status < 0) {
		atomic_store(&comm->stop_lanes, true);
		trunks_stop(comm);
	}
	return status;
}

void trunks_stop(struct trib_comm *comm)
{
	for (unsigned i = 0; i < comm->n_lanes; i++)
		lane_stop(comm->lanes[i]);
}

void trunks_close(struct trib_comm *comm)
{
	pthread_mutex_lock(&comm->lock); /* other threads look at the lanes */
	comm_count(comm, 0, &comm->past);
	comm->n_lanes = 0;
	comm->quiet_lanes = 0;
	pthread_mutex_unlock(&comm->lock);
	for (unsigned i = 0; i < comm->n_trunks; i++) {
		struct trunk *trunk = &comm->trunks[i];

		while (trunk->n_lanes)
			lane_close(trunk->lanes[--trunk->n_lanes]);
	}
	comm->n_trunks = 0;
	lane_page_close(comm);
}
