/* SPDX-License-Identifier: Apache-2.0 */
#include "control/telemetry/probe_scheduler.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/policy/link_estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINK_PROBE_NS 1500000000ull /* 1.5 s: longest time of a probe */
#define PAUSE_NS 300000000ull       /* 0.3 s between two probes, with up to NODES_EACH nodes */
#define NODES_EACH 8u          /* nodes: for each 8 of them, one more probe starts per PAUSE_NS */
#define AT_ONCE_MAX 32u        /* probes per PAUSE_NS at most */
#define SEARCH_NS 100000000ull /* 0.1 s: pause after a search without result */
#define SEARCH_EACH 32u        /* nodes: for each 32 of them, that pause grows by SEARCH_NS */
#define GUESS_NS 1000000000ull
/* 3 s after a node joined, a first plan waits for its probes */
#define AWAITED_NS (3 * 1000000000ull)
/* 2 s after their last sign of life ranks count as active */
#define WORKED_NS (2 * 1000000000ull)
/* A slow link is probed again after as long as it has been slow, within these limits. */
#define AGAIN_LEAST (10 * 1000000000ull)
#define AGAIN_MOST (600 * 1000000000ull)
#define CHANGED 0.1 /* relative difference that counts as a change */

static bool is_active(const struct node *node, uint64_t now)
{
	return json_array_size(node->detail) ||
	       (node->worked_at && now < node->worked_at + WORKED_NS);
}

static bool is_probing(const struct node *node, uint64_t now)
{
	return node->link_probed_at && now < node->link_probed_at + LINK_PROBE_NS &&
	       !(node->n_samples && node->samples[0].at > node->link_probed_at);
}

static bool is_alive(const struct controller *controller, const struct node *node, uint64_t now)
{
	return node_state(node, now, &controller->limits) <= NODE_DRAINED;
}

/* A search for a partner. */
struct search {
	const struct controller *controller;
	uint64_t now;
	bool disturbs; /* active ranks may be disturbed */
};

static bool is_free(void *context, const struct node *other)
{
	const struct search *search = context;

	return is_alive(search->controller, other, search->now) &&
	       !is_probing(other, search->now) &&
	       (search->disturbs || !is_active(other, search->now));
}

/* Is there a live partner, even if it is not free now? `idle`: without active ranks. */
static bool has_partner(const struct controller *controller, const struct node *node, bool idle,
                        double guess, uint64_t now)
{
	const struct nodes *nodes = &controller->nodes;

	for (unsigned i = 0; i < nodes->n; i++)
		if (link_estimate_may_probe(nodes, node, nodes->all[i], guess) &&
		    is_alive(controller, nodes->all[i], now) &&
		    !(idle && is_active(nodes->all[i], now)))
			return true;
	return false;
}

/* The rate assumed for a link that claims none; cached for GUESS_NS. */
static double guess_of(struct controller *controller, uint64_t now)
{
	if (!controller->guess_at || now >= controller->guess_at + GUESS_NS) {
		controller->guess_bps = planner_guess(&controller->nodes);
		controller->guess_at = now;
	}
	return controller->guess_bps;
}

/* ---- results ---- */

static bool has_changed(double before, double after)
{
	return fabs(after - before) > CHANGED * fmax(before, after);
}

static void tell(const struct node *node, double guess)
{
	const struct node_report *report = &node->report;
	double claimed = report->link_bps ? (double)report->link_bps : guess;

	if (node->slow_since)
		log_notice("the link of node %s (%s) carries %.0f Mb/s out and %.0f Mb/s in, not "
		           "%.0f Mb/s: plans use the measured rates from now on",
		           report->address, report->name,
		           (node->out_bps > 0 ? node->out_bps : claimed) / 1e6,
		           (node->in_bps > 0 ? node->in_bps : claimed) / 1e6, claimed / 1e6);
	else
		log_notice("the link of node %s (%s) carries its claimed rate again",
		           report->address, report->name);
}

/* Logged once, until a probe has succeeded. */
static void tell_failed(struct node *node)
{
	if (link_estimate_failed(node) && !node->trials_failed)
		log_notice("the link of node %s (%s) could not be measured: all probes failed (the "
		           "last one with %s). Plans use its claimed rate",
		           node->report.address, node->report.name, node->samples[0].with);
	node->trials_failed = link_estimate_failed(node);
}

/* All running plans are judged again with the new rates. */
static void judge_all_plans(struct controller *controller, uint64_t now)
{
	for (unsigned id = 0; id < JOBS_MAX; id++)
		for (struct membership_entry *at =
		             controller->jobs[id] ? controller->jobs[id]->memberships : NULL;
		     at; at = at->next)
			at->telemetry.links_changed_at = now;
}

static void take_rates(struct controller *controller, struct node *node, double out_bps,
                       double in_bps, double guess, uint64_t now)
{
	if (!has_changed(node->out_bps, out_bps) && !has_changed(node->in_bps, in_bps))
		return;
	node->out_bps = out_bps;
	node->in_bps = in_bps;
	if (!(out_bps > 0 || in_bps > 0))
		node->slow_since = 0;
	else if (!node->slow_since)
		node->slow_since = now;
	tell(node, guess);
	judge_all_plans(controller, now);
}

