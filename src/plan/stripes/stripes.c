/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/bound.h"
#include "plan/cluster/carve.h"
#include "plan/stripes/columns.h"
#include "plan/stripes/group.h"
#include "plan/stripes/tree_load.h"
#include "plan/stripes/pack.h"
#include "plan/stripes/stars.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define STEPS_MAX 8000000u /* search effort if a plan exists: about 0.25 s */
#define STEPS_NEAR 500000u /* search effort if the plan is near the bound */
#define WEIGHT_MAX 5       /* of heavy trees, in units of light ones */
#define NEAR 0.005         /* relative distance to the bound at which the search stops */
#define LEVEL_COST 0.002   /* fraction of the rate that one more level must gain */
#define ALIKE 0.0005       /* plans that differ by less count as equally fast; fewer trees win */
#define TREES_FEW 16u      /* first limit on trees, because each costs every rank a thread */
#define MORE_WORTH 0.01    /* distance to the bound that allows more than TREES_FEW */
/*
 * Beyond TREES_MANY, trees are added MANY_STEP at a time while the plan is more than MANY_WORTH
 * below the bound for unlimited trees.
 */
#define TREES_MANY 32u
#define MANY_WORTH 0.025
#define MANY_STEP 4u
#define STEPS_MANY 3000000u /* search effort beyond TREES_MANY, for all steps together */

/* The state and memory of a planning run. */
struct stripes {
	struct model model;
	struct pack pack;
	struct shape best, trial;
	struct load *loads;
	uint32_t *leaf, *slots;
	struct plan_verdict *verdict;
	struct load_verdict judged; /* verdict on `best` */
	double within, optimum;     /* bounds: for model.trees trees; for unlimited trees */
	uint64_t patience;          /* limit on verdict->steps */
};

static size_t stripes_carve(struct stripes *stripes, char *work, unsigned n,
                            const struct plan_limits *limits)
{
	size_t used = 0, places = (size_t)n * limits->trees;
	struct model *model = &stripes->model;

	model->n = n;
	model->caps = carve(work, &used, n, sizeof(*model->caps));
	model->ranks = carve(work, &used, n, sizeof(*model->ranks));
	model->order = carve(work, &used, n, sizeof(*model->order));
	stripes->loads = carve(work, &used, n, sizeof(*stripes->loads));
	stripes->leaf = carve(work, &used, n, sizeof(*stripes->leaf));
	stripes->slots = carve(work, &used, n, sizeof(*stripes->slots));
	stripes->pack.hosts = carve(work, &used, n, sizeof(*stripes->pack.hosts));
	stripes->pack.buckets =
		carve(work, &used, PACK_BUCKETS(limits->children), sizeof(*stripes->pack.buckets));
	stripes->best.places = carve(work, &used, places, sizeof(*stripes->best.places));
	stripes->trial.places = carve(work, &used, places, sizeof(*stripes->trial.places));
	stripes->best.places_max = stripes->trial.places_max = (unsigned)places;
	return used;
}

size_t plan_work_bytes(unsigned n, const struct plan_limits *limits)
{
	struct stripes stripes = { 0 };

	return stripes_carve(&stripes, NULL, n, limits);
}

static trib_status limits_check(const struct plan_limits *limits, unsigned n, unsigned most)
{
	if (!n || n > PLAN_HOSTS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "a plan is for 1 to %u hosts, not %u",
		                   PLAN_HOSTS_MAX, n);
	if (!limits->trees || limits->trees > most)
		return status_fail(TRIB_ERR_ARGUMENT, "a plan has 1 to %u trees, not %u", most,
		                   limits->trees);
	if (limits->children < 2 || limits->children > PLAN_HOSTS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "an aggregator has 2 to %u children, not %u",
		                   PLAN_HOSTS_MAX, limits->children);
	if (!limits->depth || !(limits->core_bps > 0))
		return status_fail(TRIB_ERR_ARGUMENT, "a plan needs a depth and a rate for each "
		                                      "core above 0");
	return TRIB_OK;
}

