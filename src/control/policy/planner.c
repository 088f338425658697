/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/planner.h"

#include "plan/cluster/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_UNKNOWN_BPS 10e9
#define CORES_LEAST 0.1             /* assumed idle, however busy a node is */
#define PROBE_ALL 512u              /* with more nodes, only those of the broken plan are queried */
#define ALIVE_PROBE_NS 200000000ull /* 0.2 s: a node without an answer by then is left out */

bool plan_shared(const char *plan, char out[TREE_NAME_MAX])
{
	const char *bar = strchr(plan, '|'), *end = bar ? strchr(bar, '(') : NULL;

	if (!end || end - bar > TREE_NAME_MAX)
		return false;
	snprintf(out, TREE_NAME_MAX, "%.*s", (int)(end - bar - 1), bar + 1);
	return true;
}

bool plan_has(const char *plan, const char *address)
{
	size_t length = strlen(address);

	for (const char *at = strstr(plan, address); at; at = strstr(at + 1, address))
		if (at[length] == '(' && (at == plan || strchr("*;,(|", at[-1])))
			return true;
	return false;
}

struct node *plan_node(const struct nodes *nodes, const char **plan)
{
	while (**plan) {
		size_t length = strcspn(*plan, "*;,()|");
		char name[TREE_NAME_MAX];
		struct node *node = NULL;

		if (length && length < sizeof(name) && (*plan)[length] == '(') {
			memcpy(name, *plan, length);
			name[length] = '\0';
			node = nodes_find(nodes, name);
		}
		*plan += length + ((*plan)[length] != '\0');
		if (node)
			return node;
	}
	return NULL;
}

/* If something has just died, a heartbeat of half a second ago proves little. */
bool planner_suspects(const struct nodes *nodes, const char *broken, const struct node *node)
{
	return *broken && (nodes->n <= PROBE_ALL || plan_has(broken, node->report.address));
}

/* Which machines may aggregate besides those of the ranks. */
enum lenders {
	LENDERS_NONE,
	LENDERS_SERVERS, /* machines that run no ranks of any job */
	LENDERS_ALL
};

enum use { USE_YES, USE_PERHAPS, USE_NO };

static bool node_is_tcp(const struct node *node)
{
	return !strcmp(node->report.plane, "tcp");
}

bool planner_carries(const struct plan_wish *wish, const struct node *node)
{
	return node_is_tcp(node) == (wish->tcp != 0);
}

/* A suspected node must have answered a query since the plan broke. */
static enum use node_use(const struct planner *planner, const struct plan_wish *wish,
                         const struct node *node, enum node_state worst)
{
	if (node_state(node, planner->now, planner->limits) > worst || !planner_carries(wish, node))
		return USE_NO;
	if (!planner_suspects(planner->nodes, wish->broken, node) ||
	    node->confirmed_at >= wish->since)
		return USE_YES;
	return planner->now < wish->since + ALIVE_PROBE_NS ? USE_PERHAPS : USE_NO;
}

/* The aggregator with a capacity at which the ranks take turns; NULL: none. */
static const struct node *shared_node(const struct planner *planner, const struct plan_wish *wish)
{
	const struct node **usable = calloc(planner->nodes->n + 1, sizeof(void *));
	const struct node *node = NULL;
	unsigned n = 0, chosen = 0;

	for (unsigned i = 0; usable && wish->ranks > 1 && i < planner->nodes->n; i++)
		if (planner->nodes->all[i]->report.capacity &&
		    node_use(planner, wish, planner->nodes->all[i], NODE_LIVE) == USE_YES)
			usable[n++] = planner->nodes->all[i];
	if (n && planner->root)
		chosen = planner->root(planner->context, wish, usable, n);
	if (chosen < n)
		node = usable[chosen];
	free(usable);
	return node;
}

/* ---- hosts ---- */

/* Where a host is: its address without a port. */
struct place {
	const char *text;
	size_t length;  /* 0: unknown */
	unsigned among; /* hosts of the plan at this address: they share one link */
};

