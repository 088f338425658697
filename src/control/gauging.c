/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes try their links with each other, and when: those of which nothing is known, while no
 * job is at work there; and those of a job that is slower than its plan, at once. Agents are told
 * with the answers to their beats, and say with the next ones what they saw.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/links.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TRIAL_NS 1500000000ull /* a node that was told to is at it so long at most */
#define PAUSE_NS 300000000ull  /* from one trial to the next, */
#define NODES_EACH 8u          /* for so many nodes, */
#define AT_ONCE_MAX 32u        /* but so many at once at most */
#define SEARCH_NS 100000000ull /* in vain, no sooner again, */
#define SEARCH_EACH 32u        /* for every so many nodes */
#define GUESS_NS 1000000000ull
#define AWAITED_NS (3 * 1000000000ull) /* from joining on: a job's first plan waits for trials */
#define WORKED_NS (2 * 1000000000ull)  /* since ranks were last heard of: they are at work */
/* A link that is slow may have been mended: after as long again, but within these. */
#define AGAIN_LEAST (10 * 1000000000ull)
#define AGAIN_MOST (600 * 1000000000ull)
#define CHANGED 0.1 /* part by which a rate is another one */

static bool is_at_work(const struct node *node, uint64_t now)
{
	return json_array_size(node->detail) ||
	       (node->worked_at && now < node->worked_at + WORKED_NS);
}

static bool is_at_it(const struct node *node, uint64_t now)
{
	return node->gauged_at && now < node->gauged_at + TRIAL_NS &&
	       !(node->n_ways && node->ways[0].at > node->gauged_at);
}

static bool is_there(const struct controller *controller, const struct node *node, uint64_t now)
{
	return node_state(node, now, &controller->limits) <= NODE_DRAINED;
}

/* Who looks for somebody to be tried with. */
struct search {
	const struct controller *controller;
	uint64_t now;
	bool disturbs; /* ranks that are at work */
};

static bool is_free(void *context, const struct node *other)
{
	const struct search *search = context;

	return is_there(search->controller, other, search->now) && !is_at_it(other, search->now) &&
	       (search->disturbs || !is_at_work(other, search->now));
}

/* Somebody who is there, if not free; `idle`: and is not at work. */
static bool has_partner(const struct controller *controller, const struct node *node, bool idle,
                        double guess, uint64_t now)
{
	const struct nodes *nodes = &controller->nodes;

	for (unsigned i = 0; i < nodes->n; i++)
		if (links_may_try(nodes, node, nodes->all[i], guess) &&
		    is_there(controller, nodes->all[i], now) &&
		    !(idle && is_at_work(nodes->all[i], now)))
			return true;
	return false;
}

/* What a link is taken for that claims nothing; not looked for at each beat of each node. */
static double guess_of(struct controller *controller, uint64_t now)
{
	if (!controller->guess_at || now >= controller->guess_at + GUESS_NS) {
		controller->guess_bps = planner_guess(&controller->nodes);
		controller->guess_at = now;
	}
	return controller->guess_bps;
}

/* ---- what is known ---- */

static bool has_changed(double before, double after)
{
	return fabs(after - before) > CHANGED * fmax(before, after);
}

static void tell(const struct node *node, double guess)
{
	const struct node_report *report = &node->report;
	double claimed = report->link_bps ? (double)report->link_bps : guess;

	if (node->slow_since)
		log_notice("the link of node %s (%s) carries %.0f Mb/s out and %.0f in, not the "
		           "%.0f that it is planned with: plans count on that from now on",
		           report->address, report->name,
		           (node->out_bps > 0 ? node->out_bps : claimed) / 1e6,
		           (node->in_bps > 0 ? node->in_bps : claimed) / 1e6, claimed / 1e6);
	else
		log_notice("the link of node %s (%s) carries what it claims again", report->address,
		           report->name);
}

/* Once, and again only when one has succeeded meanwhile. */
static void tell_failed(struct node *node)
{
	if (links_failed(node) && !node->trials_failed)
		log_notice("what the link of node %s (%s) carries is not known, for no trial with "
		           "another one has succeeded (the last was with %s): plans count on what "
		           "it claims",
		           node->report.address, node->report.name, node->ways[0].with);
	node->trials_failed = links_failed(node);
}

/* Plans that were made with other rates are looked at. */
static void reckon_all(struct controller *controller, uint64_t now)
{
	for (unsigned id = 0; id < JOBS_MAX; id++)
		for (struct gathering_entry *at =
		             controller->jobs[id] ? controller->jobs[id]->gatherings : NULL;
		     at; at = at->next)
			at->words.links_at = now;
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
	reckon_all(controller, now);
}

/* What there is to be known by now; what is not, stays as it was. */
static double judge(struct controller *controller, const struct node *node, double guess,
                    bool outward)
{
	double bps, before = outward ? node->out_bps : node->in_bps;

	switch (links_judge(&controller->nodes, node, guess, outward, &bps)) {
	case LINK_AS_CLAIMED:
		return 0;
	case LINK_SLOW:
		return bps;
	default:
		return before > 0 ? fmax(before, bps) : 0;
	}
}

