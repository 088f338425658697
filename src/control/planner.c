/* SPDX-License-Identifier: Apache-2.0 */
#include "control/planner.h"

#include <stdlib.h>
#include <string.h>

#define LINK_UNKNOWN_BPS 10e9
#define CORES_LEAST 0.1       /* however busy: something is always left */
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

/* ---- hosts ---- */

struct hosts {
	struct plan_host *all;
	unsigned n;
};

/* "10.0.0.7" of "10.0.0.7:7700", "fe80::1" of "[fe80::1]:7700" */
static bool node_is_at(const struct node *node, const char *where)
{
	const char *address = node->report.address, *end = strrchr(address, ':');
	size_t length;

	if (!end)
		return false;
	if (*address == '[') {
		address++;
		end--; /* the other bracket */
	}
	length = end > address ? (size_t)(end - address) : 0;
	return length && strlen(where) == length && !strncmp(address, where, length);
}

static double link_bps(const struct node_report *report, double unknown)
{
	return report && report->link_bps ? (double)report->link_bps : unknown;
}

/* What a link is taken for of which nothing is known: the fastest that is known. */
static double link_guess(const struct nodes *nodes)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < nodes->n; i++)
		if (nodes->all[i]->report.link_bps > most)
			most = nodes->all[i]->report.link_bps;
	return most ? (double)most : LINK_UNKNOWN_BPS;
}

static void host_add(struct hosts *hosts, const struct node *node, int rank, bool may_aggregate,
                     double link)
{
	const struct node_report *report = node ? &node->report : NULL;
	double idle = report ? report->cores * (1 - report->load) : 0;

	hosts->all[hosts->n++] =
		(struct plan_host){ .name = report ? report->name : "a worker's host",
		                    .address = report ? report->address : "",
		                    .in_bps = link_bps(report, link),
		                    .out_bps = link_bps(report, link),
		                    .idle_cores = idle > CORES_LEAST ? idle : CORES_LEAST,
		                    .memory_total = report ? report->memory : 0,
		                    .memory_used = report ? report->memory_used : 0,
		                    .rank = rank,
		                    .may_aggregate = may_aggregate };
}

/*
 * A host for each rank, with the aggregator that runs beside it if there is
 * one, and a host for each other aggregator. Of several ranks at one address
 * the first has the aggregator. False: a suspect may still answer.
 */
static bool hosts_fill(const struct planner *planner, const struct plan_wish *wish,
                       enum node_state worst, struct hosts *hosts, unsigned *usable)
{
	const struct nodes *nodes = planner->nodes;
	double link = link_guess(nodes);
	uint64_t placed = 0;

	hosts->n = *usable = 0;
	for (unsigned i = 0; i < nodes->n; i++) {
		const struct node *node = nodes->all[i];
		enum use use = node_use(planner, wish, node, worst);
		int rank = -1;

		if (use == USE_PERHAPS)
			return false;
		for (unsigned r = 0; rank < 0 && r < wish->ranks; r++)
			if (!(placed >> r & 1) && wish->where[r] &&
			    node_is_at(node, wish->where[r]))
				rank = (int)r;
		if (rank < 0 && use == USE_NO)
			continue;
		if (rank >= 0)
			placed |= 1ull << rank;
		host_add(hosts, node, rank, use == USE_YES, link);
		*usable += use == USE_YES;
	}
	for (unsigned r = 0; r < wish->ranks; r++)
		if (!(placed >> r & 1))
			host_add(hosts, NULL, (int)r, false, link);
	return true;
}

/* ---- the plan ---- */

static bool tree_same(const struct tree *a, const struct tree *b)
{
	if (a->n_nodes != b->n_nodes)
		return false;
	for (unsigned i = 0; i < a->n_nodes; i++)
		if (a->nodes[i].parent != b->nodes[i].parent ||
		    a->nodes[i].own != b->nodes[i].own ||
		    strcmp(a->nodes[i].name, b->nodes[i].name))
			return false;
	return true;
}

/* Trees that are the same become one: each costs its ranks a connection, and the text its room. */
static void forest_join(struct forest *forest)
{
	unsigned n = 0;

	for (unsigned i = 0; i < forest->n_trees; i++) {
		unsigned k = 0;

		while (k < n && !tree_same(&forest->trees[k], &forest->trees[i]))
			k++;
		if (k < n)
			forest->trees[k].share += forest->trees[i].share;
		else if (n++ != i)
			forest->trees[k] = forest->trees[i];
	}
	forest->n_trees = n;
}

/* With fewer trees where their text is too long for a packet. */
static trib_status plan_fit(const struct hosts *hosts, struct plan_limits limits,
                            struct plan_verdict *verdict, char out[PLAN_TEXT_MAX])
{
	size_t bytes = plan_work_bytes(hosts->n, &limits), length = PLAN_TEXT_MAX;
	struct forest *forest = malloc(sizeof(*forest));
	void *work = malloc(bytes);
	trib_status status = TRIB_OK;

	if (!forest || !work) {
		free(forest);
		free(work);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a plan");
	}
	for (; status == TRIB_OK && length >= PLAN_TEXT_MAX && limits.trees; limits.trees /= 2) {
		status = plan_stripes(hosts->all, hosts->n, &limits, work, bytes, forest, verdict);
		if (status != TRIB_OK)
			break;
		forest_join(forest);
		verdict->trees = forest->n_trees;
		length = forest_print(forest, out, PLAN_TEXT_MAX);
	}
	free(work);
	free(forest);
	if (status == TRIB_OK && length >= PLAN_TEXT_MAX)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "a plan for %u hosts is too long for a packet", hosts->n);
	return status;
}

trib_status planner_plan(const struct planner *planner, const struct plan_wish *wish,
                         char out[PLAN_TEXT_MAX])
{
	struct hosts hosts = {
		calloc((size_t)planner->nodes->n + wish->ranks + 1, sizeof(*hosts.all)), 0
	};
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	struct plan_verdict verdict;
	trib_status status;
	unsigned usable = 0;
	bool decided;

	if (planner->children)
		limits.children = planner->children;
	if (planner->trees)
		limits.trees = planner->trees;
	if (!hosts.all)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a plan");
	decided = hosts_fill(planner, wish, NODE_LIVE, &hosts, &usable);
	if (decided && !usable) /* slow is better than not at all */
		decided = hosts_fill(planner, wish, NODE_LOADED, &hosts, &usable);
	if (!decided)
		status = TRIB_IN_PROGRESS;
	else if (!usable)
		status =
			status_fail(TRIB_ERR_AGGREGATOR,
		                    "no aggregator lives, of %u that this controller has heard of: "
		                    "start tribd --join on a machine (trib nodes)",
		                    planner->nodes->n);
	else
		status = plan_fit(&hosts, limits, planner->verdict ? planner->verdict : &verdict,
		                  out);
	if (status < 0 && usable && planner->children) { /* too few live for so small families */
		limits.children = PLAN_LIMITS_DEFAULT.children;
		status = plan_fit(&hosts, limits, planner->verdict ? planner->verdict : &verdict,
		                  out);
	}
	free(hosts.all);
	return status;
}
