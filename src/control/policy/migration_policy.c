/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/migration_policy.h"

#include "plan/cluster/candidates.h"

#include <stdio.h>
#include <string.h>

/* Keeps the shared star where it is, if possible. A plan without a star gets none. */
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

static struct planner planner_of(const struct migration_policy *policy,
                                 const struct running_plan *running, bool strict,
                                 struct plan_verdict *verdict)
{
	return (struct planner){ .nodes = policy->nodes,
		                 .limits = policy->limits,
		                 .now = policy->now,
		                 .verdict = verdict,
		                 .root = root_now,
		                 .context = (void *)running->plan,
		                 .strict = strict,
		                 .children = policy->children,
		                 .trees = policy->trees };
}

/* The plan that would be made now; returns its rate; 0: there is none. */
static double plan_now(const struct migration_policy *policy, const struct running_plan *running,
                       const struct plan_wish *asked, bool strict, char plan[PLAN_TEXT_MAX])
{
	struct plan_verdict verdict;
	const struct planner planner = planner_of(policy, running, strict, &verdict);
	struct plan_wish wish = *asked;

	wish.broken = "";
	return planner_plan(&planner, &wish, plan) == TRIB_OK ? verdict.rate_bps : 0;
}

/* The rate of a plan without the node; 0: there is none. */
static double rate_without(const struct migration_policy *policy,
                           const struct running_plan *running, const struct node *node, bool strict)
{
	char plan[PLAN_TEXT_MAX];
	double rate = plan_now(policy, running, &running->wish, strict, plan);

	return rate > 0 && !plan_has(plan, node->report.address) ? rate : 0;
}

/* An operator wants the machine back: any plan without it is good enough. */
static enum migration_decision judge_drained(const struct migration_policy *policy,
                                             const struct running_plan *running,
                                             const struct node *node, char why[MIGRATION_WHY_MAX])
{
	bool can = rate_without(policy, running, node, false) > 0;

	snprintf(why, MIGRATION_WHY_MAX,
	         can ? "it was drained" : "it was drained, but no other aggregator is available");
	return can ? MIGRATION_LEAVE : MIGRATION_STAY;
}

static enum migration_decision judge_loaded(const struct migration_policy *policy,
                                            const struct running_plan *running,
                                            const struct node *node, char why[MIGRATION_WHY_MAX])
{
	char load[80];
	double without;

	if (!node->loaded_since || policy->now < node->loaded_since + MIGRATION_LASTED_NS ||
	    policy->now < running->made_at + MIGRATION_REST_NS)
		return MIGRATION_NONE;
	node_load_text(node, policy->limits, load, sizeof(load));
	without = rate_without(policy, running, node, true);
	if (without > 0 &&
	    without >= MIGRATION_GAIN_MIN * MIGRATION_LOADED_RATE * running->rate_bps) {
		snprintf(why, MIGRATION_WHY_MAX, "overloaded, %s", load);
		return MIGRATION_LEAVE;
	}
	snprintf(why, MIGRATION_WHY_MAX,
	         without > 0 ? "overloaded, %s, but a plan without it would be slower"
	                     : "overloaded, %s, but no other aggregator is free",
	         load);
	return MIGRATION_STAY;
}

enum migration_decision migration_judge_node(const struct migration_policy *policy,
                                             const struct running_plan *running,
                                             const struct node *node, char why[MIGRATION_WHY_MAX])
{
	enum node_state state = node_state(node, policy->now, policy->limits);

	why[0] = '\0';
	if (!plan_has(running->plan, node->report.address))
		return MIGRATION_NONE;
	if (state == NODE_DRAINED)
		return judge_drained(policy, running, node, why);
	return state == NODE_LOADED ? judge_loaded(policy, running, node, why) : MIGRATION_NONE;
}