struct hosts {
	struct plan_host *all;
	struct place *places;
	unsigned n;
};

/* False: no memory. */
static bool hosts_make(const struct planner *planner, const struct plan_wish *wish,
                       struct hosts *hosts)
{
	size_t most = (size_t)planner->nodes->n + wish->ranks + 1;

	*hosts = (struct hosts){ calloc(most, sizeof(*hosts->all)),
		                 calloc(most, sizeof(*hosts->places)), 0 };
	return hosts->all && hosts->places;
}

static void hosts_free(struct hosts *hosts)
{
	free(hosts->places);
	free(hosts->all);
}

static struct place node_place(const struct node *node)
{
	struct place place = { .among = 1 };

	place.length = node_where(node, &place.text);
	return place;
}

static struct place rank_place(const struct plan_wish *wish, unsigned rank)
{
	const char *where = wish->where[rank] ? wish->where[rank] : "";

	return (struct place){ where, strlen(where), 1 };
}

static bool place_same(const struct place *a, const struct place *b)
{
	return a->length && a->length == b->length && !strncmp(a->text, b->text, a->length);
}

bool planner_is_ranks(const struct plan_wish *wish, const struct node *node)
{
	const struct place place = node_place(node);

	for (unsigned r = 0; r < wish->ranks; r++) {
		const struct place other = rank_place(wish, r);

		if (place_same(&place, &other))
			return true;
	}
	return false;
}

/* The measured rate, else the claimed one. */
static double link_bps(const struct node *node, double seen, double unknown)
{
	return seen > 0                        ? seen
	       : node && node->report.link_bps ? (double)node->report.link_bps
	                                       : unknown;
}

/* The fastest claimed rate. */
double planner_guess(const struct nodes *nodes)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < nodes->n; i++)
		if (nodes->all[i]->report.link_bps > most)
			most = nodes->all[i]->report.link_bps;
	return most ? (double)most : LINK_UNKNOWN_BPS;
}

/* XAgg §V: used + model <= 80 %. An aggregator of the current plan frees its pool first. */
static void host_room(struct plan_host *host, const struct plan_wish *wish)
{
	const struct plan_limits need = { .model_bytes = wish->pool_bytes };
	bool holds = wish->holds && *host->address && plan_has(wish->holds, host->address);

	if (holds)
		host->memory_used -=
			host->memory_used < wish->pool_bytes ? host->memory_used : wish->pool_bytes;
	host->may_aggregate = candidate_fits(host, &need);
}

static void host_add(struct hosts *hosts, const struct node *node, int rank, bool may_aggregate,
                     double link, struct place place)
{
	const struct node_report *report = node ? &node->report : NULL;
	double idle = report ? report->cores * (1 - report->load) : 0;

	hosts->places[hosts->n] = place;
	hosts->all[hosts->n++] =
		(struct plan_host){ .name = report ? report->name : "a worker's host",
		                    .address = report ? report->address : "",
		                    .in_bps = link_bps(node, node ? node->in_bps : 0, link),
		                    .out_bps = link_bps(node, node ? node->out_bps : 0, link),
		                    .idle_cores = idle > CORES_LEAST ? idle : CORES_LEAST,
		                    .memory_total = report ? report->memory : 0,
		                    .memory_used = report ? report->memory_used : 0,
		                    .rank = rank,
		                    .may_aggregate = may_aggregate,
		                    .is_switch = report && report->is_switch && rank < 0 };
}

/*
 * Hosts at one address share one link, so each gets its part of the rate. Hosts with an aggregator
 * (the first `nodes`) are sorted by address, so equal ones are adjacent. The others are few.
 */
