/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At which aggregator with a capacity a communicator takes its turns (roots.h):
 * what is known of those that take some now, and what follows from it for one
 * that gets a plan, or has one and could be better off.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/roots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REST (3 * NSEC_PER_SEC) /* a plan is left in peace for so long */
#define SHARE_UNKNOWN 0.3       /* of a step that communication takes */
#define SHARE_LEAST 0.01
#define AGE_LEAST \
	10.0 /* seconds that a job goes on at least, as far as one knows; else as long again */
#define MOVE_S 0.2 /* that a move takes */

/* One that takes turns, or is about to. */
struct party {
	struct roots_job job;
	const struct gathering_entry *entry;
};

static struct roots_job job_of(const struct controller *controller,
                               const struct gathering_entry *entry, uint64_t now)
{
	const struct job_entry *job = controller->jobs[entry->gathering.job];
	double share = entry->words.share, age = job ? (double)(time(NULL) - job->job.made_at) : 0;

	if (share < 0)
		share = SHARE_UNKNOWN;
	if (share < SHARE_LEAST)
		share = SHARE_LEAST;
	return (struct roots_job){ .rack = entry->has_rack ? entry->rack : NULL,
		                   .root = ROOTS_NONE,
		                   .rests = !entry->planned_at || now < entry->planned_at + REST,
		                   .worth = share * (age > AGE_LEAST ? age : AGE_LEAST),
		                   .move = MOVE_S,
		                   .demand = share };
}

static const struct gathering_entry *entry_of(const struct controller *controller,
                                              const struct sharer *sharer)
{
	const struct job_entry *job = controller->jobs[sharer->job];

	for (const struct gathering_entry *at = job ? job->gatherings : NULL; at; at = at->next)
		if (at->gathering.key == sharer->key &&
		    at->gathering.generation == sharer->generation)
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
	const struct gathering_entry *x = ((const struct party *)a)->entry,
				     *y = ((const struct party *)b)->entry;

	if (x->planned_at != y->planned_at)
		return x->planned_at < y->planned_at ? -1 : 1;
	return (int)x->gathering.job - (int)y->gathering.job;
}

static uint32_t site_of(const struct node *const *nodes, unsigned n, const char *address)
{
	uint32_t site = 0;

	while (site < n && strcmp(nodes[site]->report.address, address) != 0)
		site++;
	return site;
}

/* Those that take turns at these aggregators, the oldest first; `but` not. */
static unsigned parties_find(const struct controller *controller, const struct node *const *nodes,
                             unsigned n, const struct gathering_entry *but, uint64_t now,
                             struct party *parties)
{
	unsigned found = 0;

	for (const struct sharing_group *group = controller->groups; group; group = group->next)
		for (const struct turns_share *at = group->turns.shares; at; at = at->next) {
			const struct sharer *sharer = (const struct sharer *)at;
			const struct gathering_entry *entry = entry_of(controller, sharer);
			/* One that leaves is where it goes. */
			uint32_t site =
				site_of(nodes, n, *sharer->to ? sharer->to : group->address);

			if (at->lost || !entry || entry == but || site == n)
				continue;
			parties[found] = (struct party){ job_of(controller, entry, now), entry };
			parties[found].job.rests |= at->leaving;
			parties[found++].job.root = site;
		}
	qsort(parties, found, sizeof(*parties), party_order);
	return found;
}

/* Where the last of the parties should be; ROOTS_NONE: nowhere. */
static uint32_t root_of(const struct party *parties, unsigned n_parties, unsigned which,
                        const struct node *const *nodes, unsigned n)
{
	struct roots_site *sites = calloc(n + 1, sizeof(*sites));
	struct roots_job *jobs = calloc(n_parties, sizeof(*jobs));
	uint32_t *roots = calloc(n_parties, sizeof(*roots)), root = ROOTS_NONE;

	if (sites && jobs && roots) {
		for (unsigned i = 0; i < n; i++)
			sites[i] = (struct roots_site){ nodes[i]->report.above,
				                        nodes[i]->report.capacity };
		for (unsigned i = 0; i < n_parties; i++)
			jobs[i] = parties[i].job;
		if (roots_assign(sites, n, jobs, n_parties, roots) == TRIB_OK)
			root = roots[which];
		else
			log_warn("%s: a job takes no turns", trib_last_error());
	}
	free(sites);
	free(jobs);
	free(roots);
	return root;
}

