/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/tree_load.h"

#include <stdio.h>
#include <string.h>

void load_edge(const struct model *model, struct load *loads, uint32_t child, uint32_t aggregator,
               double rate)
{
	loads[aggregator].cpu += rate;
	if (child == aggregator)
		return;
	if (model->caps[child].kind != MODEL_SWITCH) {
		loads[child].out += rate;
		loads[child].in += rate;
	}
	if (model->caps[aggregator].kind == MODEL_SWITCH)
		return;
	loads[aggregator].in += rate;
	if (!model->multicast)
		loads[aggregator].out += rate;
}

void load_place(const struct model *model, struct load *loads, uint32_t host, double rate)
{
	if (model->caps[host].kind == MODEL_SWITCH) {
		/* Each neighbour has its own port, so the load of one port is the switch's load. */
		loads[host].in += rate;
		loads[host].out += rate;
	} else if (model->multicast) {
		loads[host].out += rate; /* one multicast copy of the result */
	}
}

static void load_tree(const struct model *model, const struct shape *shape, unsigned tree,
                      struct load *loads, uint32_t *leaf, uint32_t *slots)
{
	const struct shape_place *places = shape->places + shape->trees[tree].first;
	double rate = shape->trees[tree].rate;

	shape_leaves(model, shape, tree, leaf, slots);
	for (unsigned r = 0; r < model->workers; r++)
		load_edge(model, loads, model->ranks[r], places[leaf[r]].host, rate);
	for (unsigned i = 0; i < shape->trees[tree].n; i++) {
		load_place(model, loads, places[i].host, rate);
		if (i)
			load_edge(model, loads, places[i].host, places[places[i].parent].host,
			          rate);
	}
}

static void load_compare(struct load_verdict *verdict, double *worst, unsigned host,
                         enum load_what what, double load, double capacity)
{
	double use = capacity > 0 ? load / capacity : load > 0 ? INFINITY : 0;

	if (use > *worst) {
		*worst = use;
		verdict->host = host;
		verdict->what = what;
	}
}

struct load_verdict load_judge(const struct model *model, const struct load *loads, double total)
{
	struct load_verdict verdict = { 0 };
	double worst = 0;

	for (unsigned i = 0; i < model->n; i++) {
		const struct model_host *host = &model->caps[i];

		load_compare(&verdict, &worst, i, LOAD_IN, loads[i].in, host->in);
		load_compare(&verdict, &worst, i, LOAD_OUT, loads[i].out, host->out);
		load_compare(&verdict, &worst, i, LOAD_CPU, loads[i].cpu, host->cpu);
	}
	verdict.rate = worst > 0 && isfinite(worst) ? total / worst : 0;
	return verdict;
}

struct load_verdict load_rate(const struct model *model, const struct shape *shape,
                              struct load *loads, uint32_t *leaf, uint32_t *slots)
{
	double total = 0;

	memset(loads, 0, model->n * sizeof(*loads));
	for (unsigned t = 0; t < shape->n_trees; t++) {
		load_tree(model, shape, t, loads, leaf, slots);
		total += shape->trees[t].rate;
	}
	return load_judge(model, loads, total);
}

static uint32_t host_of(const struct model *model, const char *address)
{
	uint32_t host = 0;

	while (host < model->n && strcmp(model->hosts[host].address, address) != 0)
		host++;
	return host;
}

/* Adds the load of a given tree. False: it names an unknown aggregator, or lacks a rank. */
static bool load_given(const struct model *model, const struct tree *tree, struct load *loads)
{
	uint32_t hosts[TREE_RANKS_MAX];

	for (unsigned i = 0; i < tree->n_nodes; i++) {
		hosts[i] = host_of(model, tree->nodes[i].name);
		if (hosts[i] == model->n)
			return false;
		load_place(model, loads, hosts[i], tree->share);
		if (i)
			load_edge(model, loads, hosts[i], hosts[tree->nodes[i].parent],
			          tree->share);
	}
	for (unsigned r = 0; r < model->workers; r++) {
		int leaf = tree_leaf(tree, r);

		if (leaf < 0)
			return false;
		load_edge(model, loads, model->ranks[r], hosts[leaf], tree->share);
	}
	return true;
}

