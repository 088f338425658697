/* SPDX-License-Identifier: Apache-2.0 */
#include "control/mover.h"

#include "plan/candidates.h"

#include <stdio.h>
#include <string.h>

/* Turns are taken where they are now, or elsewhere if that is no longer possible; or not at all. */
static unsigned root_now(void *context, const struct plan_wish *wish,
                         const struct node *const *nodes, unsigned n)
{
	char address[TREE_NAME_MAX];
	unsigned at = 0;

	(void)wish;
	if (!plan_shared(context, address))
		return n;
	while (at < n && strcmp(nodes[at]->report.address, address) != 0)
		at++;
	return at < n ? at : 0;
}

static struct planner planner_of(const struct mover *mover, const struct moving *moving,
                                 bool strict, struct plan_verdict *verdict)
{
	return (struct planner){ .nodes = mover->nodes,
		                 .limits = mover->limits,
		                 .now = mover->now,
		                 .verdict = verdict,
		                 .root = root_now,
		                 .context = (void *)moving->plan,
		                 .strict = strict,
		                 .children = mover->children,
		                 .trees = mover->trees };
}

/* The plan that would be made now, and its rate; 0: there is none. */
static double plan_now(const struct mover *mover, const struct moving *moving,
                       const struct plan_wish *asked, bool strict, char plan[PLAN_TEXT_MAX])
{
	struct plan_verdict verdict;
	const struct planner planner = planner_of(mover, moving, strict, &verdict);
	struct plan_wish wish = *asked;

	wish.broken = "";
	return planner_plan(&planner, &wish, plan) == TRIB_OK ? verdict.rate_bps : 0;
}

/* What would be planned without the node; 0: there is nothing. */
static double rate_without(const struct mover *mover, const struct moving *moving,
                           const struct node *node, bool strict)
{
	char plan[PLAN_TEXT_MAX];
	double rate = plan_now(mover, moving, &moving->wish, strict, plan);

	return rate > 0 && !plan_has(plan, node->report.address) ? rate : 0;
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

/* Machines of the plan at which no rank runs. */
static unsigned servers_of(const struct mover *mover, const struct moving *moving, const char *plan)
{
	unsigned n = 0;

	for (unsigned i = 0; i < mover->nodes->n; i++) {
		const struct node *node = mover->nodes->all[i];

		n += plan_has(plan, node->report.address) && !planner_is_ranks(&moving->wish, node);
	}
	return n;
}

int mover_side(const struct mover *mover, double share)
{
	if (share < 0)
		return 0;
	return share < mover->exit_below ? -1 : share > MOVE_BACK * mover->exit_below ? 1 : 0;
}

static enum move weigh_exit(const struct mover *mover, const struct moving *moving,
                            char why[MOVE_WHY])
{
	struct plan_wish wish = moving->wish;
	struct candidates_round then;
	char plan[PLAN_TEXT_MAX];
	double rate;

	wish.frugal = true;
	rate = plan_now(mover, moving, &wish, true, plan);
	if (!(rate > 0) ||
	    servers_of(mover, moving, plan) >= servers_of(mover, moving, moving->plan))
		return MOVE_NOT; /* nothing would be given up */
	then = (struct candidates_round){ .training_s = 1 - moving->share,
		                          .transmission_s =
		                                  moving->share * moving->rate_bps / rate };
	if (candidates_worth(&then, 1, mover->exit_below))
		return MOVE_NOT;
	snprintf(
		why, MOVE_WHY,
		"communication takes %.1f %% of the step, and %.1f %% without other machines: they "
		"are not worth their use",
		moving->share * 100,
		100 * then.transmission_s / (then.training_s + then.transmission_s));
	return MOVE_LEAVES;
}

enum move mover_weigh(const struct mover *mover, const struct moving *moving, char why[MOVE_WHY])
{
	int side = mover_side(mover, moving->share);

	why[0] = '\0';
	if (!(mover->exit_below > 0) || !side || !moving->since ||
	    mover->now < moving->since + MOVE_REST || mover->now < moving->made_at + MOVE_REST)
		return MOVE_NOT;
	if (!moving->wish.frugal && side < 0 && !moving->has_tried && moving->rate_bps > 0)
		return weigh_exit(mover, moving, why);
	if (!moving->wish.frugal || side < 0)
		return MOVE_NOT;
	snprintf(why, MOVE_WHY,
	         "communication takes %.1f %% of the step without other machines: they are worth "
	         "their use",
	         moving->share * 100);
	return MOVE_LEAVES;
}

double mover_rate(const struct mover *mover, const struct moving *moving)
{
	const struct planner planner = planner_of(mover, moving, true, NULL);
	struct plan_wish wish = moving->wish;

	wish.broken = "";
	return planner_rate(&planner, &wish, moving->plan);
}

enum move mover_reckon(const struct mover *mover, const struct moving *moving, char why[MOVE_WHY])
{
	char plan[PLAN_TEXT_MAX];
	double here, there;

	why[0] = '\0';
	if (!moving->links_at || !moving->made_at || mover->now < moving->links_at + MOVE_LASTED ||
	    mover->now < moving->made_at + MOVE_REST)
		return MOVE_NOT;
	here = mover_rate(mover, moving);
	there = plan_now(mover, moving, &moving->wish, true, plan);
	if (!(here > 0) || there < MOVE_GAIN * here)
		return MOVE_STAYS;
	snprintf(why, MOVE_WHY,
	         "the ranks' links carry other than was planned with: %.0f Mb/s in these trees, "
	         "%.0f in others",
	         here / 1e6, there / 1e6);
	return MOVE_LEAVES;
}
