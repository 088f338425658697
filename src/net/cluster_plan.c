/* SPDX-License-Identifier: Apache-2.0 */
#include "net/cluster_plan.h"

#include "net/fabric_plan.h"
#include "net/fault.h"
#include "net/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MTU_MIN 576
#define MTU_MAX 65535
#define MTU_DEFAULT 1500

bool plan_has_faults(const struct cluster_options *options)
{
	bool has = options->n_faulty > 0;

	for (unsigned i = 0; i < FAULT_KINDS; i++)
		has |= options->faults[i] > 0;
	return has;
}

bool plan_link_faults(const struct cluster_options *options, const struct cluster *cluster,
                      unsigned link, double out[FAULT_KINDS])
{
	char name[CLUSTER_LINK_NAME_BYTES];
	bool has = false;

	cluster_link_name(cluster, link, name);
	memcpy(out, options->faults, sizeof(options->faults));
	for (unsigned i = 0; i < options->n_faulty; i++)
		if (strcmp(options->faulty[i].link, name) == 0)
			out[options->faulty[i].kind] = options->faulty[i].probability;
	for (unsigned i = 0; i < FAULT_KINDS; i++)
		has |= out[i] > 0;
	return has;
}

static trib_status probability_check(double probability, enum cluster_fault kind)
{
	static const char *const names[] = { [FAULT_LOSS] = "loss",
		                             [FAULT_DUP] = "dup",
		                             [FAULT_REORDER] = "reorder",
		                             [FAULT_CORRUPT] = "corrupt" };

	if (probability >= 0 && probability <= 1)
		return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT, "%s is a probability from 0 to 1, not %g",
	                   names[kind], probability);
}

static trib_status faults_check(const struct cluster_options *options)
{
	bool reorders = options->faults[FAULT_REORDER] > 0;
	trib_status status = TRIB_OK;

	for (unsigned i = 0; status == TRIB_OK && i < FAULT_KINDS; i++)
		status = probability_check(options->faults[i], (enum cluster_fault)i);
	for (unsigned i = 0; status == TRIB_OK && i < options->n_faulty; i++) {
		status = probability_check(options->faulty[i].probability, options->faulty[i].kind);
		reorders |= options->faulty[i].kind == FAULT_REORDER;
	}
	if (status == TRIB_OK && reorders && options->mtu > FAULT_MTU_MAX)
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "reordering needs an MTU of at most %d bytes, not %u",
		                     FAULT_MTU_MAX, options->mtu);
	if (status == TRIB_OK && plan_has_faults(options) && !fault_available())
		status = status_fail(TRIB_ERR_CONFIG,
		                     "this build has no fault injection (loss, dup, reorder, "
		                     "corrupt): it was built without clang, bpftool or libbpf");
	return status;
}

static trib_status plan_check(const struct cluster_options *options)
{
	trib_status status;

	if (options->workers < 1 || options->workers > NAMES_WORKERS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "a cluster has 1 to %d workers, not %u",
		                   NAMES_WORKERS_MAX, options->workers);
	if (options->servers > CLUSTER_HOSTS_MAX - options->workers)
		return status_fail(TRIB_ERR_ARGUMENT, "a cluster has at most %d hosts, not %u",
		                   CLUSTER_HOSTS_MAX, options->workers + options->servers);
	if (options->is_switch && !options->servers)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a switch is the server s1, so it needs at least one server");
	if (options->is_framed && (options->is_switch ? !options->is_routed : !options->servers))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "links are relayed only to a switch without a bridge, or to "
		                   "servers that have a link each");
	if (options->mtu && (options->mtu < MTU_MIN || options->mtu > MTU_MAX))
		return status_fail(TRIB_ERR_ARGUMENT, "the MTU is %d to %d bytes, not %u", MTU_MIN,
		                   MTU_MAX, options->mtu);
	status = faults_check(options);
	return status == TRIB_OK ? fabric_check(options) : status;
}

static trib_status plan_unlike(const struct cluster_options *options, struct cluster *cluster)
{
	for (unsigned i = 0; i < options->n_unlike; i++) {
		const char *name = options->unlike[i].host;
		unsigned at = 0;

		while (at < cluster->n && strcmp(cluster->hosts[at].name, name) != 0)
			at++;
		if (at == cluster->n)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "there is no host %s to give a link of its own; the "
			                   "hosts are h1 to h%u%s",
			                   name, options->workers,
			                   options->servers ? " and the servers s1, ..." : "");
		if (options->is_switch && at == options->workers)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "s1 is the switch and has no link of its own; give the "
			                   "workers' links a rate");
		cluster->hosts[at].rate_bps = options->unlike[i].rate_bps;
	}
	return TRIB_OK;
}

