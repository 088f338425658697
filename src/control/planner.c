/* SPDX-License-Identifier: Apache-2.0 */
#include "control/planner.h"

#include <stdlib.h>
#include <string.h>

#define PROBE_ALL 512u        /* of more nodes, only those of the broken plan are asked */
#define PROBE_NS 200000000ull /* a live aggregator answers within, or is left out */

bool plan_has(const char *plan, const char *address)
{
	size_t length = strlen(address);

	for (const char *at = strstr(plan, address); at; at = strstr(at + 1, address))
		if (at[length] == '(' && (at == plan || strchr("*;,(", at[-1])))
			return true;
	return false;
}

/* When something has just died, a beat of half a second ago proves little. */
bool planner_suspects(const struct nodes *nodes, const char *broken, const struct node *node)
{
	return *broken && (nodes->n <= PROBE_ALL || plan_has(broken, node->report.address));
}

enum use { USE_YES, USE_PERHAPS, USE_NO };

/* One that is suspect must have shown since that it is there. */
static enum use node_use(const struct planner *planner, const struct plan_wish *wish,
                         const struct node *node, enum node_state worst)
{
	if (node_state(node, planner->now, planner->limits) > worst)
		return USE_NO;
	if (!planner_suspects(planner->nodes, wish->broken, node) ||
	    node->confirmed_at >= wish->since)
		return USE_YES;
	return planner->now < wish->since + PROBE_NS ? USE_PERHAPS : USE_NO;
}

static unsigned choose(const struct planner *planner, const struct plan_wish *wish,
                       enum node_state worst, const struct node **chosen, bool *undecided)
{
	unsigned n = 0;

	for (unsigned i = 0; i < planner->nodes->n; i++) {
		const struct node *node = planner->nodes->all[i];
		enum use use = node_use(planner, wish, node, worst);

		*undecided |= use == USE_PERHAPS;
		if (use == USE_YES && n < FOREST_TREES_MAX)
			chosen[n++] = node;
	}
	return n;
}

/* A star at each aggregator, each with as much as its link can carry. */
static void plant_stars(struct forest *forest, const struct node *const *chosen, unsigned n,
                        unsigned ranks)
{
	forest->n_trees = n;
	for (unsigned i = 0; i < n; i++) {
		const struct node_report *report = &chosen[i]->report;

		tree_start(&forest->trees[i], report->link_bps ? (double)report->link_bps / 1e9 : 1,
		           report->address);
		for (unsigned rank = 0; rank < ranks; rank++)
			tree_add_rank(&forest->trees[i], 0, rank);
	}
}

trib_status planner_plan(const struct planner *planner, const struct plan_wish *wish,
                         char out[PLAN_TEXT_MAX])
{
	const struct node *chosen[FOREST_TREES_MAX];
	bool undecided = false;
	struct forest *forest;
	size_t length;
	unsigned n;

	n = choose(planner, wish, NODE_LIVE, chosen, &undecided);
	if (!n && !undecided) /* slow is better than not at all */
		n = choose(planner, wish, NODE_LOADED, chosen, &undecided);
	if (undecided)
		return TRIB_IN_PROGRESS;
	if (!n)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "no aggregator lives, of %u that this controller has heard of: "
		                   "start tribd --join on a machine (trib nodes)",
		                   planner->nodes->n);
	forest = malloc(sizeof(*forest));
	if (!forest)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a plan");
	do {
		plant_stars(forest, chosen, n, wish->ranks);
		length = forest_print(forest, out, PLAN_TEXT_MAX);
	} while (length >= PLAN_TEXT_MAX && --n);
	free(forest);
	return TRIB_OK;
}