static void hosts_share(struct hosts *hosts, unsigned nodes)
{
	for (unsigned i = 0, after; i < nodes; i = after) {
		for (after = i + 1;
		     after < nodes && place_same(&hosts->places[i], &hosts->places[after]);)
			after++;
		for (unsigned k = i; k < after; k++)
			hosts->places[k].among = after - i;
	}
	for (unsigned r = nodes; r < hosts->n; r++)
		for (unsigned i = 0; i < hosts->n; i++) {
			if (i == r || !place_same(&hosts->places[r], &hosts->places[i]))
				continue;
			hosts->places[i].among += i < nodes;
			hosts->places[r].among++;
			if (i < nodes) { /* the agent knows the rate */
				hosts->all[r].in_bps = hosts->all[i].in_bps;
				hosts->all[r].out_bps = hosts->all[i].out_bps;
			}
		}
	for (unsigned i = 0; i < hosts->n; i++) {
		if (hosts->all[i].is_switch) /* it has a port for each neighbour */
			continue;
		hosts->all[i].in_bps /= hosts->places[i].among;
		hosts->all[i].out_bps /= hosts->places[i].among;
	}
}

/* Takes over measured rates, and what tells which ranks are similar. */
static void hosts_measured(struct hosts *hosts, const struct plan_wish *wish)
{
	for (unsigned i = 0; i < hosts->n; i++) {
		struct plan_host *host = &hosts->all[i];
		double measured = host->rank >= 0 ? wish->measured[host->rank] : 0;

		if (measured > 0 && measured < host->out_bps)
			host->out_bps = measured;
		if (host->rank >= 0)
			host->round_s = wish->round[host->rank];
	}
}

/*
 * Adds a host for each rank, with the aggregator that runs beside it, if any; and a host for each
 * other aggregator. If several ranks are at one address, the first one has the aggregator. False: a
 * suspected aggregator may still answer.
 */
static bool hosts_fill(const struct planner *planner, const struct plan_wish *wish,
                       enum node_state worst, enum lenders lenders, struct hosts *hosts,
                       unsigned *usable)
{
	const struct nodes *nodes = planner->nodes;
	double link = planner_guess(nodes);
	uint64_t placed = 0;
	unsigned with_nodes;

	hosts->n = *usable = 0;
	for (unsigned i = 0; i < nodes->n; i++) {
		const struct node *node = nodes->all[i];
		const struct place place = node_place(node);
		enum use use = node_use(planner, wish, node, worst);
		bool beside = false;
		int rank = -1;

		if (use == USE_PERHAPS)
			return false;
		for (unsigned r = 0; rank < 0 && r < wish->ranks; r++) {
			const struct place other = rank_place(wish, r);

			if (!place_same(&place, &other))
				continue;
			beside = true;
			if (!(placed >> r & 1))
				rank = (int)r;
		}
		if (node->report.capacity)
			use = USE_NO; /* usable in turns only: plan_share */
		if (rank < 0 &&
		    (use == USE_NO ||
		     (!beside && lenders < (*node->report.rack ? LENDERS_ALL : LENDERS_SERVERS))))
			continue;
		if (rank >= 0)
			placed |= 1ull << rank;
		host_add(hosts, node, rank, use == USE_YES, link, place);
		host_room(&hosts->all[hosts->n - 1], wish);
		*usable += hosts->all[hosts->n - 1].may_aggregate;
	}
	with_nodes = hosts->n;
	for (unsigned r = 0; r < wish->ranks; r++)
		if (!(placed >> r & 1))
			host_add(hosts, NULL, (int)r, false, link, rank_place(wish, r));
	hosts_share(hosts, with_nodes);
	hosts_measured(hosts, wish);
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

/* Merges equal trees: each tree costs the ranks a connection, and the text room. */
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

/* Plans with fewer and fewer trees until the text fits into an answer. */
static trib_status plan_fit(const struct hosts *hosts, bool star, struct plan_limits limits,
                            struct plan_verdict *verdict, char out[PLAN_TEXT_MAX])
{
	size_t bytes = plan_work_bytes(hosts->n, &limits), length = PLAN_TEXT_MAX;
	struct forest *forest = malloc(sizeof(*forest));
	void *work = malloc(bytes);
	trib_status status = TRIB_OK;

	if (star)
		limits.trees = limits.depth = 1;

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
		                   "a plan for %u hosts has more than %u bytes of text", hosts->n,
		                   PLAN_TEXT_MAX - 1);
	return status;
}

