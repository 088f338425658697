/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fabric_plan.h"

#include "net/names.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define HOSTS_SECOND_BYTE 84 /* of their own addresses; alias k adds k */
#define ROUTERS_SECOND_BYTE 83
#define SPINE_BASE 100 /* spine 1 has the last byte 101 */

static trib_status count_check(const char *option, unsigned count, unsigned most)
{
	if (count >= 1 && count <= most)
		return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT, "--%s is 1 to %u, not %u", option, most, count);
}

trib_status fabric_check(const struct cluster_options *options)
{
	const struct cluster_fabric *fabric = &options->fabric;
	trib_status status;

	if (!fabric->leafs && !fabric->spines) {
		if (fabric->paths || fabric->is_static || fabric->hash_l3 || fabric->core_bps)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--paths, --route, --hash and --core need a fabric: "
			                   "--leaf and --spine");
		return TRIB_OK;
	}
	status = count_check("leaf", fabric->leafs, CLUSTER_LEAFS_MAX);
	if (status == TRIB_OK)
		status = count_check("spine", fabric->spines, CLUSTER_SPINES_MAX);
	if (status == TRIB_OK && fabric->paths)
		status = count_check("paths", fabric->paths, CLUSTER_PATHS_MAX);
	if (status == TRIB_OK && fabric->core_bps && fabric->core_bps < CLUSTER_RATE_MIN)
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "--core is a rate of at least 8kbit, or 0 for no limit");
	if (status == TRIB_OK && (options->is_switch || options->is_framed))
		status = status_fail(TRIB_ERR_ARGUMENT,
		                     "a fabric has leafs in place of the switch s1, and no relays");
	return status;
}

/* Deals hosts first to first + n - 1. */
static void block_deal(struct cluster *cluster, unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cluster->hosts[first + i].leaf = i * cluster->fabric.leafs / n + 1;
}

void fabric_deal(struct cluster *cluster)
{
	unsigned workers = 0;

	if (!cluster->fabric.leafs)
		return;
	while (workers < cluster->n && !cluster->hosts[workers].is_server)
		workers++;
	block_deal(cluster, 0, workers);
	block_deal(cluster, workers, cluster->n - workers);
}

/* ---- addresses and names ---- */

static uint32_t address_make(const struct cluster *cluster, unsigned second, unsigned last)
{
	return htonl(10u << 24 | second << 16 | cluster->subnet << 8 | last);
}

uint32_t fabric_host_address(const struct cluster *cluster, unsigned i, unsigned k)
{
	uint32_t own = ntohl(inet_addr(cluster->hosts[i].address));

	return address_make(cluster, HOSTS_SECOND_BYTE + k, own & 0xff);
}

uint32_t fabric_alias_network(const struct cluster *cluster, unsigned k)
{
	return address_make(cluster, HOSTS_SECOND_BYTE + k, 0);
}

uint32_t fabric_leaf_address(const struct cluster *cluster, unsigned leaf)
{
	return address_make(cluster, ROUTERS_SECOND_BYTE, leaf);
}

uint32_t fabric_spine_address(const struct cluster *cluster, unsigned spine)
{
	return address_make(cluster, ROUTERS_SECOND_BYTE, SPINE_BASE + spine);
}

void cluster_alias(const struct cluster *cluster, unsigned i, unsigned k, char out[40])
{
	uint32_t address = fabric_host_address(cluster, i, k);

	inet_ntop(AF_INET, &address, out, 40);
}

static void router_namespace(const struct cluster *cluster, const char *kind, unsigned number,
                             char out[64])
{
	char name[16];

	snprintf(name, sizeof(name), "%s%u", kind, number);
	names_namespace(out, cluster->name, name);
}

void fabric_leaf_namespace(const struct cluster *cluster, unsigned leaf, char out[64])
{
	router_namespace(cluster, NAMES_LEAF, leaf, out);
}

void fabric_spine_namespace(const struct cluster *cluster, unsigned spine, char out[64])
{
	router_namespace(cluster, NAMES_SPINE, spine, out);
}

bool fabric_find_router(const struct cluster *cluster, const char *name, char out[64])
{
	char wanted[64];

	names_namespace(wanted, cluster->name, name);
	for (unsigned i = 1; i <= cluster->fabric.leafs; i++) {
		fabric_leaf_namespace(cluster, i, out);
		if (strcmp(out, wanted) == 0)
			return true;
	}
	for (unsigned i = 1; i <= cluster->fabric.spines; i++) {
		fabric_spine_namespace(cluster, i, out);
		if (strcmp(out, wanted) == 0)
			return true;
	}
	return false;
}

