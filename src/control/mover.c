/* SPDX-License-Identifier: Apache-2.0 */
#include "control/mover.h"

#include <stdio.h>
#include <string.h>

/* What would be planned without the node; 0: there is nothing. */
static double rate_without(const struct mover *mover, const struct moving *moving,
                           const struct node *node, bool strict)
{
	struct plan_verdict verdict;
	const struct planner planner = { .nodes = mover->nodes,
		                         .limits = mover->limits,
		                         .now = mover->now,
		                         .verdict = &verdict,
		                         .strict = strict };
	struct plan_wish wish = moving->wish;
	char plan[PLAN_TEXT_MAX];

	wish.broken = "";
	if (planner_plan(&planner, &wish, plan) != TRIB_OK || plan_has(plan, node->report.address))
		return 0;
	return verdict.rate_bps;
}

/* Somebody wants the machine: whatever else there is, is good enough. */
static enum move judge_drained(const struct mover *mover, const struct moving *moving,
                               const struct node *node, char why[MOVE_WHY])
{
	bool can = rate_without(mover, moving, node, false) > 0;

	snprintf(why, MOVE_WHY,
	         can ? "it was drained" : "it was drained, but there is no other aggregator");
	return can ? MOVE_LEAVES : MOVE_STAYS;
}

static enum move judge_loaded(const struct mover *mover, const struct moving *moving,
                              const struct node *node, char why[MOVE_WHY])
{
	char load[80];
	double without;

	if (!node->loaded_since || mover->now < node->loaded_since + MOVE_LASTED ||
	    mover->now < moving->made_at + MOVE_REST)
		return MOVE_NOT;
	node_load_text(node, mover->limits, load, sizeof(load));
	without = rate_without(mover, moving, node, true);
	if (without > 0 && without >= MOVE_GAIN * MOVE_LEFT * moving->rate_bps) {
		snprintf(why, MOVE_WHY, "overloaded, %s", load);
		return MOVE_LEAVES;
	}
	snprintf(why, MOVE_WHY,
	         without > 0 ? "overloaded, %s, but without it would be slower"
	                     : "overloaded, %s, but there is no other aggregator that is not",
	         load);
	return MOVE_STAYS;
}

enum move mover_judge(const struct mover *mover, const struct moving *moving,
                      const struct node *node, char why[MOVE_WHY])
{
	enum node_state state = node_state(node, mover->now, mover->limits);

	why[0] = '\0';
	if (!plan_has(moving->plan, node->report.address))
		return MOVE_NOT;
	if (state == NODE_DRAINED)
		return judge_drained(mover, moving, node, why);
	return state == NODE_LOADED ? judge_loaded(mover, moving, node, why) : MOVE_NOT;
}