/* Counts machines of the plan on which no rank runs. */
static unsigned servers_of(const struct migration_policy *policy,
                           const struct running_plan *running, const char *plan)
{
	unsigned n = 0;

	for (unsigned i = 0; i < policy->nodes->n; i++) {
		const struct node *node = policy->nodes->all[i];

		n += plan_has(plan, node->report.address) &&
		     !planner_is_ranks(&running->wish, node);
	}
	return n;
}

int migration_side(double exit_below, double share)
{
	if (share < 0)
		return 0;
	return share < exit_below ? -1 : share > MIGRATION_BACK_FACTOR * exit_below ? 1 : 0;
}

static enum migration_decision weigh_exit(const struct migration_policy *policy,
                                          const struct running_plan *running,
                                          char why[MIGRATION_WHY_MAX])
{
	struct plan_wish wish = running->wish;
	struct candidates_round then;
	char plan[PLAN_TEXT_MAX];
	double rate;

	wish.frugal = true;
	rate = plan_now(policy, running, &wish, true, plan);
	if (!(rate > 0) ||
	    servers_of(policy, running, plan) >= servers_of(policy, running, running->plan))
		return MIGRATION_NONE; /* no server would be given up */
	then = (struct candidates_round){ .training_s = 1 - running->share,
		                          .transmission_s =
		                                  running->share * running->rate_bps / rate };
	if (candidates_worth(&then, 1, policy->exit_below))
		return MIGRATION_NONE;
	snprintf(why, MIGRATION_WHY_MAX,
	         "communication takes %.1f %% of a step, and %.1f %% without servers: servers are "
	         "not worth their use",
	         running->share * 100,
	         100 * then.transmission_s / (then.training_s + then.transmission_s));
	return MIGRATION_LEAVE;
}

enum migration_decision migration_judge_servers(const struct migration_policy *policy,
                                                const struct running_plan *running,
                                                char why[MIGRATION_WHY_MAX])
{
	int side = migration_side(policy->exit_below, running->share);

	why[0] = '\0';
	if (!(policy->exit_below > 0) || !side || !running->since ||
	    policy->now < running->since + MIGRATION_REST_NS ||
	    policy->now < running->made_at + MIGRATION_REST_NS)
		return MIGRATION_NONE;
	if (!running->wish.frugal && side < 0 && !running->tried_frugal && running->rate_bps > 0)
		return weigh_exit(policy, running, why);
	if (!running->wish.frugal || side < 0)
		return MIGRATION_NONE;
	snprintf(why, MIGRATION_WHY_MAX,
	         "communication takes %.1f %% of a step without servers: servers are worth their "
	         "use",
	         running->share * 100);
	return MIGRATION_LEAVE;
}

double migration_rate(const struct migration_policy *policy, const struct running_plan *running)
{
	const struct planner planner = planner_of(policy, running, true, NULL);
	struct plan_wish wish = running->wish;

	wish.broken = "";
	return planner_rate(&planner, &wish, running->plan);
}

enum migration_decision migration_judge_links(const struct migration_policy *policy,
                                              const struct running_plan *running,
                                              char why[MIGRATION_WHY_MAX])
{
	char plan[PLAN_TEXT_MAX];
	double here, there;

	why[0] = '\0';
	if (!running->links_changed_at || !running->made_at ||
	    policy->now < running->links_changed_at + MIGRATION_LASTED_NS ||
	    policy->now < running->made_at + MIGRATION_REST_NS)
		return MIGRATION_NONE;
	here = migration_rate(policy, running);
	there = plan_now(policy, running, &running->wish, true, plan);
	if (!(here > 0) || there < MIGRATION_GAIN_MIN * here)
		return MIGRATION_STAY;
	snprintf(why, MIGRATION_WHY_MAX,
	         "measured link rates differ from the plan: %.0f Mb/s with its trees, %.0f Mb/s "
	         "with others",
	         here / 1e6, there / 1e6);
	return MIGRATION_LEAVE;
}
