/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a benchmark, and what their links allow. */
#include "cli/bench.h"
#include "wire/packet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_DEFAULT 4

static trib_status cluster_make(const struct bench_options *options, struct bench_place *place)
{
	static char name[32];
	struct cluster_options net = options->net;
	trib_status status;

	snprintf(name, sizeof(name), "bench%d", (int)getpid());
	net.name = name;
	net.workers = options->hosts ? (unsigned)options->hosts : HOSTS_DEFAULT;
	net.servers = 1;
	net.is_switch = !options->is_server;
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
	if (options->late_s > 0 && !cluster_find(&place->cluster, options->late_host))
		return status_fail(TRIB_ERR_ARGUMENT, "--late: there is no host %s",
		                   options->late_host);
	rates_find(place);
	return TRIB_OK;
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
	snprintf(out, room, "%u hosts, links %s%s%s, MTU %u, the aggregator %s", place->workers,
	         place->slowest_bps ? "of " : "", rate, unlike ? " (the slowest)" : "",
	         cluster->mtu ? cluster->mtu : 1500,
	         cluster->is_switch ? "has a port a host" : "is a server with one link");
}

/* What of a link's rate is left for payload: Ethernet, IP and the protocol above take theirs. */
static double payload_share(const struct bench_place *place, bool aggregates)
{
	double mtu = place->cluster.mtu ? place->cluster.mtu : 1500;
	double headers = aggregates ? 28 + WIRE_HEADER : 52; /* UDP; TCP with timestamps */

	return (mtu - headers) / (mtu + 14);
}

/*
 * A fragment's sum is there when every host has sent it, and the sums go on
 * at the rate of the receiver: so the last host to start and the slower of
 * its link and the receiver's set the time.
 */
static double aggregation_limit(const struct bench_place *place,
                                const struct bench_options *options, double bits)
{
	const struct cluster_host *hosts = place->cluster.hosts;
	unsigned receivers = options->to_one ? 1 : place->workers;
	double limit = 0;

	for (unsigned i = 0; i < place->workers; i++) {
		double start = strcmp(hosts[i].name, options->late_host) ? 0 : options->late_s;

		for (unsigned j = 0; j < receivers; j++)
			limit = fmax(limit, start + bits / fmin((double)hosts[i].rate_bps,
			                                        (double)hosts[j].rate_bps));
	}
	/* A server's one link carries all the vectors in. */
	return place->server_bps ? fmax(limit, place->workers * bits / (double)place->server_bps)
	                         : limit;
}

/* The least time that the links leave for it. A ring: 2 (N - 1) / N of the vector through every
   link, half of which needs the last host. */
double bench_place_limit(const struct bench_place *place, const struct bench_options *options,
                         bool aggregates, uint64_t bytes)
{
	double bits = (double)bytes * 8 / payload_share(place, aggregates), n = place->workers;
	double around;

	if (place->slowest_bps == 0)
		return 0;
	if (aggregates)
		return aggregation_limit(place, options, bits);
	around = 2 * (n - 1) / n * bits / (double)place->slowest_bps;
	return fmax(around, options->late_s + around / 2);
}
