/* SPDX-License-Identifier: Apache-2.0 */
/* Makes or finds the hosts of a benchmark, and describes them. */
#include "bench/bed/bench_bed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_DEFAULT 4

static trib_status cluster_make(const struct bench_options *options, struct bench_place *place)
{
	static unsigned made; /* a benchmark may have several clusters */
	struct cluster_options net = options->net;
	trib_status status;
	char name[32];

	if (made++)
		snprintf(name, sizeof(name), "bench%d-%u", (int)getpid(), made);
	else
		snprintf(name, sizeof(name), "bench%d", (int)getpid());
	net.name = name;
	net.workers = options->hosts ? (unsigned)options->hosts : HOSTS_DEFAULT;
	net.servers = options->servers ? (unsigned)options->servers : 1;
	net.is_switch = !options->is_server && !options->servers && !net.fabric.leafs;
	net.is_framed = options->nic;
	net.mtu = (unsigned)options->mtu;
	status = cluster_up(&net, &place->cluster);
	place->made = status == TRIB_OK;
	return status;
}

static unsigned workers_count(const struct cluster *cluster)
{
	unsigned n = 0;

	while (n < cluster->n && !cluster->hosts[n].is_server)
		n++;
	return n;
}

static void rates_find(struct bench_place *place)
{
	const struct cluster *cluster = &place->cluster;

	for (unsigned i = 0; i < place->workers && i < cluster->n; i++) {
		uint64_t rate = cluster->hosts[i].rate_bps;

		if (rate && (!place->slowest_bps || rate < place->slowest_bps))
			place->slowest_bps = rate;
	}
	if (cluster->n > workers_count(cluster) && !cluster->is_switch)
		place->server_bps = cluster->hosts[workers_count(cluster)].rate_bps;
}

trib_status bench_place_open(const struct bench_options *options, struct bench_place *place)
{
	trib_status status = TRIB_OK;
	cpu_set_t servers;
	unsigned most;

	*place = (struct bench_place){ 0 };
	if (options->net_name)
		status = cluster_load(options->net_name, &place->cluster);
	else if (geteuid() == 0)
		status = cluster_make(options, place);
	if (status != TRIB_OK)
		return status;
	most = place->cluster.n ? workers_count(&place->cluster) : CLUSTER_HOSTS_MAX;
	place->workers = options->hosts     ? (unsigned)options->hosts
	                 : place->cluster.n ? most
	                                    : HOSTS_DEFAULT;
	if (options->hosts > most)
		return status_fail(TRIB_ERR_ARGUMENT, "there are only %u workers, not %llu", most,
		                   (unsigned long long)options->hosts);
	for (unsigned i = 0; i < options->n_late; i++) {
		const struct cluster_host *host =
			cluster_find(&place->cluster, options->late[i].host);

		if (!host || host >= place->cluster.hosts + place->workers)
			return status_fail(TRIB_ERR_ARGUMENT, "--late: there is no worker %s",
			                   options->late[i].host);
	}
	rates_find(place);
	if (!place->cluster.n && (options->n_cores || options->nic))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "%s needs a virtual cluster, which needs root",
		                   options->nic ? "--nic" : "--cores");
	if (!options->n_cores)
		return TRIB_OK;
	status = cores_share(options->cores, options->n_cores, &place->cluster, place->cores);
	if (status != TRIB_OK || !(options->busy > 0))
		return status;
	cores_of_servers(place->cores, &place->cluster, &servers);
	if (CPU_COUNT(&servers) == 0)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "--busy: workers share cores with servers (--cores)");
	return TRIB_OK;
}

trib_status bench_places_open(const struct bench_options *options, const uint64_t *hosts,
                              unsigned n, struct bench_place *bed, struct bench_place *places,
                              struct tree_layout *trees)
{
	struct bench_options wanted = *options;
	trib_status status;

	for (unsigned i = 0; i < n; i++)
		if (hosts[i] > wanted.hosts)
			wanted.hosts = hosts[i];
	status = bench_place_open(&wanted, bed);
	for (unsigned i = 0; i < n && status == TRIB_OK; i++) {
		places[i] = *bed;
		places[i].made = false;
		places[i].workers = (unsigned)hosts[i];
		places[i].spread = options->spread && bed->cluster.n &&
		                   cores_spread(places[i].workers, places[i].cores);
		status = layout_read(&trees[i], "star", &bed->cluster, places[i].workers);
	}
	return status;
}

void bench_place_close(struct bench_place *place)
{
	if (place->made && cluster_down(place->cluster.name) != TRIB_OK)
		fprintf(stderr, "trib bench: %s\n", trib_last_error());
	place->made = false;
}

static void rate_text(uint64_t bps, char *out, size_t room)
{
	if (bps >= 1000000000)
		snprintf(out, room, "%g Gb/s", (double)bps / 1e9);
	else
		snprintf(out, room, "%g Mb/s", (double)bps / 1e6);
}

void bench_place_describe(const struct bench_place *place, char *out, size_t room)
{
	const struct cluster *cluster = &place->cluster;
	char rate[32] = "not shaped";
	unsigned servers = cluster->n - workers_count(cluster);
	char aggregators[48], fabric[64] = "";
	bool unlike = false;

	if (cluster->n == 0) {
		snprintf(out, room,
		         "%u processes on loopback: without root there are no hosts and links, so "
		         "this compares software, not networks",
		         place->workers);
		return;
	}
	for (unsigned i = 0; i < place->workers; i++)
		unlike |= cluster->hosts[i].rate_bps != place->slowest_bps;
	if (place->slowest_bps)
		rate_text(place->slowest_bps, rate, sizeof(rate));
	if (cluster->is_switch)
		snprintf(aggregators, sizeof(aggregators), "the aggregator has one port per host");
	else if (servers == 1)
		snprintf(aggregators, sizeof(aggregators), "the server has one link");
	else
		snprintf(aggregators, sizeof(aggregators), "%u servers with one link each",
		         servers);
	if (cluster->fabric.leafs)
		snprintf(fabric, sizeof(fabric), ", a fabric of %u leafs and %u spines",
		         cluster->fabric.leafs, cluster->fabric.spines);
	snprintf(out, room, "%u hosts, links %s%s%s, MTU %u, %s%s", place->workers,
	         place->slowest_bps ? "of " : "", rate, unlike ? " (the slowest)" : "",
	         cluster->mtu ? cluster->mtu : 1500, aggregators, fabric);
}

double bench_latest(const struct bench_options *options)
{
	double latest = 0;

	for (unsigned i = 0; i < options->n_late; i++)
		latest = fmax(latest, options->late[i].seconds);
	return latest;
}
