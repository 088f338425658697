/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/group.h"
#include "plan/sort.h"

#define BISECTIONS 30
#define STREAMS_MAX 10000000.0 /* more than any host has use for */

struct groups {
	const struct model *model;
	double rate;      /* of all trees together */
	uint32_t *order;  /* hosts that may aggregate, the strongest first */
	uint32_t *group;  /* of each in the order */
	unsigned n;       /* hosts in the order */
	unsigned n_trees; /* groups */
	uint64_t *steps;
};

/* What a host has for trees, as far as one figure can say. */
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

/* The strongest first, each into the group that has least. */
static void groups_part(struct groups *groups)
{
	double strength[PLAN_TREES_MAX] = { 0 };

	groups->n = 0;
	for (uint32_t i = 0; i < groups->model->n; i++)
		if (host_strength(groups, i) > 0)
			groups->order[groups->n++] = i;
	sort_indices(groups->order, groups->n, host_before, groups);
	for (unsigned i = 0; i < groups->n; i++) {
		unsigned least = 0;

		for (unsigned t = 1; t < groups->n_trees; t++)
			if (strength[t] < strength[least])
				least = t;
		groups->group[i] = least;
		strength[least] += host_strength(groups, groups->order[i]);
	}
	*groups->steps += groups->n * (uint64_t)(groups->n_trees / 8 + 1);
}

static unsigned host_take(const struct groups *groups, uint32_t i, double rate, bool is_root)
{
	const struct model *model = groups->model;
	const struct model_host *host = &model->caps[i];
	double in = model_spare(host, host->in, groups->rate) / rate * (1 + 1e-9);
	double out = model_spare(host, host->out, groups->rate) / rate * (1 + 1e-9);
	int32_t take = model_room(model, host->kind, (int32_t)fmin(in, STREAMS_MAX),
	                          (int32_t)fmin(out, STREAMS_MAX),
	                          (int32_t)fmin(host->cpu / rate, STREAMS_MAX), is_root);

	if (take < 0)
		return 0;
	return (unsigned)take < model->children - 1 ? (unsigned)take : model->children - 1;
}

/* Whether a tree of the group can have this rate; its places into the shape, where there is one. */
static bool tree_fits(const struct groups *groups, unsigned tree, double rate, struct shape *shape)
{
	unsigned need = groups->model->workers - 1;
	bool is_root = true;

	for (unsigned i = 0; i < groups->n && need; i++) {
		unsigned take;

		if (groups->group[i] != tree)
			continue;
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

/* The fastest that the group's tree can be; 0: it has none. */
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

/* All trees at once; false where they are not as fast as was assumed. */
static bool groups_fill(struct groups *groups, struct shape *shape)
{
	double sum = 0;

	groups_part(groups);
	shape_clear(shape);
	for (unsigned t = 0; t < groups->n_trees; t++) {
		double rate = tree_rate(groups, t);

		if (!(rate > 0))
			continue;
		sum += rate;
		shape_start(shape, rate);
		if (!tree_fits(groups, t, rate, shape))
			return false;
	}
	return sum >= groups->rate;
}

bool group_fill(const struct model *model, double most, uint32_t *order, uint32_t *group,
                struct shape *shape, uint64_t *steps)
{
	struct groups groups = { .model = model,
		                 .order = order,
		                 .group = group,
		                 .n_trees = model->trees,
		                 .steps = steps };
	double low = 0, high = most;

	/* The faster all are, the less workers' hosts have for their trees. */
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
