/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of trees. Any text is parsed, or refused with a sentence. A parsed text gives a valid
 * forest, and printing and parsing it again gives the same forest.
 */
#include "plan/tree/tree.h"
#include "fuzz.h"

#include <string.h>

static void check_tree(const struct tree *tree)
{
	uint64_t seen = 0;

	demand(tree->n_nodes >= 1 && tree->n_nodes <= TREE_RANKS_MAX && tree->share > 0);
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		const struct tree_node *node = &tree->nodes[i];

		demand(i ? node->parent >= 0 && node->parent < (int)i : node->parent == -1);
		demand(tree_depth(tree, (int)i) <= TREE_DEPTH_MAX);
		demand(tree_children(tree, (int)i) >= 1 && node->ranks);
		demand(!(seen & node->own));
		seen |= node->own;
	}
	demand(seen == tree->nodes[0].ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct forest forest, again;
	static char text[1 << 18], twice[1 << 18];
	char *input = malloc(size + 1);

	demand(input);
	memcpy(input, data, size);
	input[size] = 0;
	if (forest_parse(&forest, input) == TRIB_OK) {
		for (unsigned i = 0; i < forest.n_trees; i++)
			check_tree(&forest.trees[i]);
		demand(forest_print(&forest, text, sizeof(text)) < sizeof(text));
		demand(forest_parse(&again, text) == TRIB_OK);
		demand(forest_print(&again, twice, sizeof(twice)) < sizeof(twice));
		demand(!strcmp(text, twice));
	} else {
		demand(*trib_last_error());
	}
	free(input);
	return 0;
}