struct load_verdict load_forest(const struct model *model, const struct forest *forest,
                                struct load *loads)
{
	double total = 0;

	memset(loads, 0, model->n * sizeof(*loads));
	for (unsigned t = 0; t < forest->n_trees; t++) {
		if (!load_given(model, &forest->trees[t], loads))
			return (struct load_verdict){ 0 };
		total += forest->trees[t].share;
	}
	return load_judge(model, loads, total);
}

/* The cost of a place and of the worker on its host together. */
static struct model_cost place_cost(const struct model *model, const struct shape_place *place)
{
	enum model_kind kind = model->caps[place->host].kind;
	struct model_cost cost = model_cost(model, kind, place->take, place->parent < 0);

	cost.in += kind == MODEL_WORKER;
	cost.out += kind == MODEL_WORKER;
	return cost;
}

static double spare(double capacity, double load, unsigned cost)
{
	return cost ? fmax(capacity - load, 0) / cost : INFINITY;
}

/* How much faster the tree could be, given its places and the links of all workers. */
static double tree_spare(const struct model *model, const struct shape *shape, unsigned tree,
                         const struct load *loads)
{
	const struct shape_place *places = shape->places + shape->trees[tree].first;
	double more = INFINITY;

	for (unsigned r = 0; r < model->workers; r++) {
		uint32_t i = model->ranks[r];

		more = fmin(more, spare(model->caps[i].in, loads[i].in, 1));
		more = fmin(more, spare(model->caps[i].out, loads[i].out, 1));
	}
	for (unsigned p = 0; p < shape->trees[tree].n && more > 0; p++) {
		struct model_cost cost = place_cost(model, &places[p]);
		uint32_t i = places[p].host;

		more = fmin(more, spare(model->caps[i].in, loads[i].in, cost.in));
		more = fmin(more, spare(model->caps[i].out, loads[i].out, cost.out));
		more = fmin(more, spare(model->caps[i].cpu, loads[i].cpu, cost.cpu));
	}
	return more;
}

static void tree_charge(const struct model *model, const struct shape *shape, unsigned tree,
                        struct load *loads, double rate)
{
	const struct shape_place *places = shape->places + shape->trees[tree].first;

	for (unsigned r = 0; r < model->workers; r++) {
		loads[model->ranks[r]].in += rate;
		loads[model->ranks[r]].out += rate;
	}
	for (unsigned p = 0; p < shape->trees[tree].n; p++) {
		struct model_cost cost = model_cost(model, model->caps[places[p].host].kind,
		                                    places[p].take, places[p].parent < 0);

		loads[places[p].host].in += rate * cost.in;
		loads[places[p].host].out += rate * cost.out;
		loads[places[p].host].cpu += rate * cost.cpu;
	}
}

struct load_verdict load_raise(const struct model *model, struct shape *shape, struct load *loads,
                               const struct load_verdict *verdict)
{
	double total = 0, factor;

	for (unsigned t = 0; t < shape->n_trees; t++)
		total += shape->trees[t].rate;
	factor = verdict->rate / total;
	for (unsigned i = 0; i < model->n; i++) {
		loads[i].in *= factor;
		loads[i].out *= factor;
		loads[i].cpu *= factor;
	}
	total = 0;
	for (unsigned t = 0; t < shape->n_trees; t++) {
		double more = tree_spare(model, shape, t, loads);

		tree_charge(model, shape, t, loads, more);
		shape->trees[t].rate = shape->trees[t].rate * factor + more;
		total += shape->trees[t].rate;
	}
	return load_judge(model, loads, total);
}

void load_name(const struct model *model, unsigned host, enum load_what what, char *out,
               size_t size)
{
	const struct plan_host *about = &model->hosts[host];
	double bps = what == LOAD_IN ? about->in_bps : about->out_bps;

	if (what == LOAD_CPU)
		snprintf(out, size, "%s's %g idle cores", about->name, about->idle_cores);
	else
		snprintf(out, size, "%s's %g %s link %s", about->name,
		         bps >= 1e9 ? bps / 1e9 : bps / 1e6, bps >= 1e9 ? "Gb/s" : "Mb/s",
		         what == LOAD_IN ? "in" : "out");
}
