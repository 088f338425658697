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

#define TRIAL_NS 1500000000ull        /* a node that was told to is at it so long at most */
#define PAUSE_NS 300000000ull         /* from one trial to the next, for every eight nodes */
#define WORKED_NS (2 * 1000000000ull) /* since ranks were last heard of: they are at work */
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

/* Who looks for somebody to be tried with. */
struct search {
	const struct controller *controller;
	const struct node *node;
	uint64_t now;
};

static bool is_free(void *context, const struct node *other)
{
	const struct search *search = context;

	return node_state(other, search->now, &search->controller->limits) <= NODE_DRAINED &&
	       !is_at_it(other, search->now) &&
	       (search->node->link_doubted || !is_at_work(other, search->now));
}

static bool is_there(void *context, const struct node *other)
{
	const struct search *search = context;

	return node_state(other, search->now, &search->controller->limits) <= NODE_DRAINED;
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

	if (node->out_bps > 0 || node->in_bps > 0)
		log_notice("the link of node %s (%s) carries %.0f Mb/s out and %.0f in, not the "
		           "%.0f that it is planned with: plans count on that from now on",
		           report->address, report->name,
		           (node->out_bps > 0 ? node->out_bps : claimed) / 1e6,
		           (node->in_bps > 0 ? node->in_bps : claimed) / 1e6, claimed / 1e6);
	else
		log_notice("the link of node %s (%s) carries what it claims again", report->address,
		           report->name);
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

/* A node that has been tried with all who are there, or often enough. */
static void settle(struct controller *controller, struct node *node, double guess, uint64_t now)
{
	double out_bps, in_bps;

	node->link_doubted = false;
	links_judge(&controller->nodes, node, guess, &out_bps, &in_bps);
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

void gauging_doubt_plan(struct controller *controller, const char *plan, uint64_t now)
{
	struct node *node;

	while ((node = plan_node(&controller->nodes, &plan)))
		doubt(node, now);
}

/* ---- what is to be tried ---- */

/* Both are told apart by nobody else while they are at it. */
static json_t *begin(struct controller *controller, struct node *node, struct node *other,
                     double guess, uint64_t now)
{
	const char *where;
	int length = (int)node_where(other, &where);

	node->gauged_at = other->gauged_at = now;
	controller->gauge_at = now + PAUSE_NS / (1 + controller->nodes.n / 8);
	return json_pack("{s:s, s:o, s:I}", "with", other->report.address, "at",
	                 json_sprintf(memchr(where, ':', (size_t)length) ? "[%.*s]:%u" : "%.*s:%u",
	                              length, where, other->report.gauge_port),
	                 "enough_bps", (json_int_t)links_enough(node, other, guess));
}

json_t *gauging_for(struct controller *controller, struct node *node, uint64_t now)
{
	struct search search = { controller, node, now };
	double guess = planner_guess(&controller->nodes);
	const struct node *other;

	if (!controller->gauges || !node->report.gauge_port || is_at_it(node, now))
		return NULL;
	if (!node->link_doubted && is_to_be_mended(node, now))
		doubt(node, now);
	if (links_settled(node, guess) ||
	    !links_partner(&controller->nodes, node, is_there, &search)) {
		settle(controller, node, guess, now);
		return NULL;
	}
	if (now < controller->gauge_at || (!node->link_doubted && is_at_work(node, now)))
		return NULL;
	other = links_partner(&controller->nodes, node, is_free, &search);
	return other ? begin(controller, node,
	                     nodes_find(&controller->nodes, other->report.address), guess, now)
	             : NULL;
}
