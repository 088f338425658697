/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/net/net_command.h"

#include "net/cluster.h"
#include "net/cluster_plan.h"
#include "net/fabric_plan.h"
#include "net/fault.h"
#include "net/state.h"
#include "options/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct list {
	bool json;
	unsigned clusters;
};

/* Faults in both directions of a link: `up` is what the host, or the leaf, sends. */
struct link_faults {
	bool known;
	struct fault_counts up, down;
};

static void core_faults_read(const struct cluster *cluster, unsigned leaf, unsigned spine,
                             struct link_faults *out)
{
	struct link_end end;
	char namespace[64];

	fabric_spine_end(cluster, leaf, spine, &end);
	fabric_spine_namespace(cluster, spine, namespace);
	out->known = fault_read(namespace, end.name, FAULT_OUT, &out->down) &&
	             fault_read(namespace, end.name, FAULT_IN, &out->up);
}

static void faults_read(const struct cluster *cluster, unsigned link, struct link_faults *out)
{
	struct link_end host, port;
	unsigned leaf, spine;
	char ports[64];

	if (fabric_is_core(cluster, link, &leaf, &spine)) {
		core_faults_read(cluster, leaf, spine, out);
		return;
	}
	plan_host_end(cluster, link, &host);
	plan_port_end(cluster, link, &port);
	plan_port_namespace(cluster, link, ports);
	out->known = (cluster->is_switch
	                      ? fault_read(cluster->hosts[link].ns, host.name, FAULT_IN, &out->down)
	                      : fault_read(ports, port.name, FAULT_OUT, &out->down)) &&
	             fault_read(ports, port.name, FAULT_IN, &out->up);
}

static void rate_print(char out[32], uint64_t bits_per_second)
{
	if (!bits_per_second)
		snprintf(out, 32, "-");
	else if (bits_per_second % 1000000000 == 0)
		snprintf(out, 32, "%" PRIu64 "gbit", bits_per_second / 1000000000);
	else
		snprintf(out, 32, "%gmbit", (double)bits_per_second / 1e6);
}

static void counts_print_json(const char *direction, const struct fault_counts *counts)
{
	printf("\"%s\":{\"packets\":%llu,\"lost\":%llu,\"duplicated\":%llu,\"reordered\":%llu,"
	       "\"corrupted\":%llu}",
	       direction, counts->packets, counts->lost, counts->duplicated, counts->reordered,
	       counts->corrupted);
}

static void faults_print_json(const struct cluster *cluster, unsigned link)
{
	struct link_faults faults;

	faults_read(cluster, link, &faults);
	if (!faults.known)
		return;
	printf(",\"faults\":{");
	counts_print_json("up", &faults.up);
	printf(",");
	counts_print_json("down", &faults.down);
	printf("}");
}

static const char *cut_word(const struct cluster *cluster, unsigned link)
{
	static const char *const words[] = {
		[LINK_WHOLE] = "whole", [LINK_CUT] = "cut", [LINK_DOWN] = "down"
	};

	return words[cluster->changes[link].cut];
}

static void host_print_json(const struct cluster *cluster, unsigned i)
{
	const struct cluster_host *host = &cluster->hosts[i];
	char alias[40];

	printf("{\"name\":\"%s\",\"server\":%s,", host->name, host->is_server ? "true" : "false");
	if (host->leaf) {
		printf("\"leaf\":%u,\"aliases\":[", host->leaf);
		for (unsigned k = 1; k <= cluster->fabric.paths; k++) {
			cluster_alias(cluster, i, k, alias);
			printf("%s\"%s\"", k > 1 ? "," : "", alias);
		}
		printf("],");
	}
	printf("\"namespace\":\"%s\",\"address\":\"%s\",\"rate_bps\":%" PRIu64
	       ",\"now_bps\":%" PRIu64 ",\"state\":\"%s\"",
	       host->ns, host->address, host->rate_bps, cluster_link_rate(cluster, i),
	       cut_word(cluster, i));
	faults_print_json(cluster, i);
	printf("}");
}

static void fabric_print_json(const struct cluster *cluster)
{
	const struct cluster_fabric *fabric = &cluster->fabric;
	char name[CLUSTER_LINK_NAME_BYTES];

	printf(",\"fabric\":{\"leafs\":%u,\"spines\":%u,\"paths\":%u,\"route\":\"%s\","
	       "\"hash\":\"%s\",\"links\":[",
	       fabric->leafs, fabric->spines, fabric->paths, fabric->is_static ? "static" : "ecmp",
	       fabric->hash_l3 ? "l3" : "l4");
	for (unsigned link = cluster->n; link < cluster_links(cluster); link++) {
		cluster_link_name(cluster, link, name);
		printf("%s{\"name\":\"%s\",\"rate_bps\":%" PRIu64 ",\"now_bps\":%" PRIu64
		       ",\"state\":\"%s\"",
		       link > cluster->n ? "," : "", name, fabric->core_bps,
		       cluster_link_rate(cluster, link), cut_word(cluster, link));
		faults_print_json(cluster, link);
		printf("}");
	}
	printf("]}");
}