static void plan_share(const struct node *node, unsigned ranks, char out[PLAN_TEXT_MAX])
{
	size_t length = strlen(out), room = PLAN_TEXT_MAX - length;

	if (snprintf(out + length, room, "|%s(0-%u)", node->report.address, ranks - 1) >= (int)room)
		out[length] = '\0'; /* it does not fit: no shared star */
}

/* Counts nodes that lack only memory. */
static unsigned count_full(const struct planner *planner, const struct plan_wish *wish)
{
	unsigned full = 0;

	for (unsigned i = 0; i < planner->nodes->n; i++) {
		const struct node *node = planner->nodes->all[i];
		struct plan_host host = { .address = node->report.address,
			                  .memory_total = node->report.memory,
			                  .memory_used = node->report.memory_used,
			                  .may_aggregate = !node->report.capacity };

		if (node_use(planner, wish, node, NODE_LOADED) != USE_YES || !host.may_aggregate)
			continue;
		host_room(&host, wish);
		full += !host.may_aggregate;
	}
	return full;
}

/* Ranks and aggregators of one tree must use the same plane. */
static trib_status fail_mixed(const struct plan_wish *wish)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "rank %d is on the TCP plane and rank %d is not: TRIB_PLANE has to be "
	                   "the same for all ranks of a job",
	                   __builtin_ctzll(wish->tcp), __builtin_ctzll(~wish->tcp));
}

/* Counts live nodes on another plane than the ranks'; *first is one of them. */
static unsigned count_strangers(const struct planner *planner, const struct plan_wish *wish,
                                const struct node **first)
{
	unsigned n = 0;

	*first = NULL;
	for (unsigned i = 0; i < planner->nodes->n; i++) {
		const struct node *node = planner->nodes->all[i];

		if (planner_carries(wish, node) ||
		    node_state(node, planner->now, planner->limits) > NODE_LOADED)
			continue;
		if (!n++)
			*first = node;
	}
	return n;
}

static trib_status fail_alone(const struct planner *planner, const struct plan_wish *wish)
{
	unsigned drained = 0, full = count_full(planner, wish), strangers;
	const char *plane = wish->tcp ? "tcp" : "udp";
	const struct node *stranger;
	char more[80] = "";

	if (full)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "%u aggregator%s alive but %s no memory for a pool of %.1f MB "
		                   "(TRIB_POOL): with it more than %.0f %% would be in use (trib "
		                   "nodes)",
		                   full, full > 1 ? "s are" : " is", full > 1 ? "have" : "has",
		                   (double)wish->pool_bytes / 1e6, 100 * CANDIDATES_MEMORY);
	for (unsigned i = 0; i < planner->nodes->n; i++)
		drained += planner_carries(wish, planner->nodes->all[i]) &&
		           node_state(planner->nodes->all[i], planner->now, planner->limits) ==
		                   NODE_DRAINED;
	if (drained)
		snprintf(more, sizeof(more), "; %u more %s alive but drained (trib node resume)",
		         drained, drained > 1 ? "are" : "is");
	strangers = count_strangers(planner, wish, &stranger);
	if (stranger)
		return status_fail(
			TRIB_ERR_AGGREGATOR,
			"no live aggregator is on the ranks' plane (%s), but %u on another "
			"(%s is on %s): start tribd --join --plane %s on a machine, or the "
			"ranks with TRIB_PLANE=%s (trib nodes)%s",
			plane, strangers, stranger->report.name, stranger->report.plane, plane,
			wish->tcp ? "udp" : "tcp", more);
	return status_fail(
		TRIB_ERR_AGGREGATOR,
		"no aggregator is available: of %u that the controller knows, all are "
		"silent, drained, or only for turns (--capacity); start tribd --join on a "
		"machine (trib nodes)%s",
		planner->nodes->n, more);
}

