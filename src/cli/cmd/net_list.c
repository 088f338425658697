/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd/net_list.h"

#include "net/cluster.h"
#include "net/cluster_plan.h"
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

/* Faults in both directions of a host's link: `up` is what the host sends. */
struct link_faults {
	bool known;
	struct fault_counts up, down;
};

static void faults_read(const struct cluster *cluster, unsigned i, struct link_faults *out)
{
	struct link_end host, port;
	char bridge[64];

	plan_host_end(cluster, i, &host);
	plan_port_end(cluster, i, &port);
	plan_bridge_namespace(cluster, bridge);
	out->known = (cluster->is_switch
	                      ? fault_read(cluster->hosts[i].ns, host.name, FAULT_IN, &out->down)
	                      : fault_read(bridge, port.name, FAULT_OUT, &out->down)) &&
	             fault_read(bridge, port.name, FAULT_IN, &out->up);
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

static void cluster_print_json(const struct cluster *cluster)
{
	printf("{\"name\":\"%s\",\"complete\":true,\"switch\":%s,\"mtu\":%u,\"hosts\":[",
	       cluster->name, cluster->is_switch ? "true" : "false", cluster->mtu);
	for (unsigned i = 0; i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		struct link_faults faults;

		printf("%s{\"name\":\"%s\",\"server\":%s,\"namespace\":\"%s\",\"address\":\"%s\","
		       "\"rate_bps\":%" PRIu64,
		       i ? "," : "", host->name, host->is_server ? "true" : "false", host->ns,
		       host->address, host->rate_bps);
		faults_read(cluster, i, &faults);
		if (faults.known) {
			printf(",\"faults\":{");
			counts_print_json("up", &faults.up);
			printf(",");
			counts_print_json("down", &faults.down);
			printf("}");
		}
		printf("}");
	}
	printf("]}");
}

static void cluster_print(const struct cluster *cluster)
{
	bool has_header = false;

	printf("%s: mtu %u%s\n", cluster->name, cluster->mtu,
	       cluster->is_switch ? ", s1 is a switch" : "");
	for (unsigned i = 0; i < cluster->n; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		const struct fault_counts *up, *down;
		struct link_faults faults;
		char rate[32];

		rate_print(rate, host->rate_bps);
		faults_read(cluster, i, &faults);
		if (!has_header)
			printf("  %-5s %-15s %-10s %-20s%s\n", "host", "address", "link",
			       "namespace",
			       faults.known ? " lost/duplicated/reordered/corrupted, up and down"
			                    : "");
		has_header = true;
		printf("  %-5s %-15s %-10s %-20s", host->name, host->address, rate, host->ns);
		up = &faults.up;
		down = &faults.down;
		if (faults.known)
			printf(" %llu/%llu/%llu/%llu of %llu, %llu/%llu/%llu/%llu of %llu",
			       up->lost, up->duplicated, up->reordered, up->corrupted, up->packets,
			       down->lost, down->duplicated, down->reordered, down->corrupted,
			       down->packets);
		printf("\n");
	}
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
		{ "json", 0, OPTION_FLAG, &list.json, NULL, "print JSON", NULL },
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
