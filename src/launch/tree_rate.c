/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/tree_rate.h"

#include "wire/packet.h"

#include <math.h>

/* TRIB_RATE counts the bytes of datagrams; a link carries headers as well. */
#define UDP_HEADERS 28
#define ETHERNET 14

/* One edge of a tree: what goes up, and whether the result comes down. */
static void edge_add(struct nic_load *loads, size_t child, size_t parent, double share, bool down)
{
	if (child == parent)
		return; /* both ends are on one host */
	loads[child].out += share;
	loads[parent].in += share;
	if (down)
		loads[child].in += share;
}

static size_t node_host(const struct tree_layout *trees, const struct cluster *cluster,
                        const struct tree_node *node)
{
	return (size_t)(layout_site(trees, node->name)->host - cluster->hosts);
}

/* Ranks are placed on the workers' hosts in turn. */
static size_t rank_host(const struct cluster *cluster, unsigned rank)
{
	unsigned n = 0;

	while (n < cluster->n && !cluster->hosts[n].is_server)
		n++;
	return n ? rank % n : 0;
}

/* Adds a node's children, and its results to them: one send, or one for each child. */
static void node_load(const struct tree_layout *trees, const struct cluster *cluster,
                      const struct layout_use *use, const struct tree *tree, unsigned at,
                      double share, struct nic_load *loads)
{
	size_t self = node_host(trees, cluster, &tree->nodes[at]);
	unsigned remote = 0;

	for (unsigned rank = 0; rank < use->workers; rank++) {
		bool down = !use->to_one || rank == 0;
		size_t child = rank_host(cluster, rank);

		if (!(tree->nodes[at].own >> rank & 1))
			continue;
		edge_add(loads, child, self, share, down);
		remote += down && child != self;
	}
	for (unsigned i = at + 1; i < tree->n_nodes; i++) {
		size_t child = node_host(trees, cluster, &tree->nodes[i]);
		bool down = !use->to_one || (tree->nodes[i].ranks & 1);

		if (tree->nodes[i].parent != (int)at)
			continue;
		edge_add(loads, child, self, share, down);
		remote += down && child != self;
	}
	loads[self].out += share * (use->copies ? remote : remote > 0);
}

void layout_load(const struct tree_layout *trees, const struct cluster *cluster,
                 const struct layout_use *use, struct nic_load *loads)
{
	const struct forest *forest = &trees->forest;
	double all = 0;

	for (unsigned t = 0; t < forest->n_trees; t++)
		all += forest->trees[t].share;
	for (unsigned t = 0; t < forest->n_trees; t++)
		for (unsigned i = 0; i < forest->trees[t].n_nodes; i++)
			node_load(trees, cluster, use, &forest->trees[t], i,
			          forest->trees[t].share / all, loads);
}

double loads_rate(const struct nic_load *loads, const struct cluster *cluster)
{
	double rate = INFINITY;

	for (unsigned i = 0; i < cluster->n; i++) {
		double most = fmax(loads[i].in, loads[i].out);

		if (cluster->hosts[i].rate_bps && most > 0)
			rate = fmin(rate, (double)cluster->hosts[i].rate_bps / most);
	}
	return isfinite(rate) ? rate : 0;
}

uint64_t layout_rate(const struct tree_layout *trees, const struct cluster *cluster,
                     unsigned workers)
{
	const struct layout_use use = { .workers = workers };
	struct nic_load loads[CLUSTER_HOSTS_MAX] = { 0 };
	double frame = cluster->mtu + ETHERNET, datagram = (double)cluster->mtu - UDP_HEADERS;

	if (cluster->n == 0)
		return 0;
	layout_load(trees, cluster, &use, loads);
	/* Reports add 0.2 %, which a link's queue can hold for seconds. */
	return (uint64_t)(loads_rate(loads, cluster) * datagram / frame);
}
