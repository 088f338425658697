/* SPDX-License-Identifier: Apache-2.0 */
#include "control/sharing/star_choice.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/policy/star_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REST (3 * NSEC_PER_SEC) /* 3 s: a new plan is left alone */
#define SHARE_UNKNOWN 0.3       /* share of a step, until ranks report theirs */
#define SHARE_LEAST 0.01
/* Seconds: a job is expected to run as long again as it has, but at least this. */
#define AGE_LEAST 10.0
#define MIGRATION_S 0.2 /* seconds that a migration takes */

/* A communicator that takes turns, or will. */
struct party {
	struct star_policy_job job;
	const struct membership_entry *entry;
};

static struct star_policy_job job_of(const struct controller *controller,
                                     const struct membership_entry *entry, uint64_t now)
{
	const struct job_entry *job = controller->jobs[entry->membership.job];
	double share = entry->telemetry.share,
	       age = job ? (double)(time(NULL) - job->job.made_at) : 0;

	if (share < 0)
		share = SHARE_UNKNOWN;
	if (share < SHARE_LEAST)
		share = SHARE_LEAST;
	return (struct star_policy_job){ .rack = entry->has_rack ? entry->rack : NULL,
		                         .root = STAR_POLICY_NONE,
		                         .stays = !entry->planned_at ||
		                                  now < entry->planned_at + REST,
		                         .worth = share * (age > AGE_LEAST ? age : AGE_LEAST),
		                         .migration_s = MIGRATION_S,
		                         .demand = share };
}

static const struct membership_entry *entry_of(const struct controller *controller,
                                               const struct sharer *sharer)
{
	const struct job_entry *job = controller->jobs[sharer->job];

	for (const struct membership_entry *at = job ? job->memberships : NULL; at; at = at->next)
		if (at->membership.key == sharer->key &&
		    at->membership.generation == sharer->generation)
			return at;
	return NULL;
}

static unsigned parties_most(const struct controller *controller)
{
	unsigned n = 1;

	for (const struct sharing_group *group = controller->groups; group; group = group->next)
		for (const struct turns_share *at = group->turns.shares; at; at = at->next)
			n++;
	return n;
}

static int party_order(const void *a, const void *b)
{
	const struct membership_entry *x = ((const struct party *)a)->entry,
				      *y = ((const struct party *)b)->entry;

	if (x->planned_at != y->planned_at)
		return x->planned_at < y->planned_at ? -1 : 1;
	return (int)x->membership.job - (int)y->membership.job;
}

static uint32_t site_of(const struct node *const *nodes, unsigned n, const char *address)
{
	uint32_t site = 0;

	while (site < n && strcmp(nodes[site]->report.address, address) != 0)
		site++;
	return site;
}

/* All communicators that take turns at these aggregators, the oldest first; without `but`. */
static unsigned parties_find(const struct controller *controller, const struct node *const *nodes,
                             unsigned n, const struct membership_entry *but, uint64_t now,
                             struct party *parties)
{
	unsigned found = 0;

	for (const struct sharing_group *group = controller->groups; group; group = group->next)
		for (const struct turns_share *at = group->turns.shares; at; at = at->next) {
			const struct sharer *sharer = (const struct sharer *)at;
			const struct membership_entry *entry = entry_of(controller, sharer);
			/* One that migrates counts at its target. */
			uint32_t site =
				site_of(nodes, n, *sharer->to ? sharer->to : group->address);

			if (at->lost || !entry || entry == but || site == n)
				continue;
			parties[found] = (struct party){ job_of(controller, entry, now), entry };
			parties[found].job.stays |= at->leaving;
			parties[found++].job.root = site;
		}
	qsort(parties, found, sizeof(*parties), party_order);
	return found;
}

/* The site of parties[which]; STAR_POLICY_NONE: none. */
static uint32_t root_of(const struct party *parties, unsigned n_parties, unsigned which,
                        const struct node *const *nodes, unsigned n)
{
	struct star_policy_site *sites = calloc(n + 1, sizeof(*sites));
	struct star_policy_job *jobs = calloc(n_parties, sizeof(*jobs));
	uint32_t *roots = calloc(n_parties, sizeof(*roots)), root = STAR_POLICY_NONE;

	if (sites && jobs && roots) {
		for (unsigned i = 0; i < n; i++)
			sites[i] = (struct star_policy_site){ nodes[i]->report.above,
				                              nodes[i]->report.capacity };
		for (unsigned i = 0; i < n_parties; i++)
			jobs[i] = parties[i].job;
		if (star_policy_assign(sites, n, jobs, n_parties, roots) == TRIB_OK)
			root = roots[which];
		else
			log_warn("a job gets no shared star: %s", trib_last_error());
	}
	free(sites);
	free(jobs);
	free(roots);
	return root;
}