trib_status plan_make(const struct cluster_options *options, unsigned subnet, struct cluster *out)
{
	trib_status status = plan_check(options);

	if (status != TRIB_OK)
		return status;
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", options->name);
	out->subnet = subnet;
	out->is_switch = options->is_switch;
	out->is_single = options->no_offload || plan_has_faults(options);
	out->fabric = options->fabric;
	if (!out->fabric.paths)
		out->fabric.paths = out->fabric.spines;
	out->mtu = options->mtu ? options->mtu : MTU_DEFAULT;
	out->n = options->workers + options->servers;
	for (unsigned i = 0; i < out->n; i++) {
		struct cluster_host *host = &out->hosts[i];
		bool is_server = i >= options->workers;
		unsigned number = is_server ? i - options->workers + 1 : i + 1;

		snprintf(host->name, sizeof(host->name), "%c%u", is_server ? 's' : 'h', number);
		names_namespace(host->ns, out->name, host->name);
		snprintf(host->address, sizeof(host->address), "10.84.%u.%u", subnet,
		         is_server ? NAMES_SERVER_BASE + number : number);
		host->is_server = is_server;
		if (!options->is_switch || i != options->workers)
			host->rate_bps = options->rate_bps;
	}
	fabric_deal(out);
	status = plan_unlike(options, out);
	for (unsigned i = 0; status == TRIB_OK && i < options->n_faulty; i++) {
		unsigned link;

		status = cluster_link_find(out, options->faulty[i].link, &link);
	}
	return status;
}

/*
 * A locally administered address that can be read: 02:54:52 ("TR"), kind, subnet, last byte of the
 * IP address.
 */
static void plan_mac(uint8_t mac[LINK_MAC_BYTES], const struct cluster_host *host, uint8_t what)
{
	unsigned subnet = 0, last = 0;

	sscanf(host->address, "10.84.%u.%u", &subnet, &last);
	memcpy(mac, (uint8_t[]){ 0x02, 0x54, 0x52, what, (uint8_t)subnet, (uint8_t)last },
	       LINK_MAC_BYTES);
}

void plan_host_end(const struct cluster *cluster, unsigned i, struct link_end *end)
{
	const struct cluster_host *host = &cluster->hosts[i];
	bool is_switch = cluster->is_switch && strcmp(host->name, "s1") == 0;

	snprintf(end->name, sizeof(end->name), is_switch ? "br0" : "eth0");
	plan_mac(end->mac, host, 1);
}

/*
 * Part of an interface name, after the letter for the end: "1" for worker h1, "s1" for server s1.
 */
static const char *plan_label(const struct cluster_host *host)
{
	return host->is_server ? host->name : host->name + 1;
}

void plan_port_end(const struct cluster *cluster, unsigned i, struct link_end *end)
{
	const struct cluster_host *host = &cluster->hosts[i];

	snprintf(end->name, sizeof(end->name), "p%.14s", plan_label(host));
	plan_mac(end->mac, host, 2);
}

void plan_bridge_namespace(const struct cluster *cluster, char out[64])
{
	names_namespace(out, cluster->name, cluster->is_switch ? "s1" : NAMES_HUB);
}

void plan_port_namespace(const struct cluster *cluster, unsigned i, char out[64])
{
	if (cluster->hosts[i].leaf)
		fabric_leaf_namespace(cluster, cluster->hosts[i].leaf, out);
	else
		plan_bridge_namespace(cluster, out);
}

bool plan_is_relayed(const struct cluster *cluster, unsigned i)
{
	return cluster->hosts[i].is_server != cluster->is_switch;
}

void plan_relay_namespace(const struct cluster *cluster, char out[64])
{
	names_namespace(out, cluster->name, NAMES_HUB);
}

void plan_relay_ends(const struct cluster *cluster, unsigned i, struct link_end *near,
                     struct link_end *far)
{
	const struct cluster_host *host = &cluster->hosts[i];

	snprintf(near->name, sizeof(near->name), "n%.14s", plan_label(host));
	snprintf(far->name, sizeof(far->name), "f%.14s", plan_label(host));
	plan_mac(near->mac, host, 3);
	plan_mac(far->mac, host, 4);
}
