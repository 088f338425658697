/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/group.h"
#include "plan/cluster/sort.h"

#define BISECTIONS 30
#define NOBODY UINT32_MAX
#define STREAMS_MAX 10000000.0 /* upper bound, so that the count fits int32_t */

struct groups {
	const struct model *model;
	double rate;      /* assumed sum of all trees' rates, in bits a second */
	uint32_t *order;  /* hosts that may aggregate, the strongest first */
	uint32_t *next;   /* for each entry of `order`: the next entry of its group */
	unsigned n;       /* entries of `order` */
	unsigned n_trees; /* groups; each has a tree */
	unsigned n_slow;  /* additional trees from the remaining capacity */
	uint32_t first[PLAN_TREES_MAX];
	struct load *left;
	double slow_rate; /* rate of the slow tree being built */
	uint64_t *steps;
};

/* An estimate of the capacity that a host has for trees, in bits a second. */
static double host_strength(const struct groups *groups, uint32_t i)
{
	const struct model_host *host = &groups->model->caps[i];
	double in = model_spare(host, host->in, groups->rate);
	double out = model_spare(host, host->out, groups->rate);

	if (host->kind == MODEL_SWITCH)
		return host->cpu;
	return fmin(host->cpu, groups->model->multicast ? in : fmin(in, out));
}

static bool host_before(const void *context, uint32_t a, uint32_t b)
{
	double at = host_strength(context, a), bt = host_strength(context, b);

	return at != bt ? at > bt : a < b;
}

/* Assigns the strongest host first, each to the group with the least strength so far. */
static void groups_part(struct groups *groups)
{
	double strength[PLAN_TREES_MAX] = { 0 };
	uint32_t last[PLAN_TREES_MAX] = { 0 };

	groups->n = 0;
	for (unsigned t = 0; t < groups->n_trees; t++)
		groups->first[t] = NOBODY;
	for (uint32_t i = 0; i < groups->model->n; i++)
		if (host_strength(groups, i) > 0)
			groups->order[groups->n++] = i;
	sort_indices(groups->order, groups->n, host_before, groups);
	for (unsigned i = 0; i < groups->n; i++) {
		unsigned least = 0;

		for (unsigned t = 1; t < groups->n_trees; t++)
			if (strength[t] < strength[least])
				least = t;
		groups->next[i] = NOBODY;
		if (groups->first[least] == NOBODY)
			groups->first[least] = i;
		else
			groups->next[last[least]] = i;
		last[least] = i;
		strength[least] += host_strength(groups, groups->order[i]);
	}
	*groups->steps += groups->n * (uint64_t)(groups->n_trees / 8 + 1);
}

/* Sets the remaining capacity of all hosts to what their own workers leave. */
static void left_start(struct groups *groups)
{
	for (unsigned i = 0; i < groups->model->n; i++) {
		const struct model_host *host = &groups->model->caps[i];

		groups->left[i] = (struct load){ .in = model_spare(host, host->in, groups->rate),
			                         .out = model_spare(host, host->out, groups->rate),
			                         .cpu = host->cpu };
	}
}

/* Subtracts the cost of the shape's last tree from the remaining capacity. */
static void left_charge(struct groups *groups, const struct shape *shape)
{
	const struct shape_tree *tree = &shape->trees[shape->n_trees - 1];

	for (unsigned p = 0; p < tree->n; p++) {
		const struct shape_place *place = &shape->places[tree->first + p];
		struct load *left = &groups->left[place->host];
		struct model_cost cost = model_cost(
			groups->model, groups->model->caps[place->host].kind, place->take, p == 0);

		left->in -= cost.in * tree->rate;
		left->out -= cost.out * tree->rate;
		left->cpu -= cost.cpu * tree->rate;
	}
}

static int32_t streams(double bps, double rate)
{
	return (int32_t)fmax(fmin(bps / rate * (1 + 1e-9), STREAMS_MAX), -1);
}

static unsigned host_take(const struct groups *groups, uint32_t i, double rate, bool is_root)
{
	const struct model *model = groups->model;
	const struct load *left = &groups->left[i];
	int32_t take = model_room(model, model->caps[i].kind, streams(left->in, rate),
	                          streams(left->out, rate), streams(left->cpu, rate), is_root);

	if (take < 0)
		return 0;
	return (unsigned)take < model->children - 1 ? (unsigned)take : model->children - 1;
}

