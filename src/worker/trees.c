/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm.h"

#include "plan/tree.h"

#include <stdlib.h>
#include <string.h>

static trib_status read_hop(const struct tree_node *node, struct wire_hop *hop)
{
	struct udp_address address;
	trib_status status = udp_resolve(node->name, UDP_DEFAULT_PORT, &address);
	const void *raw;
	size_t size;

	if (status != TRIB_OK)
		return status;
	raw = udp_raw(&address, &size);
	*hop = (struct wire_hop){ .ranks = node->ranks,
		                  .port = udp_port(&address),
		                  .family = size == 4 ? 4 : 6 };
	memcpy(hop->address, raw, size);
	return TRIB_OK;
}

static trib_status read_tree(const struct tree *tree, struct comm_config *config)
{
	uint64_t all = config->size >= 64 ? ~0ull : (1ull << config->size) - 1;
	int node = tree_leaf(tree, (unsigned)config->rank);
	trib_status status;

	if (tree->nodes[0].ranks != all)
		return status_fail(TRIB_ERR_CONFIG,
		                   "TRIB_TREES: the tree has not the ranks 0 to %d of this job",
		                   config->size - 1);
	status = udp_resolve(tree->nodes[node].name, UDP_DEFAULT_PORT, &config->aggregator);
	if (status == TRIB_OK)
		status = udp_resolve(tree->nodes[0].name, UDP_DEFAULT_PORT, &config->root);
	config->ranks = tree->nodes[node].ranks;
	config->hops = 0;
	while (status == TRIB_OK && (node = tree->nodes[node].parent) >= 0)
		status = read_hop(&tree->nodes[node], &config->up[config->hops++]);
	return status;
}

trib_status comm_read_trees(const char *text, struct comm_config *config)
{
	struct forest *forest = malloc(sizeof(*forest));
	trib_status status;

	if (!forest)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the trees");
	status = forest_parse(forest, text);
	if (status == TRIB_OK && forest->n_trees > 1)
		status = status_fail(TRIB_ERR_CONFIG, "TRIB_TREES: %u trees, one is possible",
		                     forest->n_trees);
	if (status == TRIB_OK)
		status = read_tree(&forest->trees[0], config);
	free(forest);
	return status;
}
