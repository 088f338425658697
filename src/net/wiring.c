/* SPDX-License-Identifier: Apache-2.0 */
#include "net/wiring.h"

#include "net/cluster_plan.h"
#include "net/fabric_plan.h"
#include "net/fabric_routes.h"
#include "net/fault.h"
#include "net/kernel/link_shape.h"

#include <arpa/inet.h>

struct wiring {
	const struct cluster_options *options;
	const struct cluster *cluster;
	struct netns ns[CLUSTER_HOSTS_MAX]; /* parallel to cluster->hosts */
	struct netns hub; /* namespace of the bridge, if s1 is not a switch; else of the relay */
	struct netns leafs[CLUSTER_LEAFS_MAX], spines[CLUSTER_SPINES_MAX];
	struct link_end bridge;
};

static bool has_bridge(const struct wiring *wiring)
{
	return !wiring->options->is_routed && !wiring->cluster->fabric.leafs;
}

static const struct netns *port_namespace(const struct wiring *wiring, unsigned i)
{
	unsigned leaf = wiring->cluster->hosts[i].leaf;

	return leaf ? &wiring->leafs[leaf - 1] : wiring->bridge.ns;
}

static bool host_is_switch(const struct wiring *wiring, unsigned i)
{
	return wiring->cluster->is_switch && i == wiring->options->workers;
}

static trib_status wiring_namespace(const char *name, struct netns *out)
{
	trib_status status = netns_create(name, out);

	return status == TRIB_OK ? link_set_up(out, "lo") : status;
}

static trib_status wiring_router(const struct wiring *wiring, const char *name, struct netns *out)
{
	trib_status status = wiring_namespace(name, out);

	return status == TRIB_OK ? fabric_router(wiring->cluster, out) : status;
}

static trib_status wiring_routers(struct wiring *wiring)
{
	const struct cluster *cluster = wiring->cluster;
	trib_status status = TRIB_OK;
	char name[64];

	for (unsigned i = 0; status == TRIB_OK && i < cluster->fabric.leafs; i++) {
		fabric_leaf_namespace(cluster, i + 1, name);
		status = wiring_router(wiring, name, &wiring->leafs[i]);
	}
	for (unsigned i = 0; status == TRIB_OK && i < cluster->fabric.spines; i++) {
		fabric_spine_namespace(cluster, i + 1, name);
		status = wiring_router(wiring, name, &wiring->spines[i]);
	}
	return status;
}

static trib_status wiring_namespaces(struct wiring *wiring)
{
	const struct cluster *cluster = wiring->cluster;
	trib_status status = TRIB_OK;
	char hub[64];

	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		status = wiring_namespace(cluster->hosts[i].ns, &wiring->ns[i]);
	if (status == TRIB_OK && cluster->fabric.leafs)
		return wiring_routers(wiring);
	if (status != TRIB_OK || (cluster->is_switch && !wiring->options->is_framed))
		return status;
	if (cluster->is_switch)
		plan_relay_namespace(cluster, hub);
	else
		plan_bridge_namespace(cluster, hub);
	return wiring_namespace(hub, &wiring->hub);
}

static trib_status wiring_bridge(struct wiring *wiring)
{
	unsigned s1 = wiring->options->workers;

	if (wiring->cluster->fabric.leafs)
		return TRIB_OK;
	if (wiring->options->is_routed) {
		wiring->bridge.ns = &wiring->ns[s1];
		return TRIB_OK;
	}
	if (wiring->cluster->is_switch) {
		plan_host_end(wiring->cluster, s1, &wiring->bridge);
		wiring->bridge.ns = &wiring->ns[s1];
	} else {
		wiring->bridge = (struct link_end){ .ns = &wiring->hub,
			                            .name = "br0",
			                            .mac = { 0x02, 0x54, 0x52 } };
	}
	/*
	 * If aggregators share a bridge, results of one must not flood the links of others. A
	 * switch sends to its own workers only.
	 */
	return link_add_bridge(&wiring->bridge, wiring->cluster->mtu, !wiring->cluster->is_switch);
}

static trib_status wiring_wire(const struct wiring *wiring, const struct link_end *end,
                               uint64_t rate)
{
	bool singly = wiring->cluster->is_single;
	trib_status status = TRIB_OK;

	if (rate)
		status = shape_rate(end, rate, !singly);
	if (status == TRIB_OK && singly)
		status = shape_no_offload(end);
	return status;
}

/*
 * XDP sees incoming packets before tc does. A bridge does not aggregate, so its ports have the
 * faults of both directions. At the ports of a switch that aggregates in XDP, faults can only hit
 * packets that XDP passes. A host's own end is no place for outgoing faults: with offloads, several
 * packets are still one buffer there.
 */
