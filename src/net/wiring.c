/* SPDX-License-Identifier: Apache-2.0 */
#include "net/wiring.h"

#include "net/fault.h"
#include "net/cluster_plan.h"
#include "net/kernel/link_shape.h"

#include <arpa/inet.h>

struct wiring {
	const struct cluster_options *options;
	const struct cluster *cluster;
	struct netns ns[CLUSTER_HOSTS_MAX]; /* parallel to cluster->hosts */
	struct netns hub; /* namespace of the bridge, if s1 is not a switch; else of the relay */
	struct link_end bridge;
};

static bool host_is_switch(const struct wiring *wiring, unsigned i)
{
	return wiring->cluster->is_switch && i == wiring->options->workers;
}

static trib_status wiring_namespace(const char *name, struct netns *out)
{
	trib_status status = netns_create(name, out);

	return status == TRIB_OK ? link_set_up(out, "lo") : status;
}

static trib_status wiring_namespaces(struct wiring *wiring)
{
	const struct cluster *cluster = wiring->cluster;
	trib_status status = TRIB_OK;
	char hub[64];

	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		status = wiring_namespace(cluster->hosts[i].ns, &wiring->ns[i]);
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
	const struct cluster_options *options = wiring->options;
	bool singly = options->no_offload || plan_has_faults(options);
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
static trib_status wiring_faults(const struct wiring *wiring, unsigned i,
                                 const struct link_end *host, const struct link_end *port)
{
	const struct cluster_options *options = wiring->options;
	const struct fault_rates faults = { .loss = options->loss,
		                            .dup = options->dup,
		                            .reorder = options->reorder,
		                            .corrupt = options->corrupt,
		                            .seed = options->seed };
	bool is_switch = wiring->cluster->is_switch;
	trib_status status;

	if (!plan_has_faults(options))
		return TRIB_OK;
	status = fault_attach(is_switch ? host : port, is_switch ? FAULT_IN : FAULT_OUT, &faults,
	                      2 * i);
	return status == TRIB_OK ? fault_attach(port, FAULT_IN, &faults, 2 * i + 1) : status;
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
	const struct link_end *bridge = wiring->options->is_routed ? NULL : &wiring->bridge;
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
	struct link_end port = { .ns = wiring->bridge.ns };
	trib_status status;

	plan_host_end(cluster, i, &host);
	plan_port_end(cluster, i, &port);
	status = wiring_pairs(wiring, i, &host, &port);
	if (status == TRIB_OK && !wiring->options->is_routed)
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
	struct link_end host = { .ns = &wiring->ns[i] }, port = { .ns = wiring->bridge.ns };
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
		if (!wiring->options->is_routed)
			status = wiring_address(wiring, i);
		else if (!host_is_switch(wiring, i))
			status = wiring_peers(wiring, i);
	}
	for (unsigned i = 0; status == TRIB_OK && i < cluster->n; i++)
		if (!host_is_switch(wiring, i))
			status = wiring_wait(wiring, i);
	return status;
}

trib_status wiring_make(const struct cluster_options *options, const struct cluster *cluster)
{
	struct wiring wiring = { .options = options, .cluster = cluster };

	wiring.hub.fd = wiring.hub.nl = -1;
	for (unsigned i = 0; i < cluster->n; i++)
		wiring.ns[i].fd = wiring.ns[i].nl = -1;
	trib_status status = wiring_all(&wiring);

	for (unsigned i = 0; i < cluster->n; i++)
		netns_close(&wiring.ns[i]);
	netns_close(&wiring.hub);
	return status;
}
