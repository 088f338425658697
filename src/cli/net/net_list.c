/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/net/net_command.h"

#include "net/cluster.h"
#include "net/cluster_plan.h"
#include "net/fabric_plan.h"
#include "net/fault.h"
#include "net/state.h"
#include "options/json_writer.h"
#include "options/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct list {
	bool is_json;
	struct json_writer json;
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

static void counts_json(struct json_writer *json, const char *direction,
                        const struct fault_counts *counts)
{
	json_open_object(json, direction);
	json_put_count(json, "packets", counts->packets);
	json_put_count(json, "lost", counts->lost);
	json_put_count(json, "duplicated", counts->duplicated);
	json_put_count(json, "reordered", counts->reordered);
	json_put_count(json, "corrupted", counts->corrupted);
	json_close(json);
}

static const char *cut_word(const struct cluster *cluster, unsigned link)
{
	static const char *const words[] = {
		[LINK_WHOLE] = "whole", [LINK_CUT] = "cut", [LINK_DOWN] = "down"
	};

	return words[cluster->changes[link].cut];
}

/* What hosts and links of the fabric have. */
static void link_json(struct json_writer *json, const struct cluster *cluster, unsigned link,
                      uint64_t bits_per_second)
{
	struct link_faults faults;

	json_put_count(json, "rate_bps", bits_per_second);
	json_put_count(json, "now_bps", cluster_link_rate(cluster, link));
	json_put_text(json, "state", cut_word(cluster, link));
	faults_read(cluster, link, &faults);
	if (!faults.known)
		return;
	json_open_object(json, "faults");
	counts_json(json, "up", &faults.up);
	counts_json(json, "down", &faults.down);
	json_close(json);
}

static void host_json(struct json_writer *json, const struct cluster *cluster, unsigned i)
{
	const struct cluster_host *host = &cluster->hosts[i];
	char alias[40];

	json_open_object(json, NULL);
	json_put_text(json, "name", host->name);
	json_put_bool(json, "server", host->is_server);
	if (host->leaf) {
		json_put_count(json, "leaf", host->leaf);
		json_open_list(json, "aliases");
		for (unsigned k = 1; k <= cluster->fabric.paths; k++) {
			cluster_alias(cluster, i, k, alias);
			json_put_text(json, NULL, alias);
		}
		json_close(json);
	}
	json_put_text(json, "namespace", host->ns);
	json_put_text(json, "address", host->address);
	link_json(json, cluster, i, host->rate_bps);
	json_close(json);
}

static void fabric_json(struct json_writer *json, const struct cluster *cluster)
{
	const struct cluster_fabric *fabric = &cluster->fabric;
	char name[CLUSTER_LINK_NAME_BYTES];

	json_open_object(json, "fabric");
	json_put_count(json, "leafs", fabric->leafs);
	json_put_count(json, "spines", fabric->spines);
	json_put_count(json, "paths", fabric->paths);
	json_put_text(json, "route", fabric->is_static ? "static" : "ecmp");
	json_put_text(json, "hash", fabric->hash_l3 ? "l3" : "l4");
	json_open_list(json, "links");
	for (unsigned link = cluster->n; link < cluster_links(cluster); link++) {
		cluster_link_name(cluster, link, name);
		json_open_object(json, NULL);
		json_put_text(json, "name", name);
		link_json(json, cluster, link, fabric->core_bps);
		json_close(json);
	}
	json_close(json);
	json_close(json);
}

static void cluster_json(struct json_writer *json, const char *name, const struct cluster *cluster)
{
	json_open_object(json, NULL);
	json_put_text(json, "name", name);
	json_put_bool(json, "complete", cluster != NULL);
	if (cluster) {
		json_put_bool(json, "switch", cluster->is_switch);
		json_put_count(json, "mtu", cluster->mtu);
		json_open_list(json, "hosts");
		for (unsigned i = 0; i < cluster->n; i++)
			host_json(json, cluster, i);
		json_close(json);
		if (cluster->fabric.leafs)
			fabric_json(json, cluster);
	}
	json_close(json);
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

	list->clusters++;
	if (list->is_json)
		cluster_json(&list->json, name, complete ? &cluster : NULL);
	else if (complete)
		cluster_print(&cluster);
	else
		printf("%s: %s\n", name, trib_last_error());
	return TRIB_OK;
}

int net_list(int argc, char **argv)
{
	struct list list = { .json = { .out = stdout, .is_compact = true } };
	const struct option_row rows[] = {
		{ "json", 0, OPTION_JSON, &list.is_json, "FILE", "print JSON, or write it to FILE",
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
	if (list.is_json)
		json_open_list(&list.json, NULL);
	if (state_each(cluster_list, &list) != TRIB_OK) {
		fprintf(stderr, "trib net list: %s\n", trib_last_error());
		return 1;
	}
	if (list.is_json)
		json_close(&list.json);
	else if (!list.clusters)
		printf("no clusters; make one with: trib net up\n");
	return 0;
}
