/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/load.h"

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
		/* Each neighbour has a port: one port's load is the switch's. */
		loads[host].in += rate;
		loads[host].out += rate;
	} else if (model->multicast) {
		loads[host].out += rate; /* the one copy of the result */
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