static void cluster_print_json(const struct cluster *cluster)
{
	printf("{\"name\":\"%s\",\"complete\":true,\"switch\":%s,\"mtu\":%u,\"hosts\":[",
	       cluster->name, cluster->is_switch ? "true" : "false", cluster->mtu);
	for (unsigned i = 0; i < cluster->n; i++) {
		if (i)
			printf(",");
		host_print_json(cluster, i);
	}
	printf("]");
	if (cluster->fabric.leafs)
		fabric_print_json(cluster);
	printf("}");
}

static void faults_print(const struct fault_counts *counts)
{
	printf(" %llu/%llu/%llu/%llu of %llu", counts->lost, counts->duplicated, counts->reordered,
	       counts->corrupted, counts->packets);
}

/* The end of a line: what is not as it was made, and faults. */
static void link_print(const struct cluster *cluster, unsigned link)
{
	struct link_faults faults;

	if (cluster->changes[link].slow_bps)
		printf(" slow");
	if (cluster->changes[link].cut)
		printf(" %s", cut_word(cluster, link));
	faults_read(cluster, link, &faults);
	if (faults.known) {
		faults_print(&faults.up);
		printf(",");
		faults_print(&faults.down);
	}
	printf("\n");
}

static void fabric_print(const struct cluster *cluster)
{
	char name[CLUSTER_LINK_NAME_BYTES], rate[32];

	printf("  %-21s %-10s\n", "link of the fabric", "rate");
	for (unsigned link = cluster->n; link < cluster_links(cluster); link++) {
		cluster_link_name(cluster, link, name);
		rate_print(rate, cluster_link_rate(cluster, link));
		printf("  %-21s %-10s", name, rate);
		link_print(cluster, link);
	}
}

static bool has_faults(const struct cluster *cluster)
{
	struct link_faults faults = { 0 };

	for (unsigned link = 0; !faults.known && link < cluster_links(cluster); link++)
		faults_read(cluster, link, &faults);
	return faults.known;
}

static void cluster_print(const struct cluster *cluster)
{
	const struct cluster_fabric *fabric = &cluster->fabric;
	char rate[32];

	printf("%s: mtu %u%s", cluster->name, cluster->mtu,
	       cluster->is_switch ? ", s1 is a switch" : "");
	if (fabric->leafs)
		printf(", leafs %u, spines %u, paths %u, route %s, hash %s", fabric->leafs,
		       fabric->spines, fabric->paths, fabric->is_static ? "static" : "ecmp",
		       fabric->hash_l3 ? "l3" : "l4");
	printf("\n  %-5s %-15s %-10s %-20s%s%s\n", "host", "address", "link", "namespace",
	       fabric->leafs ? " leaf" : "",
	       has_faults(cluster) ? " lost/duplicated/reordered/corrupted, up and down" : "");
	for (unsigned i = 0; i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];

		rate_print(rate, cluster_link_rate(cluster, i));
		printf("  %-5s %-15s %-10s %-20s", host->name, host->address, rate, host->ns);
		if (host->leaf)
			printf(" leaf%u", host->leaf);
		link_print(cluster, i);
	}
	if (fabric->leafs)
		fabric_print(cluster);
}

static trib_status cluster_list(void *context, const char *name)
{
	static struct cluster cluster;
	struct list *list = context;
	bool complete = cluster_load(name, &cluster) == TRIB_OK;

	if (list->json && list->clusters)
		printf(",");
	list->clusters++;
	if (complete && list->json)
		cluster_print_json(&cluster);
	else if (complete)
		cluster_print(&cluster);
	else if (list->json)
		printf("{\"name\":\"%s\",\"complete\":false}", name);
	else
		printf("%s: %s\n", name, trib_last_error());
	return TRIB_OK;
}

int net_list(int argc, char **argv)
{
	struct list list = { 0 };
	const struct option_row rows[] = {
		{ "json", 0, OPTION_JSON, &list.json, "FILE", "print JSON, or write it to FILE",
		  NULL },
		{ 0 },
	};
	const struct options options = {
		"trib net list [OPTION]...",
		"Shows the clusters on this machine and, if they have faults, how many there were.",
		"trib net list --json", rows
	};
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (list.json)
		printf("[");
	if (state_each(cluster_list, &list) != TRIB_OK) {
		fprintf(stderr, "trib net list: %s\n", trib_last_error());
		return 1;
	}
	if (list.json)
		printf("]\n");
	else if (!list.clusters)
		printf("no clusters; make one with: trib net up\n");
	return 0;
}