static unsigned shape_depth(const struct model *model, struct shape *shape)
{
	unsigned depth = 0;

	for (unsigned t = 0; t < shape->n_trees; t++) {
		unsigned of_tree = shape_arrange(model, shape, t);

		depth = of_tree > depth ? of_tree : depth;
	}
	return depth;
}

/*
 * A plan's value: its rate, less LEVEL_COST for each further level. A level adds a hop each way and
 * hosts that may fail.
 */
static double form_value(double rate, unsigned depth)
{
	return rate * (1 - LEVEL_COST * (depth - 1.0));
}

/* Of plans with equal value (ALIKE), the one with fewer trees wins, then the faster one. */
static bool trial_is_better(const struct stripes *stripes, double rate, unsigned depth)
{
	const struct plan_verdict *best = stripes->verdict;
	double value = form_value(rate, depth), old = form_value(best->rate_bps, best->depth);

	if (!(best->rate_bps > 0))
		return rate > 0;
	if (fabs(value - old) > ALIKE * old)
		return value > old;
	if (stripes->trial.n_trees != best->trees)
		return stripes->trial.n_trees < best->trees;
	return rate > best->rate_bps;
}

static void trial_judge(struct stripes *stripes)
{
	unsigned depth = shape_depth(&stripes->model, &stripes->trial);
	struct load_verdict judged = load_rate(&stripes->model, &stripes->trial, stripes->loads,
	                                       stripes->leaf, stripes->slots);

	if (judged.rate > 0 && stripes->model.workers > 1)
		judged = load_raise(&stripes->model, &stripes->trial, stripes->loads, &judged);
	if (depth > stripes->model.depth || !trial_is_better(stripes, judged.rate, depth))
		return;
	stripes->verdict->rate_bps = judged.rate;
	stripes->verdict->depth = depth;
	stripes->verdict->trees = stripes->trial.n_trees;
	stripes->judged = judged;
	shape_copy(&stripes->best, &stripes->trial);
}

/* A single worker has nothing to sum, but gets a plan too. */
static void plan_alone(struct stripes *stripes)
{
	const struct model *model = &stripes->model;

	for (uint32_t i = 0; i < model->n; i++) {
		if (!(model->caps[i].cpu > 0))
			continue;
		shape_clear(&stripes->trial);
		shape_start(&stripes->trial, 1);
		shape_add(&stripes->trial, i, 0);
		trial_judge(stripes);
	}
}

static void mix_try(struct stripes *stripes, struct pack_mix mix)
{
	for (unsigned i = 0; i < 2; i++) {
		mix.small_root = i;
		if (pack_search(&stripes->pack, &mix, stripes->within, &stripes->trial) > 0)
			trial_judge(stripes);
	}
}

/* An upper bound on the rate of all plans that the search can find. */
static double reach(const struct stripes *stripes)
{
	return fmin(stripes->within, stripes->optimum);
}

static bool is_near_reach(const struct stripes *stripes)
{
	return stripes->verdict->rate_bps >= reach(stripes) * (1 - NEAR);
}

/*
 * Is the search effort used up? Counted in steps, not in time, so that the same hosts always get
 * the same plan.
 */
static bool is_weary(const struct stripes *stripes)
{
	const struct plan_verdict *verdict = stripes->verdict;

	return verdict->rate_bps > 0 &&
	       verdict->steps > (is_near_reach(stripes) ? STEPS_NEAR : stripes->patience);
}

/* Tries trees of two different rates, for hosts whose links are not multiples of one rate. */
static void mixes_try(struct stripes *stripes)
{
	unsigned trees = stripes->model.trees;

	for (unsigned weight = 2; weight <= WEIGHT_MAX; weight++)
		for (unsigned other = 1; other < weight; other++)
			for (unsigned light = 1; light < trees; light += 1 + light / 4) {
				if (is_near_reach(stripes) || is_weary(stripes))
					return;
				mix_try(stripes, (struct pack_mix){ .heavy = trees - light,
				                                    .heavy_weight = weight,
				                                    .light = light,
				                                    .light_weight = other });
			}
}