/* Can the group's tree have this rate? If `shape` is not NULL, its places are added to it. */
static bool tree_fits(const struct groups *groups, unsigned tree, double rate, struct shape *shape)
{
	unsigned need = groups->model->workers - 1;
	bool is_root = true;

	for (uint32_t i = groups->first[tree]; i != NOBODY && need; i = groups->next[i]) {
		unsigned take;

		take = host_take(groups, groups->order[i], rate, is_root);
		(*groups->steps)++;
		if (!take)
			continue;
		take = take < need ? take : need;
		need -= take;
		is_root = false;
		if (shape && !shape_add(shape, groups->order[i], take))
			return false;
	}
	return !need;
}

/* The highest rate of the group's tree; 0: none. */
static double tree_rate(const struct groups *groups, unsigned tree)
{
	double low = 0, high = groups->rate;

	for (unsigned i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (tree_fits(groups, tree, middle, NULL))
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Could a tree over all hosts have this rate with their remaining capacity? */
static bool slow_fits(const struct groups *groups, double rate)
{
	unsigned need = groups->model->workers - 1, all = 0;

	for (unsigned i = 0; i < groups->n && all < need; i++)
		all += host_take(groups, groups->order[i], rate, false);
	*groups->steps += groups->n;
	return all >= need;
}

static bool takes_more(const void *context, uint32_t a, uint32_t b)
{
	const struct groups *groups = context;
	unsigned at = host_take(groups, a, groups->slow_rate, false);
	unsigned bt = host_take(groups, b, groups->slow_rate, false);

	return at != bt ? at > bt : a < b;
}

/* Adds a tree over the hosts with the most remaining capacity. Returns its rate; 0: none. */
static double slow_add(struct groups *groups, struct shape *shape)
{
	unsigned need = groups->model->workers - 1;
	double low = 0, high = groups->rate;

	for (unsigned i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (slow_fits(groups, middle))
			low = middle;
		else
			high = middle;
	}
	if (!(low > 0))
		return 0;
	groups->slow_rate = low;
	sort_indices(groups->order, groups->n, takes_more, groups);
	shape_start(shape, low);
	for (unsigned i = 0; i < groups->n && need; i++) {
		unsigned take = host_take(groups, groups->order[i], low, false);

		take = take < need ? take : need;
		need -= take;
		if (!shape_add(shape, groups->order[i], take))
			return 0;
	}
	left_charge(groups, shape);
	return low;
}

/* Builds all trees. False: their sum is below the assumed rate. */
static bool groups_fill(struct groups *groups, struct shape *shape)
{
	double sum = 0;

	groups_part(groups);
	left_start(groups);
	shape_clear(shape);
	for (unsigned t = 0; t < groups->n_trees; t++) {
		double rate = tree_rate(groups, t);

		if (!(rate > 0))
			continue;
		sum += rate;
		shape_start(shape, rate);
		if (!tree_fits(groups, t, rate, shape))
			return false;
		left_charge(groups, shape);
	}
	for (unsigned t = 0; t < groups->n_slow; t++)
		sum += slow_add(groups, shape);
	return sum >= groups->rate;
}

bool group_fill(const struct model *model, double most, unsigned slow,
                const struct group_scratch *scratch, struct shape *shape, uint64_t *steps)
{
	struct groups groups = { .model = model,
		                 .order = scratch->order,
		                 .next = scratch->next,
		                 .left = scratch->left,
		                 .n_trees = model->trees - slow,
		                 .n_slow = slow,
		                 .steps = steps };
	double low = 0, high = most;

	/*
	 * A higher sum leaves workers' hosts less capacity for aggregation. Search for the highest
	 * sum that holds.
	 */
	for (unsigned i = 0; i < BISECTIONS / 2; i++) {
		groups.rate = i ? (low + high) / 2 : most;
		if (groups_fill(&groups, shape))
			low = groups.rate;
		else
			high = groups.rate;
		if (low == most)
			return true;
	}
	groups.rate = low;
	return low > 0 && groups_fill(&groups, shape);
}