/* No aggregator is usable. Also if there is a ring, the last error says why. */
static trib_status plan_ring(const struct planner *planner, const struct plan_wish *wish,
                             struct plan_verdict *verdict, char out[PLAN_TEXT_MAX])
{
	trib_status status = fail_alone(planner, wish);

	if (!wish->rings ||
	    ring_seats_print(wish->seats, wish->ranks, out, PLAN_TEXT_MAX) >= PLAN_TEXT_MAX)
		return status;
	*verdict = (struct plan_verdict){ 0 };
	return TRIB_OK;
}

/* False: a suspected aggregator may still answer. *star: frugal, but a server is needed. */
static bool hosts_choose(const struct planner *planner, const struct plan_wish *wish, bool shares,
                         struct hosts *hosts, unsigned *usable, bool *star)
{
	/* A loaded node is better than none. */
	enum node_state last = planner->strict ? NODE_LIVE : NODE_LOADED;

	/* A job that takes turns needs no servers: aggregators on its own hosts are enough. */
	enum lenders least = wish->frugal || shares ? LENDERS_NONE : LENDERS_SERVERS;

	for (unsigned worst = NODE_LIVE; worst <= last; worst++)
		for (unsigned lenders = least; lenders <= LENDERS_ALL; lenders++) {
			if (!hosts_fill(planner, wish, worst, lenders, hosts, usable))
				return false;
			*star = wish->frugal && lenders;
			if (*usable)
				return true;
		}
	return true;
}

static uint64_t all_ranks(const struct plan_wish *wish)
{
	return wish->ranks < 64 ? (1ull << wish->ranks) - 1 : ~0ull;
}

trib_status planner_plan(const struct planner *planner, const struct plan_wish *wish,
                         char out[PLAN_TEXT_MAX])
{
	struct hosts hosts;
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	const struct node *shared = shared_node(planner, wish);
	struct plan_verdict unused, *verdict = planner->verdict ? planner->verdict : &unused;
	unsigned usable = 0;
	trib_status status;
	bool star;

	if (planner->children)
		limits.children = planner->children;
	if (planner->trees)
		limits.trees = planner->trees;
	if (shared && limits.trees == FOREST_TREES_MAX)
		limits.trees--; /* the shared star counts as a tree */
	if (!hosts_make(planner, wish, &hosts))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a plan");
	else if (wish->tcp && wish->tcp != all_ranks(wish))
		status = fail_mixed(wish);
	else if (!hosts_choose(planner, wish, shared, &hosts, &usable, &star))
		status = TRIB_IN_PROGRESS;
	else if (!usable)
		status = plan_ring(planner, wish, verdict, out);
	else
		status = plan_fit(&hosts, star, limits, verdict, out);
	if (status < 0 && usable && planner->children) { /* too few aggregators for this fan-in */
		limits.children = PLAN_LIMITS_DEFAULT.children;
		status = plan_fit(&hosts, star, limits, verdict, out);
	}
	if (status == TRIB_OK && usable && shared)
		plan_share(shared, wish->ranks, out);
	hosts_free(&hosts);
	return status;
}

static double hosts_rate(const struct hosts *hosts, const char *plan)
{
	const struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	size_t bytes = plan_work_bytes(hosts->n, &limits);
	struct forest *forest = malloc(sizeof(*forest));
	char *own = strndup(plan, strcspn(plan, "|"));
	void *work = malloc(bytes);
	double rate = 0;

	if (forest && own && work && forest_parse(forest, own) == TRIB_OK)
		rate = plan_rate(hosts->all, hosts->n, &limits, forest, work, bytes);
	free(work);
	free(own);
	free(forest);
	return rate;
}

double planner_rate(const struct planner *planner, const struct plan_wish *wish, const char *plan)
{
	struct hosts hosts;
	unsigned usable;
	double rate = 0;

	if (hosts_make(planner, wish, &hosts) &&
	    hosts_fill(planner, wish, NODE_LOADED, LENDERS_ALL, &hosts, &usable))
		rate = hosts_rate(&hosts, plan);
	hosts_free(&hosts);
	return rate;
}