/* A node that has been tried with all who are there, or often enough. */
static void settle(struct controller *controller, struct node *node, double guess, uint64_t now)
{
	node->link_doubted = false;
	tell_failed(node);
	take_rates(controller, node, judge(controller, node, guess, true),
	           judge(controller, node, guess, false), guess, now);
}

/* Another rate is claimed: that is another link, of which nothing is known. */
static void look_at_claim(struct controller *controller, struct node *node, uint64_t now)
{
	if (node->link_claim == node->report.link_bps)
		return;
	if (node->link_claim) {
		node->out_bps = node->in_bps = 0;
		node->slow_since = 0;
		node->link_since = now;
		reckon_all(controller, now);
	}
	node->link_claim = node->report.link_bps;
}

/* What is known of it is to be found out again, also where ranks are at work. */
static void doubt(struct node *node, uint64_t now)
{
	node->link_since = now;
	node->link_doubted = true;
}

static bool is_to_be_mended(const struct node *node, uint64_t now)
{
	uint64_t again = clock_since(node->gauged_at, node->slow_since);

	again = again < AGAIN_LEAST ? AGAIN_LEAST : again > AGAIN_MOST ? AGAIN_MOST : again;
	return node->slow_since && now > node->gauged_at + again;
}

void gauging_doubt_plan(struct controller *controller, const struct gathering *gathering,
                        uint64_t now)
{
	const char *plan = gathering->plan;
	struct node *node;

	while ((node = plan_node(&controller->nodes, &plan)))
		doubt(node, now);
	for (uint64_t seats = gathering->members; seats; seats &= seats - 1) {
		const struct seat *seat = &gathering->seats[__builtin_ctzll(seats)];
		unsigned n, first = nodes_at(&controller->nodes, seat->where, &n);

		for (unsigned i = first; i < first + n; i++)
			doubt(controller->nodes.all[i], now);
	}
}

/* ---- what is to be tried ---- */

/* Also what the agent is to forget: a controller that starts again does not know any more. */
static json_t *begin(struct node *node, struct node *other, double guess, uint64_t now)
{
	const char *where;
	int length = (int)node_where(other, &where);
	json_t *order =
		json_pack("{s:s, s:o, s:I}", "with", other->report.address, "at",
	                  json_sprintf(memchr(where, ':', (size_t)length) ? "[%.*s]:%u" : "%.*s:%u",
	                               length, where, other->report.gauge_port),
	                  "enough_bps", (json_int_t)links_enough(node, other, guess));

	node->gauged_at = other->gauged_at = now; /* nobody else has them meanwhile */
	if (node->link_since)
		json_object_set_new(order, "forget_s",
		                    json_real((double)clock_since(now, node->link_since) / 1e9));
	return order;
}

/* Looking for nobody takes a while where there are many nodes. */
static struct node *find_partner(struct controller *controller, struct node *node, double guess,
                                 uint64_t now)
{
	struct search search = { controller, now, false };
	const struct node *other = NULL;

	if (now < node->searched_at + SEARCH_NS * (1 + controller->nodes.n / SEARCH_EACH))
		return NULL;
	other = links_partner(&controller->nodes, node, guess, is_free, &search);
	if (!other && node->link_doubted) {
		search.disturbs = true;
		other = links_partner(&controller->nodes, node, guess, is_free, &search);
	}
	node->searched_at = other ? 0 : now;
	return other ? nodes_find(&controller->nodes, other->report.address) : NULL;
}

bool gauging_awaited(struct controller *controller, uint64_t now)
{
	double guess = guess_of(controller, now);

	if (!controller->gauges)
		return false;
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		const struct node *node = controller->nodes.all[i];

		if (node->joined_at && now < node->joined_at + AWAITED_NS &&
		    node->report.gauge_port && is_there(controller, node, now) &&
		    !is_at_work(node, now) && !links_settled(&controller->nodes, node, guess) &&
		    has_partner(controller, node, true, guess, now))
			return true;
	}
	return false;
}

json_t *gauging_for(struct controller *controller, struct node *node, uint64_t now)
{
	unsigned at_once = 1 + controller->nodes.n / NODES_EACH;
	double guess = guess_of(controller, now);
	struct node *other;

	if (!controller->gauges || !node->report.gauge_port)
		return NULL;
	look_at_claim(controller, node, now);
	if (is_at_it(node, now))
		return NULL;
	if (!node->link_doubted && is_to_be_mended(node, now))
		doubt(node, now);
	if (links_settled(&controller->nodes, node, guess) ||
	    !has_partner(controller, node, false, guess, now)) {
		settle(controller, node, guess, now);
		return NULL;
	}
	if (now < controller->gauge_at || (!node->link_doubted && is_at_work(node, now)))
		return NULL;
	other = find_partner(controller, node, guess, now);
	if (!other)
		return NULL;
	controller->gauge_at = now + PAUSE_NS / (at_once < AT_ONCE_MAX ? at_once : AT_ONCE_MAX);
	return begin(node, other, guess, now);
}
