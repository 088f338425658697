/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/stars.h"

#define BISECTIONS 60

/* The rate of the host's star if all trees together have `rate`. */
static double star_rate(const struct model *model, const struct model_host *host, double rate)
{
	struct model_cost cost = model_cost(model, host->kind, model->workers - 1, true);
	double star = host->cpu / cost.cpu;

	if (cost.in)
		star = fmin(star, model_spare(host, host->in, rate) / cost.in);
	if (cost.out)
		star = fmin(star, model_spare(host, host->out, rate) / cost.out);
	return fmax(star, 0);
}

/*
 * The star's rate equals the sum of all trees. On a worker's host the star and the worker share the
 * link.
 */
double star_alone(const struct model *model, const struct model_host *host)
{
	struct model_cost cost = model_cost(model, host->kind, model->workers - 1, true);
	unsigned own = host->kind == MODEL_WORKER;

	return fmin(host->cpu / cost.cpu,
	            fmin(host->in / fmax(cost.in + own, 1), host->out / fmax(cost.out + own, 1)));
}

struct chosen {
	unsigned n;
	double sum;
	uint32_t hosts[PLAN_TREES_MAX];
	double rates[PLAN_TREES_MAX];
};

/*
 * Of two equally fast stars, prefer the one on an idle server: it leaves the workers' links free.
 */
static bool star_before(const struct model *model, const struct chosen *chosen, unsigned at,
                        double rate, uint32_t host)
{
	if (fabs(chosen->rates[at] - rate) > 1e-9 * rate)
		return chosen->rates[at] > rate;
	return model->caps[chosen->hosts[at]].kind != MODEL_WORKER ||
	       model->caps[host].kind == MODEL_WORKER;
}

/* Chooses the fastest stars for this sum of rates, sorted by speed. */
static void stars_choose(const struct model *model, double rate, struct chosen *chosen)
{
	chosen->n = 0;
	chosen->sum = 0;
	for (unsigned i = 0; i < model->n; i++) {
		double star = star_rate(model, &model->caps[i], rate);
		unsigned at = chosen->n;

		if (star <= 0 ||
		    (at && at == model->trees && star_before(model, chosen, at - 1, star, i)))
			continue;
		if (at && at == model->trees)
			at--;
		else
			chosen->n++;
		for (; at && !star_before(model, chosen, at - 1, star, i); at--) {
			chosen->rates[at] = chosen->rates[at - 1];
			chosen->hosts[at] = chosen->hosts[at - 1];
		}
		chosen->rates[at] = star;
		chosen->hosts[at] = i;
	}
	for (unsigned i = 0; i < chosen->n; i++)
		chosen->sum += chosen->rates[i];
}

bool stars_fill(const struct model *model, struct shape *shape, uint64_t *steps)
{
	struct chosen chosen;
	unsigned slowest;
	double low = 0, high = model_worker_rate(model, &slowest), left;

	shape_clear(shape);
	if (model->workers > model->children)
		return false;
	for (unsigned i = 0; i < BISECTIONS; i++) {
		/* Try the highest rate first: often the workers' own links are the limit. */
		double middle = i ? (low + high) / 2 : high;

		stars_choose(model, middle, &chosen);
		*steps += model->n;
		if (chosen.sum >= middle) {
			low = middle;
			if (!i)
				break;
		} else {
			high = middle;
		}
	}
	stars_choose(model, low, &chosen);
	/*
	 * The stars can carry more than needed. The fastest get as much as they can carry, so that
	 * there are few trees.
	 */
	left = low;
	for (unsigned i = 0; i < chosen.n && left > low * 1e-6; i++) {
		double rate = fmin(chosen.rates[i], left);

		shape_start(shape, rate);
		if (!shape_add(shape, chosen.hosts[i], model->workers - 1))
			return false;
		left -= rate;
	}
	return shape->n_trees > 0;
}
