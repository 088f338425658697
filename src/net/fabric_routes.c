/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fabric_routes.h"

#include "net/fabric_plan.h"
#include "net/kernel/route.h"

#include <arpa/inet.h>

#define HOST_BITS 32
#define ALIAS_BITS 24
#define SPINE_TABLE 100 /* table 100+s has only the routes by spine s */
/* The source of a packet decides first. So answers to an alias take its spine too. */
#define PREFERENCE_SOURCE 1000
#define PREFERENCE_RECEIVER 2000
/*
 * Addresses, protocol and ports, from the packet. Policy 1 has the same fields, but takes a random
 * number of the sender's socket instead if it sees one, as it does on the same machine.
 */
#define HASH_FIELDS "55"

_Static_assert(CLUSTER_SPINES_MAX <= ROUTE_WAYS_MAX, "a route has a way by each spine");

trib_status fabric_router(const struct cluster *cluster, const struct netns *ns)
{
	const char *policy = cluster->fabric.hash_l3 ? "0" : "3";
	trib_status status = netns_set(ns, "ipv4/ip_forward", "1");

	/* Packets of one connection may come and go by different links. */
	if (status == TRIB_OK)
		status = netns_set(ns, "ipv4/conf/all/rp_filter", "0");
	if (status == TRIB_OK)
		status = netns_set(ns, "ipv4/conf/default/rp_filter", "0");
	if (status == TRIB_OK)
		status = netns_set(ns, "ipv4/fib_multipath_hash_fields", HASH_FIELDS);
	return status == TRIB_OK ? netns_set(ns, "ipv4/fib_multipath_hash_policy", policy) : status;
}

/* Gives both ends addresses, and each the other end as a neighbour. */
static trib_status ends_join(const struct link_end *a, uint32_t a_address, const struct link_end *b,
                             uint32_t b_address)
{
	trib_status status = link_add_peer(a, a_address, b_address);

	if (status == TRIB_OK)
		status = link_add_peer(b, b_address, a_address);
	if (status == TRIB_OK)
		status = link_add_neighbour(a, b_address, b->mac);
	return status == TRIB_OK ? link_add_neighbour(b, a_address, a->mac) : status;
}

/* The host sends everything to its leaf. */
static trib_status host_routes(const struct link_end *host, uint32_t leaf)
{
	struct route_way way = { link_index(host->ns, host->name), leaf };

	if (!way.index)
		return TRIB_ERR_SYSTEM;
	return route_set(host->ns, RT_TABLE_MAIN, (struct route_network){ 0, 0 }, &way, 1);
}

trib_status fabric_host_link(const struct cluster *cluster, unsigned i, const struct link_end *host,
                             const struct link_end *port)
{
	uint32_t own = fabric_host_address(cluster, i, 0);
	uint32_t leaf = fabric_leaf_address(cluster, cluster->hosts[i].leaf);
	struct route_way back = { link_index(port->ns, port->name), own };
	/* Open MPI does not work over an interface that has several addresses. */
	struct link_end aliases = { .ns = host->ns, .name = "lo" };
	trib_status status = ends_join(host, own, port, leaf);

	if (!back.index)
		return TRIB_ERR_SYSTEM;
	if (status == TRIB_OK)
		status = link_add_multicast_route(host);
	if (status == TRIB_OK)
		status = host_routes(host, leaf);
	for (unsigned k = 1; status == TRIB_OK && k <= cluster->fabric.paths; k++) {
		uint32_t alias = fabric_host_address(cluster, i, k);

		status = link_add_peer(&aliases, alias, alias);
		if (status == TRIB_OK)
			status = route_set(port->ns, RT_TABLE_MAIN,
			                   (struct route_network){ alias, HOST_BITS }, &back, 1);
	}
	return status;
}

trib_status fabric_core_link(const struct cluster *cluster, unsigned leaf, unsigned spine,
                             const struct link_end *at_leaf, const struct link_end *at_spine)
{
	return ends_join(at_leaf, fabric_leaf_address(cluster, leaf), at_spine,
	                 fabric_spine_address(cluster, spine));
}

/* All addresses of host i take these ways. */
static trib_status host_reach(const struct cluster *cluster, unsigned i, const struct netns *ns,
                              unsigned table, const struct route_way *ways, unsigned n)
{
	trib_status status = TRIB_OK;

	for (unsigned k = 0; status == TRIB_OK && k <= cluster->fabric.paths; k++) {
		struct route_network to = { fabric_host_address(cluster, i, k), HOST_BITS };

		status = route_set(ns, table, to, ways, n);
	}
	return status;
}

/* Routes from a leaf to host i of another leaf. */
static trib_status leaf_reach(const struct cluster *cluster, unsigned leaf, unsigned i,
                              const struct netns *ns, const struct route_way *by_spine)
{
	struct route_way ways[CLUSTER_SPINES_MAX];
	trib_status status = TRIB_OK;
	unsigned n = 0;

	for (unsigned s = 1; status == TRIB_OK && s <= cluster->fabric.spines; s++) {
		bool leads = fabric_spine_leads(cluster, leaf, cluster->hosts[i].leaf, s);

		if (leads)
			ways[n++] = by_spine[s - 1];
		if (cluster->fabric.is_static)
			status = host_reach(cluster, i, ns, SPINE_TABLE + s, &by_spine[s - 1],
			                    leads);
	}
	return status == TRIB_OK ? host_reach(cluster, i, ns, RT_TABLE_MAIN, ways, n) : status;
}

trib_status fabric_leaf_routes(const struct cluster *cluster, unsigned leaf, const struct netns *ns)
{
	struct route_way by_spine[CLUSTER_SPINES_MAX];
	trib_status status = TRIB_OK;

	for (unsigned s = 1; s <= cluster->fabric.spines; s++) {
		struct link_end end;

		fabric_leaf_end(cluster, leaf, s, &end);
		by_spine[s - 1] = (struct route_way){ link_index(ns, end.name),
			                              fabric_spine_address(cluster, s) };
		if (!by_spine[s - 1].index)
			return TRIB_ERR_SYSTEM;
	}
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		if (cluster->hosts[i].leaf != leaf)
			status = leaf_reach(cluster, leaf, i, ns, by_spine);
	return status;
}

trib_status fabric_spine_routes(const struct cluster *cluster, unsigned spine,
                                const struct netns *ns)
{
	trib_status status = TRIB_OK;

	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++) {
		unsigned leaf = cluster->hosts[i].leaf;
		struct link_end end;
		struct route_way way;

		fabric_spine_end(cluster, leaf, spine, &end);
		way = (struct route_way){ link_index(ns, end.name),
			                  fabric_leaf_address(cluster, leaf) };
		if (!way.index)
			return TRIB_ERR_SYSTEM;
		status = host_reach(cluster, i, ns, RT_TABLE_MAIN, &way, 1);
	}
	return status;
}

trib_status fabric_leaf_rules(const struct cluster *cluster, const struct netns *ns)
{
	trib_status status = TRIB_OK;

	if (!cluster->fabric.is_static)
		return TRIB_OK;
	for (unsigned k = 1; status == TRIB_OK && k <= cluster->fabric.paths; k++) {
		struct route_network alias = { fabric_alias_network(cluster, k), ALIAS_BITS };
		unsigned table = SPINE_TABLE + fabric_alias_spine(cluster, k);

		status = route_rule(ns, PREFERENCE_SOURCE + k, alias, true, table);
		if (status == TRIB_OK)
			status = route_rule(ns, PREFERENCE_RECEIVER + k, alias, false, table);
	}
	return status;
}
