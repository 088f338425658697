/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the links leave: how much every NIC has to send and to receive, for a
 * vector of one, over its rate. No choice of ours is in it: whoever moves these
 * bytes over these links takes at least this long.
 */
#include "cli/bench.h"
#include "wire/packet.h"

#include <math.h>
#include <string.h>

#define IP_UDP 28
#define IP_TCP 52 /* with timestamps */
#define ETHERNET 14

struct load {
	double in, out; /* vectors */
};

double bench_latest(const struct bench_options *options)
{
	double latest = 0;

	for (unsigned i = 0; i < options->n_late; i++)
		latest = fmax(latest, options->late[i].seconds);
	return latest;
}

static bool is_late(const struct bench_options *options, const struct cluster_host *host)
{
	for (unsigned i = 0; i < options->n_late; i++)
		if (strcmp(options->late[i].host, host->name) == 0)
			return options->late[i].seconds >= bench_latest(options);
	return false;
}

/* What of a link's rate is left for payload: Ethernet, IP and the protocols above take theirs. */
static double payload_share(const struct bench_place *place, const struct bench_system *system)
{
	double mtu = place->cluster.mtu ? place->cluster.mtu : 1500;
	bool tcp = strcmp(system->plane, "tcp") == 0;
	double headers = (tcp ? IP_TCP : IP_UDP) + (system->trees ? WIRE_HEADER : 0);

	return (mtu - headers) / (mtu + ETHERNET);
}

/* One edge of a tree: what goes up through it, and whether the result comes down. */
static void edge_add(struct load *loads, size_t child, size_t parent, double share, bool down)
{
	if (child == parent)
		return; /* inside of a host */
	loads[child].out += share;
	loads[parent].in += share;
	if (down)
		loads[child].in += share;
}

/* A node's children, and its results to them: one send, or over connections one each. */
static void node_add(struct load *loads, const struct bench_place *place, const struct trees *trees,
                     const struct tree *tree, unsigned at, double share, bool to_one, bool copies)
{
	const struct cluster_host *hosts = place->cluster.hosts;
	size_t self = (size_t)(trees_site(trees, tree->nodes[at].name)->host - hosts);
	unsigned remote = 0;

	for (unsigned rank = 0; rank < place->workers; rank++) {
		bool down = !to_one || rank == 0;

		if (!(tree->nodes[at].own >> rank & 1))
			continue;
		edge_add(loads, rank, self, share, down);
		remote += down && rank != self;
	}
	for (unsigned i = at + 1; i < tree->n_nodes; i++) {
		size_t child = (size_t)(trees_site(trees, tree->nodes[i].name)->host - hosts);
		bool down = !to_one || (tree->nodes[i].ranks & 1);

		if (tree->nodes[i].parent != (int)at)
			continue;
		edge_add(loads, child, self, share, down);
		remote += down && child != self;
	}
	loads[self].out += share * (copies ? remote : remote > 0);
}

static void trees_load(struct load *loads, const struct bench_place *place,
                       const struct bench_options *options, const struct bench_system *system)
{
	const struct forest *forest = &system->trees->forest;
	double all = 0;

	for (unsigned t = 0; t < forest->n_trees; t++)
		all += forest->trees[t].share;
	for (unsigned t = 0; t < forest->n_trees; t++)
		for (unsigned i = 0; i < forest->trees[t].n_nodes; i++)
			node_add(loads, place, system->trees, &forest->trees[t], i,
			         forest->trees[t].share / all, options->to_one,
			         strcmp(system->plane, "tcp") == 0);
}

/* A parameter server sends and receives all vectors; in a ring 2 (N - 1) / N pass every link. */
static void others_load(struct load *loads, const struct bench_place *place,
                        const struct bench_system *system)
{
	double n = place->workers, around = 2 * (n - 1) / n;
	bool is_server = system->aggregates;

	for (unsigned rank = 0; rank < place->workers; rank++)
		loads[rank].in = loads[rank].out = is_server ? 1 : around;
	for (unsigned i = place->workers; is_server && i < place->cluster.n; i++) {
		if (!place->cluster.hosts[i].is_server)
			continue;
		loads[i].in = loads[i].out = n;
		break;
	}
}

double bench_limit(const struct bench_place *place, const struct bench_options *options,
                   const struct bench_system *system, uint64_t bytes)
{
	const struct cluster *cluster = &place->cluster;
	double bits = (double)bytes * 8 / payload_share(place, system), limit = 0, last = 0;
	unsigned receivers = options->to_one ? 1 : place->workers;
	struct load loads[CLUSTER_HOSTS_MAX] = { 0 };

	if (cluster->n == 0)
		return 0;
	if (system->trees)
		trees_load(loads, place, options, system);
	else
		others_load(loads, place, system);
	for (unsigned i = 0; i < cluster->n; i++) {
		double rate = (double)cluster->hosts[i].rate_bps;

		if (rate > 0)
			limit = fmax(limit, fmax(loads[i].in, loads[i].out) * bits / rate);
		/* What the last worker brings goes out through its link, and into all others'. */
		if (rate > 0 && (i < receivers || is_late(options, &cluster->hosts[i])))
			last = fmax(last, bits / rate);
	}
	return bench_latest(options) > 0 ? fmax(limit, bench_latest(options) + last) : limit;
}
