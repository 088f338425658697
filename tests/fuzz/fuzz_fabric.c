/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a fabric. It is parsed, or refused with a sentence. Trees of a parsed fabric have
 * valid ids.
 */
#include "fuzz.h"
#include "plan/fabric/fabric.h"

#include <string.h>

static void trees_try(const struct fabric *fabric)
{
	uint32_t hosts[2] = { 0, fabric->hosts - 1 }, pods[2 * FABRIC_LEVELS_MAX];
	uint32_t tree[4 * FABRIC_LEVELS_MAX], n = fabric->hosts > 1 ? 2 : 1;
	struct footprint footprint;

	footprint_fill(&footprint, fabric, hosts, n, pods);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t root = i ? fabric->ways[footprint.level] - 1 : 0;
		uint32_t count = fabric_tree(fabric, &footprint, root, tree);

		demand(count == footprint_resources(&footprint, fabric));
		for (uint32_t k = 0; k < count; k++)
			demand(tree[k] < fabric->resources);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric fabric = { .link_jobs = 1 };
	char *text = malloc(size + 1);

	demand(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (fabric_parse(&fabric, text) == TRIB_OK)
		trees_try(&fabric);
	else
		demand(*trib_last_error());
	free(text);
	return 0;
}