static void groups_try(struct stripes *stripes, unsigned slow)
{
	const struct group_scratch scratch = { .order = stripes->leaf,
		                               .next = stripes->slots,
		                               .left = stripes->loads };

	if (group_fill(&stripes->model, stripes->within, slow, &scratch, &stripes->trial,
	               &stripes->verdict->steps))
		trial_judge(stripes);
}

/*
 * Tries all kinds of plans with up to model.trees trees. Plans of up to `tried` equal trees were
 * tried before.
 */
static void forms_try(struct stripes *stripes, unsigned tried)
{
	const struct model *model = &stripes->model;
	struct plan_verdict *verdict = stripes->verdict;

	if (stars_fill(model, &stripes->trial, &verdict->steps))
		trial_judge(stripes);
	/*
	 * Stars have the least depth. A plan that is within one level's cost of the bound cannot be
	 * beaten by a deeper one.
	 */
	if (verdict->depth == 1 && verdict->rate_bps >= reach(stripes) * (1 - LEVEL_COST))
		return;
	stripes->optimum =
		fmin(stripes->optimum, columns_fill(model, &stripes->trial, &verdict->steps));
	if (stripes->trial.n_trees)
		trial_judge(stripes);
	groups_try(stripes, 0);
	for (unsigned trees = model->trees; trees > tried && !is_weary(stripes);
	     trees -= 1 + trees / 32)
		mix_try(stripes, (struct pack_mix){ .heavy = trees, .heavy_weight = 1 });
	for (unsigned slow = 1; slow <= model->trees / 4; slow += 1 + slow / 4)
		if (!is_near_reach(stripes) && !is_weary(stripes))
			groups_try(stripes, slow);
	mixes_try(stripes);
}

static void trees_allow(struct stripes *stripes, unsigned trees)
{
	struct plan_verdict *verdict = stripes->verdict;

	stripes->model.trees = trees;
	stripes->within = bound_within(&stripes->model, verdict->bound_bps, &verdict->steps);
}

/* Would a plan with still more trees be worth them? */
static bool is_far_behind(const struct stripes *stripes)
{
	return stripes->verdict->rate_bps < stripes->optimum * (1 - MANY_WORTH);
}

/* Tries more and more trees: equal ones, and groups of hosts. Both are quick to build. */
static void many_try(struct stripes *stripes, unsigned most)
{
	if (!(stripes->verdict->rate_bps > 0))
		return; /* no host can aggregate, whatever the number of trees */
	stripes->patience = stripes->verdict->steps + STEPS_MANY;
	while (stripes->model.trees < most && is_far_behind(stripes)) {
		unsigned more = stripes->model.trees + MANY_STEP, trees = more < most ? more : most;

		trees_allow(stripes, trees);
		if (!is_weary(stripes))
			mix_try(stripes, (struct pack_mix){ .heavy = trees, .heavy_weight = 1 });
		for (unsigned slow = 0; slow <= trees / 4; slow = slow ? 2 * slow : 1)
			if (is_far_behind(stripes) && !is_weary(stripes))
				groups_try(stripes, slow);
	}
}

static void plan_search(struct stripes *stripes)
{
	struct plan_verdict *verdict = stripes->verdict;
	unsigned most = stripes->model.trees, some = most, few;

	/*
	 * A caller that asks for more trees than a job may have wants the best plan with all of
	 * them.
	 */
	if (most > TREES_MANY && most <= FOREST_TREES_MAX)
		some = TREES_MANY;
	few = some < TREES_FEW ? some : TREES_FEW;
	stripes->patience = STEPS_MAX;
	trees_allow(stripes, some);
	stripes->model.trees = few;
	forms_try(stripes, 0);
	stripes->model.trees = some;
	if (some > few && !is_weary(stripes) &&
	    verdict->rate_bps < reach(stripes) * (1 - MORE_WORTH))
		forms_try(stripes, few);
	many_try(stripes, most);
}