/* The estimate of one direction; if unknown, the old one is kept. */
static double judge(struct controller *controller, const struct node *node, double guess,
                    bool outward)
{
	double bps, before = outward ? node->out_bps : node->in_bps;

	switch (link_estimate_judge(&controller->nodes, node, guess, outward, &bps)) {
	case LINK_AS_CLAIMED:
		return 0;
	case LINK_SLOW:
		return bps;
	default:
		return before > 0 ? fmax(before, bps) : 0;
	}
}

/* All useful probes of the node are done. */
static void settle(struct controller *controller, struct node *node, double guess, uint64_t now)
{
	node->link_suspected = false;
	tell_failed(node);
	take_rates(controller, node, judge(controller, node, guess, true),
	           judge(controller, node, guess, false), guess, now);
}

/* A new claimed rate means a new link: old results are void. */
static void take_claim(struct controller *controller, struct node *node, uint64_t now)
{
	if (node->link_claim == node->report.link_bps)
		return;
	if (node->link_claim) {
		node->out_bps = node->in_bps = 0;
		node->slow_since = 0;
		node->link_since = now;
		judge_all_plans(controller, now);
	}
	node->link_claim = node->report.link_bps;
}

/* Voids the results, and allows probes even while ranks are active. */
static void recheck(struct node *node, uint64_t now)
{
	node->link_since = now;
	node->link_suspected = true;
}

static bool is_recheck_due(const struct node *node, uint64_t now)
{
	uint64_t again = clock_since(node->link_probed_at, node->slow_since);

	again = again < AGAIN_LEAST ? AGAIN_LEAST : again > AGAIN_MOST ? AGAIN_MOST : again;
	return node->slow_since && now > node->link_probed_at + again;
}

void probe_scheduler_recheck_plan(struct controller *controller,
                                  const struct membership *membership, uint64_t now)
{
	const char *plan = membership->plan;
	struct node *node;

	while ((node = plan_node(&controller->nodes, &plan)))
		recheck(node, now);
	for (uint64_t seats = membership->members; seats; seats &= seats - 1) {
		const struct seat *seat = &membership->seats[__builtin_ctzll(seats)];
		unsigned n, first = nodes_at(&controller->nodes, seat->where, &n);

		for (unsigned i = first; i < first + n; i++)
			recheck(controller->nodes.all[i], now);
	}
}

/* ---- orders ---- */

/* "forget_s": the agent drops older samples, so a restarted controller does not see them. */
static json_t *begin(struct node *node, struct node *other, double guess, uint64_t now)
{
	const char *where;
	int length = (int)node_where(other, &where);
	json_t *order =
		json_pack("{s:s, s:o, s:I}", "with", other->report.address, "at",
	                  json_sprintf(memchr(where, ':', (size_t)length) ? "[%.*s]:%u" : "%.*s:%u",
	                               length, where, other->report.probe_port),
	                  "enough_bps", (json_int_t)link_estimate_enough(node, other, guess));

	node->link_probed_at = other->link_probed_at = now; /* both are busy now */
	if (node->link_since)
		json_object_set_new(order, "forget_s",
		                    json_real((double)clock_since(now, node->link_since) / 1e9));
	return order;
}

/* A search takes long if there are many nodes, so failed ones are spaced out. */
static struct node *find_partner(struct controller *controller, struct node *node, double guess,
                                 uint64_t now)
{
	struct search search = { controller, now, false };
	const struct node *other = NULL;

	if (now < node->searched_at + SEARCH_NS * (1 + controller->nodes.n / SEARCH_EACH))
		return NULL;
	other = link_estimate_partner(&controller->nodes, node, guess, is_free, &search);
	if (!other && node->link_suspected) {
		search.disturbs = true;
		other = link_estimate_partner(&controller->nodes, node, guess, is_free, &search);
	}
	node->searched_at = other ? 0 : now;
	return other ? nodes_find(&controller->nodes, other->report.address) : NULL;
}

bool probe_scheduler_awaited(struct controller *controller, uint64_t now)
{
	double guess = guess_of(controller, now);

	if (!controller->probes_links)
		return false;
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		const struct node *node = controller->nodes.all[i];

		if (node->joined_at && now < node->joined_at + AWAITED_NS &&
		    node->report.probe_port && is_alive(controller, node, now) &&
		    !is_active(node, now) &&
		    !link_estimate_settled(&controller->nodes, node, guess) &&
		    has_partner(controller, node, true, guess, now))
			return true;
	}
	return false;
}

json_t *probe_scheduler_for_node(struct controller *controller, struct node *node, uint64_t now)
{
	unsigned at_once = 1 + controller->nodes.n / NODES_EACH;
	double guess = guess_of(controller, now);
	struct node *other;

	if (!controller->probes_links || !node->report.probe_port)
		return NULL;
	take_claim(controller, node, now);
	if (is_probing(node, now))
		return NULL;
	if (!node->link_suspected && is_recheck_due(node, now))
		recheck(node, now);
	if (link_estimate_settled(&controller->nodes, node, guess) ||
	    !has_partner(controller, node, false, guess, now)) {
		settle(controller, node, guess, now);
		return NULL;
	}
	if (now < controller->next_probe_at || (!node->link_suspected && is_active(node, now)))
		return NULL;
	other = find_partner(controller, node, guess, now);
	if (!other)
		return NULL;
	controller->next_probe_at =
		now + PAUSE_NS / (at_once < AT_ONCE_MAX ? at_once : AT_ONCE_MAX);
	return begin(node, other, guess, now);
}