static trib_status wiring_faults(const struct wiring *wiring, unsigned link,
                                 const struct link_end *host, const struct link_end *port)
{
	struct fault_rates faults = { .seed = wiring->options->seed,
		                      .loses_all = wiring->options->loses_all };
	bool is_switch = wiring->cluster->is_switch;
	trib_status status;

	if (!plan_link_faults(wiring->options, wiring->cluster, link, faults.of))
		return TRIB_OK;
	status = fault_attach(is_switch ? host : port, is_switch ? FAULT_IN : FAULT_OUT, &faults,
	                      2 * link);
	return status == TRIB_OK ? fault_attach(port, FAULT_IN, &faults, 2 * link + 1) : status;
}

static bool host_is_relayed(const struct wiring *wiring, unsigned i)
{
	return wiring->options->is_framed && plan_is_relayed(wiring->cluster, i);
}

/* Creates the veth pairs of a link. With a relay: host to relay, and relay to port. */
static trib_status wiring_pairs(const struct wiring *wiring, unsigned i,
                                const struct link_end *host, const struct link_end *port)
{
	struct link_end near = { .ns = &wiring->hub }, far = { .ns = &wiring->hub };
	const struct link_end *bridge = has_bridge(wiring) ? &wiring->bridge : NULL;
	unsigned mtu = wiring->cluster->mtu;
	trib_status status;

	if (!host_is_relayed(wiring, i))
		return link_add_pair(port, host, bridge, mtu);
	plan_relay_ends(wiring->cluster, i, &near, &far);
	status = link_add_pair(&near, host, NULL, mtu);
	return status == TRIB_OK ? link_add_pair(port, &far, bridge, mtu) : status;
}

/*
 * A NIC limits its rate in hardware. So a server with a relayed link has a plain queue, and the
 * queue behind the relay limits the rate.
 */
static trib_status wiring_rates(const struct wiring *wiring, unsigned i,
                                const struct link_end *host, const struct link_end *port)
{
	struct link_end near = { .ns = &wiring->hub }, far = { .ns = &wiring->hub };
	const struct link_end *sends = host;
	uint64_t rate = wiring->cluster->hosts[i].rate_bps;
	trib_status status = TRIB_OK;

	if (host_is_relayed(wiring, i) && !wiring->cluster->is_switch) {
		plan_relay_ends(wiring->cluster, i, &near, &far);
		sends = &far;
		status = wiring_wire(wiring, host, 0);
		if (status == TRIB_OK)
			status = shape_queue(host);
	}
	if (status == TRIB_OK)
		status = wiring_wire(wiring, sends, rate);
	return status == TRIB_OK ? wiring_wire(wiring, port, rate) : status;
}

static trib_status wiring_link(const struct wiring *wiring, unsigned i)
{
	const struct cluster *cluster = wiring->cluster;
	struct link_end host = { .ns = &wiring->ns[i] };
	struct link_end port = { .ns = port_namespace(wiring, i) };
	trib_status status;

	plan_host_end(cluster, i, &host);
	plan_port_end(cluster, i, &port);
	status = wiring_pairs(wiring, i, &host, &port);
	if (status == TRIB_OK && has_bridge(wiring))
		status = link_add_forward(&port, host.mac);
	if (status == TRIB_OK)
		status = wiring_rates(wiring, i, &host, &port);
	return status == TRIB_OK ? wiring_faults(wiring, i, &host, &port) : status;
}

static trib_status wiring_address(const struct wiring *wiring, unsigned i)
{
	const struct cluster *cluster = wiring->cluster;
	struct link_end own = { .ns = &wiring->ns[i] };
	trib_status status;

	plan_host_end(cluster, i, &own);
	status = link_add_address(&own, inet_addr(cluster->hosts[i].address));
	for (unsigned j = 0; status == TRIB_OK && j < cluster->n; j++) {
		struct link_end other;

		if (j == i)
			continue;
		plan_host_end(cluster, j, &other);
		status = link_add_neighbour(&own, inet_addr(cluster->hosts[j].address), other.mac);
	}
	return status;
}

/* Configures the link between worker i and s1. Each of the two knows only the other end. */
static trib_status wiring_peers(const struct wiring *wiring, unsigned i)
{
	const struct cluster *cluster = wiring->cluster;
	unsigned s1 = wiring->options->workers;
	uint32_t mine = inet_addr(cluster->hosts[i].address);
	uint32_t server = inet_addr(cluster->hosts[s1].address);
	struct link_end own = { .ns = &wiring->ns[i] }, port = { .ns = &wiring->ns[s1] };
	trib_status status;

	plan_host_end(cluster, i, &own);
	plan_port_end(cluster, i, &port);
	status = link_add_peer(&port, server, mine);
	if (status == TRIB_OK)
		status = link_add_neighbour(&port, mine, own.mac);
	if (status == TRIB_OK)
		status = link_add_address(&own, mine);
	if (status == TRIB_OK)
		status = link_add_neighbour(&own, server, port.mac);
	return status;
}