static void verdict_explain(const struct stripes *stripes, const struct bound *bound)
{
	const struct model *model = &stripes->model;
	struct plan_verdict *verdict = stripes->verdict;
	char what[160];

	if (bound->by_worker) {
		load_name(model, bound->host,
		          model->caps[bound->host].in < model->caps[bound->host].out ? LOAD_IN
		                                                                     : LOAD_OUT,
		          what, sizeof(what));
		snprintf(verdict->bounded, sizeof(verdict->bounded),
		         "%s, which all vectors must pass", what);
	} else {
		snprintf(verdict->bounded, sizeof(verdict->bounded),
		         "the links and cores of all hosts that may aggregate");
	}
	load_name(model, stripes->judged.host, stripes->judged.what, what, sizeof(what));
	snprintf(verdict->limit, sizeof(verdict->limit), "%s", what);
}

static unsigned aggregators_count(struct stripes *stripes)
{
	const struct shape *shape = &stripes->best;
	unsigned count = 0;

	memset(stripes->slots, 0, stripes->model.n * sizeof(*stripes->slots));
	for (unsigned i = 0; i < shape->n_places; i++)
		count += !stripes->slots[shape->places[i].host]++;
	return count;
}

static void verdict_fill(struct stripes *stripes)
{
	struct plan_verdict *verdict = stripes->verdict;
	const struct model *model = &stripes->model;
	struct bound bound = bound_find(model, &verdict->steps);

	verdict->workers = model->workers;
	verdict->bound_bps = bound.rate;
	verdict->within_bps = bound.within;
	if (model->workers == 1) {
		plan_alone(stripes);
		verdict->bound_bps = verdict->within_bps = verdict->rate_bps;
		verdict->star_bps = verdict->ring_bps = verdict->rate_bps;
	} else {
		verdict->star_bps = bound_star(model);
		verdict->ring_bps = bound_ring(model);
		stripes->optimum = bound.rate;
		plan_search(stripes);
	}
	verdict->aggregators = aggregators_count(stripes);
	verdict_explain(stripes, &bound);
}

trib_status plan_stripes(const struct plan_host *hosts, unsigned n,
                         const struct plan_limits *limits, void *work, size_t work_bytes,
                         struct forest *out, struct plan_verdict *verdict)
{
	struct stripes stripes = { .model.hosts = hosts, .verdict = verdict };
	trib_status status = limits_check(limits, n, out ? FOREST_TREES_MAX : PLAN_TREES_MAX);

	*verdict = (struct plan_verdict){ 0 };
	if (status != TRIB_OK)
		return status;
	if (work_bytes < plan_work_bytes(n, limits))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a plan for %u hosts needs %zu bytes, not %zu", n,
		                   plan_work_bytes(n, limits), work_bytes);
	stripes_carve(&stripes, work, n, limits);
	stripes.pack.model = &stripes.model;
	stripes.pack.steps = &verdict->steps;
	if ((status = model_fill(&stripes.model, limits)) != TRIB_OK)
		return status;
	if (out && stripes.model.workers > TREE_RANKS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "a forest has up to %u ranks, not %u",
		                   TREE_RANKS_MAX, stripes.model.workers);
	verdict_fill(&stripes);
	if (!(verdict->rate_bps > 0))
		return status_fail(
			TRIB_ERR_CONFIG,
			"no host can aggregate: either none may and has an idle core and "
			"memory, or depth %u with %u children is too little for %u "
			"workers",
			limits->depth, limits->children, stripes.model.workers);
	if (out)
		shape_forest(&stripes.model, &stripes.best, out);
	return TRIB_OK;
}

double plan_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                 const struct forest *forest, void *work, size_t work_bytes)
{
	struct stripes stripes = { .model.hosts = hosts };

	if (work_bytes < plan_work_bytes(n, limits))
		return 0;
	stripes_carve(&stripes, work, n, limits);
	if (model_fill(&stripes.model, limits) != TRIB_OK)
		return 0;
	return load_forest(&stripes.model, forest, stripes.loads).rate;
}

double plan_seconds(uint64_t bytes, double bps)
{
	return bps > 0 ? 8.0 * (double)bytes / bps : INFINITY;
}