/* An end has the name of the router at the other end. */
static void core_end(const struct cluster *cluster, unsigned leaf, unsigned spine, bool at_leaf,
                     struct link_end *end)
{
	const uint8_t mac[] = { 0x02,
		                0x54,
		                0x52,
		                at_leaf ? 5 : 6,
		                (uint8_t)cluster->subnet,
		                (uint8_t)(leaf << 4 | spine) };

	snprintf(end->name, sizeof(end->name), "%s%u", at_leaf ? NAMES_SPINE : NAMES_LEAF,
	         at_leaf ? spine : leaf);
	memcpy(end->mac, mac, sizeof(mac));
}

void fabric_leaf_end(const struct cluster *cluster, unsigned leaf, unsigned spine,
                     struct link_end *end)
{
	core_end(cluster, leaf, spine, true, end);
}

void fabric_spine_end(const struct cluster *cluster, unsigned leaf, unsigned spine,
                      struct link_end *end)
{
	core_end(cluster, leaf, spine, false, end);
}

/* ---- links ---- */

unsigned cluster_links(const struct cluster *cluster)
{
	return cluster->n + cluster->fabric.leafs * cluster->fabric.spines;
}

bool fabric_is_core(const struct cluster *cluster, unsigned link, unsigned *leaf, unsigned *spine)
{
	if (link < cluster->n)
		return false;
	*leaf = (link - cluster->n) / cluster->fabric.spines + 1;
	*spine = (link - cluster->n) % cluster->fabric.spines + 1;
	return true;
}

void cluster_link_name(const struct cluster *cluster, unsigned link,
                       char out[CLUSTER_LINK_NAME_BYTES])
{
	unsigned leaf, spine;

	if (fabric_is_core(cluster, link, &leaf, &spine))
		snprintf(out, CLUSTER_LINK_NAME_BYTES, NAMES_LEAF "%u-" NAMES_SPINE "%u", leaf,
		         spine);
	else
		snprintf(out, CLUSTER_LINK_NAME_BYTES, "%s", cluster->hosts[link].name);
}

uint64_t cluster_link_rate(const struct cluster *cluster, unsigned link)
{
	if (cluster->changes[link].slow_bps)
		return cluster->changes[link].slow_bps;
	return link < cluster->n ? cluster->hosts[link].rate_bps : cluster->fabric.core_bps;
}

trib_status cluster_link_find(const struct cluster *cluster, const char *name, unsigned *out)
{
	char each[CLUSTER_LINK_NAME_BYTES], last[CLUSTER_LINK_NAME_BYTES];

	if (cluster->is_switch && strcmp(name, "s1") == 0)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "s1 is the switch and has no link of its own; its links are "
		                   "those of the workers");
	for (unsigned link = 0; link < cluster_links(cluster); link++) {
		cluster_link_name(cluster, link, each);
		if (strcmp(each, name) == 0) {
			*out = link;
			return TRIB_OK;
		}
	}
	cluster_link_name(cluster, cluster_links(cluster) - 1, last);
	return status_fail(TRIB_ERR_ARGUMENT,
	                   "the cluster %s has no link %s; it has %s to %s, which are the links of "
	                   "hosts%s%s",
	                   cluster->name, name, cluster->hosts[0].name,
	                   cluster->hosts[cluster->n - 1].name,
	                   cluster->fabric.leafs ? ", and leaf1-spine1 to " : "",
	                   cluster->fabric.leafs ? last : "");
}

/* ---- ways ---- */

unsigned fabric_alias_spine(const struct cluster *cluster, unsigned k)
{
	return (k - 1) % cluster->fabric.spines + 1;
}

static bool core_is_down(const struct cluster *cluster, unsigned leaf, unsigned spine)
{
	unsigned link = cluster->n + (leaf - 1) * cluster->fabric.spines + spine - 1;

	return cluster->changes[link].cut == LINK_DOWN;
}

bool fabric_spine_leads(const struct cluster *cluster, unsigned from, unsigned to, unsigned spine)
{
	return !core_is_down(cluster, from, spine) && !core_is_down(cluster, to, spine);
}