/* The common beginning of the racks of all ranks' hosts, if all are known. */
static void find_rack(const struct controller *controller, const struct plan_wish *wish,
                      struct membership_entry *entry)
{
	entry->has_rack = false;
	for (unsigned r = 0; r < wish->ranks; r++) {
		unsigned n, first = nodes_at(&controller->nodes, wish->where[r], &n), at = first;

		while (at < first + n && !*controller->nodes.all[at]->report.rack)
			at++;
		if (at == first + n) {
			entry->has_rack = false;
			return;
		}
		if (!r)
			snprintf(entry->rack, sizeof(entry->rack), "%s",
			         controller->nodes.all[at]->report.rack);
		else
			rack_meet(entry->rack, controller->nodes.all[at]->report.rack);
		entry->has_rack = true;
	}
}

unsigned star_choice_for_plan(void *context, const struct plan_wish *wish,
                              const struct node *const *nodes, unsigned n)
{
	const struct star_choice *choice = context;
	struct controller *controller = choice->controller;
	struct membership_entry *entry = choice->entry;
	struct party *parties;
	uint32_t root;
	unsigned found;

	find_rack(controller, wish, entry);
	/* A choice that was made for this migration stays: others may have made room for it. */
	for (unsigned i = 0; i < n && *entry->star_wanted; i++)
		if (entry->star_wanted_after == entry->membership.generation &&
		    !strcmp(nodes[i]->report.address, entry->star_wanted))
			return i;
	parties = calloc(parties_most(controller), sizeof(*parties));
	if (!parties)
		return n;
	found = parties_find(controller, nodes, n, entry, choice->now, parties);
	parties[found] = (struct party){ job_of(controller, entry, choice->now), entry };
	root = root_of(parties, found + 1, found, nodes, n);
	free(parties);
	return root == STAR_POLICY_NONE ? n : root;
}

/* Live aggregators with a capacity, on the ranks' plane. */
static unsigned sites_find(const struct controller *controller,
                           const struct membership_entry *entry, uint64_t now,
                           const struct node **nodes)
{
	struct plan_wish wish;
	unsigned n = 0;

	membership_wish(&entry->membership, entry->membership.members, &wish);
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		const struct node *node = controller->nodes.all[i];

		if (node->report.capacity && planner_carries(&wish, node) &&
		    node_state(node, now, &controller->limits) == NODE_LIVE)
			nodes[n++] = node;
	}
	return n;
}

/* The best site among the present sharers; STAR_POLICY_NONE: none. `lost`: it has no star now. */
static uint32_t root_now(struct controller *controller, struct membership_entry *entry, bool lost,
                         uint64_t now, const struct node **nodes, unsigned n)
{
	struct party *parties = calloc(parties_most(controller), sizeof(*parties));
	uint32_t root = STAR_POLICY_NONE;
	unsigned found, at = 0;

	if (!parties)
		return STAR_POLICY_NONE;
	found = parties_find(controller, nodes, n, lost ? entry : NULL, now, parties);
	if (lost)
		parties[found++] = (struct party){ job_of(controller, entry, now), entry };
	while (at < found && parties[at].entry != entry)
		at++;
	if (at < found)
		root = root_of(parties, found, at, nodes, n);
	free(parties);
	return root;
}

bool star_choice_better(struct controller *controller, struct membership_entry *entry,
                        const struct node *node, uint64_t now, char root[TREE_NAME_MAX])
{
	const struct node **nodes;
	char address[TREE_NAME_MAX];
	uint32_t found;
	bool moves;

	if (!node->report.capacity || !plan_shared(entry->membership.plan, address) ||
	    strcmp(address, node->report.address) != 0 || !entry->planned_at ||
	    now < entry->planned_at + REST)
		return false;
	nodes = calloc(controller->nodes.n + 1, sizeof(void *));
	if (!nodes)
		return false;
	found = root_now(controller, entry, false, now, nodes,
	                 sites_find(controller, entry, now, nodes));
	moves = found != STAR_POLICY_NONE && nodes[found] != node;
	if (moves) {
		snprintf(root, TREE_NAME_MAX, "%s", nodes[found]->report.address);
		/* If its trees are lost meanwhile, the next plan uses the same choice. */
		snprintf(entry->star_wanted, sizeof(entry->star_wanted), "%s", root);
		entry->star_wanted_after = entry->membership.generation;
	}
	free(nodes);
	return moves;
}

bool star_choice_after_loss(struct controller *controller, struct membership_entry *entry,
                            uint64_t now, char root[TREE_NAME_MAX])
{
	const struct node **nodes = calloc(controller->nodes.n + 1, sizeof(void *));
	uint32_t found = STAR_POLICY_NONE;

	if (nodes)
		found = root_now(controller, entry, true, now, nodes,
		                 sites_find(controller, entry, now, nodes));
	if (found != STAR_POLICY_NONE)
		snprintf(root, TREE_NAME_MAX, "%s", nodes[found]->report.address);
	free(nodes);
	return found != STAR_POLICY_NONE;
}