static trib_status wiring_wait(const struct wiring *wiring, unsigned i)
{
	struct link_end host = { .ns = &wiring->ns[i] }, port = { .ns = port_namespace(wiring, i) };
	struct link_end near = { .ns = &wiring->hub }, far = { .ns = &wiring->hub };
	trib_status status;

	plan_host_end(wiring->cluster, i, &host);
	plan_port_end(wiring->cluster, i, &port);
	plan_relay_ends(wiring->cluster, i, &near, &far);
	status = link_wait(&host);
	if (status == TRIB_OK)
		status = link_wait(&port);
	if (status != TRIB_OK || !host_is_relayed(wiring, i))
		return status;
	status = link_wait(&near);
	return status == TRIB_OK ? link_wait(&far) : status;
}

/* ---- a fabric ---- */

/* A link of the fabric. Its faults in both directions are at the end of the spine. */
static trib_status wiring_core(const struct wiring *wiring, unsigned link)
{
	const struct cluster *cluster = wiring->cluster;
	unsigned leaf, spine;
	struct link_end at_leaf, at_spine;
	trib_status status;

	if (!fabric_is_core(cluster, link, &leaf, &spine))
		return TRIB_OK;
	at_leaf.ns = &wiring->leafs[leaf - 1];
	at_spine.ns = &wiring->spines[spine - 1];
	fabric_leaf_end(cluster, leaf, spine, &at_leaf);
	fabric_spine_end(cluster, leaf, spine, &at_spine);
	status = link_add_pair(&at_spine, &at_leaf, NULL, cluster->mtu);
	if (status == TRIB_OK)
		status = wiring_wire(wiring, &at_leaf, cluster->fabric.core_bps);
	if (status == TRIB_OK)
		status = wiring_wire(wiring, &at_spine, cluster->fabric.core_bps);
	if (status == TRIB_OK)
		status = wiring_faults(wiring, link, &at_leaf, &at_spine);
	if (status == TRIB_OK)
		status = fabric_core_link(cluster, leaf, spine, &at_leaf, &at_spine);
	if (status == TRIB_OK)
		status = link_wait(&at_leaf);
	return status == TRIB_OK ? link_wait(&at_spine) : status;
}

static trib_status wiring_below_leaf(const struct wiring *wiring, unsigned i)
{
	struct link_end host = { .ns = &wiring->ns[i] }, port = { .ns = port_namespace(wiring, i) };

	plan_host_end(wiring->cluster, i, &host);
	plan_port_end(wiring->cluster, i, &port);
	return fabric_host_link(wiring->cluster, i, &host, &port);
}

static trib_status wiring_fabric(const struct wiring *wiring)
{
	const struct cluster *cluster = wiring->cluster;
	trib_status status = TRIB_OK;

	for (unsigned link = cluster->n; status == TRIB_OK && link < cluster_links(cluster); link++)
		status = wiring_core(wiring, link);
	for (unsigned i = 0; status == TRIB_OK && i < cluster->fabric.leafs; i++) {
		status = fabric_leaf_routes(cluster, i + 1, &wiring->leafs[i]);
		if (status == TRIB_OK)
			status = fabric_leaf_rules(cluster, &wiring->leafs[i]);
	}
	for (unsigned i = 0; status == TRIB_OK && i < cluster->fabric.spines; i++)
		status = fabric_spine_routes(cluster, i + 1, &wiring->spines[i]);
	return status;
}

/* ---- */

static trib_status wiring_all(struct wiring *wiring)
{
	const struct cluster *cluster = wiring->cluster;
	trib_status status = wiring_namespaces(wiring);

	if (status == TRIB_OK)
		status = wiring_bridge(wiring);
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		if (!host_is_switch(wiring, i))
			status = wiring_link(wiring, i);
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++) {
		if (cluster->fabric.leafs)
			status = wiring_below_leaf(wiring, i);
		else if (!wiring->options->is_routed)
			status = wiring_address(wiring, i);
		else if (!host_is_switch(wiring, i))
			status = wiring_peers(wiring, i);
	}
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		if (!host_is_switch(wiring, i))
			status = wiring_wait(wiring, i);
	return status == TRIB_OK ? wiring_fabric(wiring) : status;
}

trib_status wiring_make(const struct cluster_options *options, const struct cluster *cluster)
{
	struct wiring wiring = { .options = options, .cluster = cluster };

	wiring.hub = NETNS_NONE;
	for (unsigned i = 0; i < cluster->n; i++)
		wiring.ns[i] = NETNS_NONE;
	for (unsigned i = 0; i < CLUSTER_LEAFS_MAX; i++)
		wiring.leafs[i] = NETNS_NONE;
	for (unsigned i = 0; i < CLUSTER_SPINES_MAX; i++)
		wiring.spines[i] = NETNS_NONE;
	trib_status status = wiring_all(&wiring);

	for (unsigned i = 0; i < cluster->n; i++)
		netns_close(&wiring.ns[i]);
	for (unsigned i = 0; i < CLUSTER_LEAFS_MAX; i++)
		netns_close(&wiring.leafs[i]);
	for (unsigned i = 0; i < CLUSTER_SPINES_MAX; i++)
		netns_close(&wiring.spines[i]);
	netns_close(&wiring.hub);
	return status;
}
