/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/comm_start.h"

#include "base/log.h"
#include "plane/lane/lane_handover.h"
#include "plane/lane/link_share.h"
#include "plane/membership/comm_table.h"

#include <stdio.h>

#define CELLS_MIN 16u
#define CELLS_MAX (1u << 24)

/*
 * Multicast leaves by one interface. Chooses the children that are reached from
 * one local address: the one in use, or else the one with most children.
 */
static uint64_t group_children(const struct aggregator *aggregator, const struct comm *comm)
{
	struct udp_address from[WIRE_CHILDREN_MAX];
	uint64_t known = 0, best = 0;

	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const struct udp_address *to = &comm->children[i].address;

		if (to->storage.ss_family != AF_INET || udp_local(to, &from[i]) != TRIB_OK)
			continue;
		udp_set_port(&from[i], 0);
		/*
		 * All communicators share the sockets, which may be set to another
		 * interface already.
		 */
		if (!aggregator->group_local.length || udp_same(&aggregator->group_local, &from[i]))
			known |= child_bit(i);
	}
	for (uint64_t left = known; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t alike = 0;

		for (uint64_t all = known; all; all &= all - 1)
			if (udp_same(&from[i], &from[__builtin_ctzll(all)]))
				alike |= all & -all;
		if (__builtin_popcountll(alike) > __builtin_popcountll(best))
			best = alike;
	}
	return best;
}

/* Chooses a multicast group of its own, from the random cookie. */
static void choose_group(struct aggregator *aggregator, struct comm *comm)
{
	struct sockaddr_in *group = (void *)&comm->group.storage;
	struct udp_address local;
	char interface[64];
	uint64_t children;
	unsigned mtu;

	if (!aggregator->options.multicast || __builtin_popcountll(comm->present) < 2)
		return;
	children = group_children(aggregator, comm);
	if (__builtin_popcountll(children) < 2 ||
	    udp_route(&comm->children[__builtin_ctzll(children)].address, &local, interface,
	              sizeof(interface)) != TRIB_OK)
		return;
	/*
	 * The route to a local child is the loopback, but multicast always leaves by
	 * the interface.
	 */
	mtu = udp_group_mtu(&local);
	if (mtu && mtu < udp_overhead(&local) + WIRE_HEADER + comm->payload) {
		log_info("communicator %u: no multicast: %s carries packets of %u bytes, and "
		         "fragments have %u",
		         comm->id, interface, mtu, comm->payload);
		return;
	}
	udp_set_port(&local, 0);
	aggregator->group_local = local;
	comm->grouped = children;
	group->sin_family = AF_INET;
	group->sin_addr.s_addr =
		htonl(0xef000000u | (uint32_t)(comm->cookie & 0x7fffff) | 0x400000u);
	group->sin_port = htons((uint16_t)(20000 + comm->cookie % 40000));
	comm->group.length = sizeof(*group);
	for (unsigned i = 0; i < aggregator->n_threads; i++)
		setsockopt(aggregator->threads[i].fd, IPPROTO_IP, IP_MULTICAST_IF,
		           &((const struct sockaddr_in *)&local.storage)->sin_addr,
		           sizeof(struct in_addr));
	log_info("communicator %u: results leave by multicast on %s for those of %u children that "
	         "hear it",
	         comm->id, interface, (unsigned)__builtin_popcountll(children));
}

/* As many of `n` cells as the engine can use. */
static uint32_t cells_for(const struct engine *engine, uint32_t n)
{
	if (n >= ENGINE_CELLS_MAX)
		return ENGINE_CELLS_MAX;
	return engine->any_cells ? n : 1u << (31 - __builtin_clz(n));
}

/* A newer plan runs: communicators of older plans of the same ranks are over. */
static void retire_older(struct aggregator *aggregator, const struct comm *comm)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *old = aggregator->comms[id];

		if (old && !old->retired && old->job == comm->job && old->key == comm->key &&
		    old->generation < comm->generation)
			comm_table_retire(aggregator, old);
	}
}

/* Lowers the payload and *cells to what the engine's device has. */
static bool fit(struct comm *comm, uint32_t *cells, char *why)
{
	unsigned children = 64 - (unsigned)__builtin_clzll(comm->present | 1);

	return !comm->engine->fit || comm->engine->fit(children, &comm->payload, cells, why);
}

/* How many cells each lane has, by the pools that children and the aggregator allow. */
static bool choose_cells(struct aggregator *aggregator, struct comm *comm, char *why)
{
	uint64_t cells, left = comm_table_pool_left(aggregator), step;
	uint32_t least = ENGINE_CELLS_MIN;

	if (!fit(comm, &least, why)) /* the payload comes first: cells follow from it */
		return false;
	step = comm_table_cell_bytes(comm);
	cells = comm->pool_bytes / (WIRE_HEADER + comm->payload);
	if (comm->engine->streams) /* others ask for the cells of one lane: most vectors use it */
		cells /= comm->lanes;
	if (cells > left / comm->lanes / step)
		cells = left / comm->lanes / step;
	comm->cells = cells < CELLS_MIN   ? CELLS_MIN
	              : cells > CELLS_MAX ? CELLS_MAX
	                                  : (uint32_t)cells;
	if (comm->has_parent && comm->parent.cells < comm->cells)
		comm->cells = comm->parent.cells;
	comm->cells = cells_for(comm->engine, comm->cells);
	return fit(comm, &comm->cells, why);
}

bool comm_start(struct aggregator *aggregator, struct comm *comm, char why[COMM_WHY_MAX])
{
	struct agg_lane *lanes[THREADS_MAX] = { NULL };
	char text[64];

	comm_table_settle(aggregator, comm);
	retire_older(aggregator, comm);
	comm_table_promote(aggregator, comm);
	if (!choose_cells(aggregator, comm, why))
		return false;
	comm->created_at = aggregator->threads[0].now;
	if (comm->engine->streams) /* small results go to each child: a group is tried first */
		choose_group(aggregator, comm);
	for (unsigned i = 0; i < comm->lanes; i++) {
		lanes[i] = agg_lane_new(aggregator, comm, i);
		if (!lanes[i]) {
			while (i--)
				agg_lane_free(lanes[i]);
			snprintf(why, COMM_WHY_MAX, "no memory for a pool of %llu bytes",
			         (unsigned long long)comm->pool_bytes);
			return false;
		}
		/*
		 * The JOIN shows each child's address of lane 0. Its port may turn out
		 * to be closed.
		 */
		for (uint64_t c = comm->present; i == 0 && c; c &= c - 1) {
			unsigned child = (unsigned)__builtin_ctzll(c);

			lanes[0]->addresses[child] = comm->children[child].address;
			lanes[0]->known |= child_bit(child);
		}
	}
	atomic_store(&comm->users, comm->lanes);
	for (unsigned i = 0; i < comm->lanes; i++) {
		if (comm->engine->streams) /* small vectors hardly use the link */
			link_share_open(aggregator, lanes[i]);
		lane_handover_post(&aggregator->threads[i], comm->id, lanes[i]);
	}
	comm->running = true;
	aggregator->pools += comm_table_pool_bytes(comm);
	log_info("job %u: communicator %u of %u ranks runs with %u children: %s, %u lanes, %u "
	         "fragments of %u bytes each%s%s",
	         comm->job, comm->id, comm->size, (unsigned)__builtin_popcountll(comm->present),
	         comm->engine->name, comm->lanes, comm->cells, comm->payload,
	         comm->has_parent ? "; sums go up to " : "",
	         comm->has_parent ? udp_text(&comm->parent.address, text, sizeof(text)) : "");
	return true;
}