/* What the racks of the ranks' hosts begin with, where all are known. */
static void find_rack(const struct controller *controller, const struct plan_wish *wish,
                      struct gathering_entry *entry)
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

unsigned rooting_choose(void *context, const struct plan_wish *wish,
                        const struct node *const *nodes, unsigned n)
{
	const struct rooting *rooting = context;
	struct controller *controller = rooting->controller;
	struct gathering_entry *entry = rooting->entry;
	struct party *parties;
	uint32_t root;
	unsigned found;

	find_rack(controller, wish, entry);
	/* Others may have been told to make room: who does so first changes nothing. */
	for (unsigned i = 0; i < n && *entry->wanted; i++)
		if (entry->wanted_after == entry->gathering.generation &&
		    !strcmp(nodes[i]->report.address, entry->wanted))
			return i;
	parties = calloc(parties_most(controller), sizeof(*parties));
	if (!parties)
		return n;
	found = parties_find(controller, nodes, n, entry, rooting->now, parties);
	parties[found] = (struct party){ job_of(controller, entry, rooting->now), entry };
	root = root_of(parties, found + 1, found, nodes, n);
	free(parties);
	return root == ROOTS_NONE ? n : root;
}

/* Aggregators with a capacity that live, on the plane that the ranks are on. */
static unsigned sites_find(const struct controller *controller, const struct gathering_entry *entry,
                           uint64_t now, const struct node **nodes)
{
	struct plan_wish wish;
	unsigned n = 0;

	gathering_wish(&entry->gathering, entry->gathering.members, &wish);
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		const struct node *node = controller->nodes.all[i];

		if (node->report.capacity && planner_carries(&wish, node) &&
		    node_state(node, now, &controller->limits) == NODE_LIVE)
			nodes[n++] = node;
	}
	return n;
}

/*
 * Where it should be, among those who take turns now; ROOTS_NONE: at none. `lost`: it takes none
 * now.
 */
static uint32_t root_now(struct controller *controller, struct gathering_entry *entry, bool lost,
                         uint64_t now, const struct node **nodes, unsigned n)
{
	struct party *parties = calloc(parties_most(controller), sizeof(*parties));
	uint32_t root = ROOTS_NONE;
	unsigned found, at = 0;

	if (!parties)
		return ROOTS_NONE;
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

bool rooting_moves(struct controller *controller, struct gathering_entry *entry,
                   const struct node *node, uint64_t now, char root[TREE_NAME_MAX])
{
	const struct node **nodes;
	char address[TREE_NAME_MAX];
	uint32_t found;
	bool moves;

	if (!node->report.capacity || !plan_shared(entry->gathering.plan, address) ||
	    strcmp(address, node->report.address) != 0 || !entry->planned_at ||
	    now < entry->planned_at + REST)
		return false;
	nodes = calloc(controller->nodes.n + 1, sizeof(void *));
	if (!nodes)
		return false;
	found = root_now(controller, entry, false, now, nodes,
	                 sites_find(controller, entry, now, nodes));
	moves = found != ROOTS_NONE && nodes[found] != node;
	if (moves) {
		snprintf(root, TREE_NAME_MAX, "%s", nodes[found]->report.address);
		/* Should its trees be lost meanwhile, that holds for the next ones too. */
		snprintf(entry->wanted, sizeof(entry->wanted), "%s", root);
		entry->wanted_after = entry->gathering.generation;
	}
	free(nodes);
	return moves;
}

bool rooting_again(struct controller *controller, struct gathering_entry *entry, uint64_t now,
                   char root[TREE_NAME_MAX])
{
	const struct node **nodes = calloc(controller->nodes.n + 1, sizeof(void *));
	uint32_t found = ROOTS_NONE;

	if (nodes)
		found = root_now(controller, entry, true, now, nodes,
		                 sites_find(controller, entry, now, nodes));
	if (found != ROOTS_NONE)
		snprintf(root, TREE_NAME_MAX, "%s", nodes[found]->report.address);
	free(nodes);
	return found != ROOTS_NONE;
}
