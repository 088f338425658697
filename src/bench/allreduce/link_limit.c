/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the links allow each system. launch/tree_rate.h computes it for our trees, this file for
 * other systems.
 */
#include "bench/allreduce/bench_allreduce.h"
#include "launch/tree_rate.h"
#include "wire/packet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IP_UDP 28
#define IP_TCP 52 /* TCP's header with timestamps */
#define ETHERNET 14

static bool is_late(const struct bench_options *options, const struct cluster_host *host)
{
	for (unsigned i = 0; i < options->n_late; i++)
		if (strcmp(options->late[i].host, host->name) == 0)
			return options->late[i].seconds >= bench_latest(options);
	return false;
}

/*
 * The share of a link's rate that is left for payload, after Ethernet, IP and the protocol
 * above.
 */
static double payload_share(const struct bench_place *place, const struct bench_system *system)
{
	double mtu = place->cluster.mtu ? place->cluster.mtu : 1500;
	bool tcp = strcmp(system->plane, "tcp") == 0;
	bool ours = strcmp(system->program, "trib_allreduce") == 0;
	double headers = (tcp ? IP_TCP : IP_UDP) + (ours ? WIRE_HEADER : 0);

	return (mtu - headers) / (mtu + ETHERNET);
}

/*
 * A parameter server sends and receives all vectors. In a ring, 2 (N - 1) / N vectors pass
 * every link, or half of that for a part of an allreduce.
 */
static void others_load(struct nic_load *loads, const struct bench_place *place,
                        const struct bench_options *options, bool is_server)
{
	double n = place->workers;
	double around = (options->collective == BENCH_ALLREDUCE ? 2 : 1) * (n - 1) / n;

	for (unsigned rank = 0; rank < place->workers; rank++)
		loads[rank].in = loads[rank].out = is_server ? 1 : around;
	for (unsigned i = place->workers; is_server && i < place->cluster.n; i++) {
		if (!place->cluster.hosts[i].is_server)
			continue;
		loads[i].in = loads[i].out = n;
		break;
	}
}

/* May vectors of the system go around a ring if that is faster than its aggregator? */
static bool may_leave(const struct bench_options *options, const struct bench_system *system)
{
	return strcmp(system->name, "tributary") == 0 && strcmp(system->plane, "udp") == 0 &&
	       !options->n_trees && !getenv("TRIB_WAY") && options->collective == BENCH_ALLREDUCE &&
	       !options->to_one;
}

double bench_limit(const struct bench_place *place, const struct bench_options *options,
                   const struct bench_system *system, uint64_t bytes)
{
	const struct cluster *cluster = &place->cluster;
	double bits = (double)bytes * 8 / payload_share(place, system), limit = 0, last = 0, rate;
	const struct layout_use use = { .workers = place->workers,
		                        .to_one = options->to_one,
		                        .copies = strcmp(system->plane, "tcp") == 0 };
	unsigned receivers = options->to_one ? 1 : place->workers;
	struct nic_load loads[CLUSTER_HOSTS_MAX] = { 0 }, around[CLUSTER_HOSTS_MAX] = { 0 };

	if (cluster->n == 0)
		return 0;
	if (system->trees && system->aggregates)
		layout_load(system->trees, cluster, &use, loads);
	else
		others_load(loads, place, options, system->aggregates);
	rate = loads_rate(loads, cluster);
	if (may_leave(options, system)) {
		others_load(around, place, options, false);
		rate = fmax(rate, loads_rate(around, cluster));
	}
	limit = rate > 0 ? bits / rate : 0;
	/* The last worker's vector has to leave by its link and to arrive at all others. */
	for (unsigned i = 0; i < place->workers; i++)
		if (cluster->hosts[i].rate_bps &&
		    (i < receivers || is_late(options, &cluster->hosts[i])))
			last = fmax(last, bits / (double)cluster->hosts[i].rate_bps);
	return bench_latest(options) > 0 ? fmax(limit, bench_latest(options) + last) : limit;
}
