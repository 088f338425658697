/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/bound.h"
#include "plan/stars.h"

#define BISECTIONS 60

/*
 * The most that a host can take away when the sum of all trees is `rate`: with
 * no tree's root on it, and in *gain what being the root of some could add.
 * `most` is how many streams one place takes away at most, so that t streams
 * take at least t / most places.
 */
static double host_take(const struct model *model, const struct model_host *host, double rate,
                        double *gain)
{
	double most = model->children - 1, link = fmin(host->in, host->out), top, take;

	/* With many trees the copies of results are sent from roots, at no cost beyond. */
	if (model->multicast && host->kind != MODEL_SWITCH)
		link = host->in;
	*gain = 0;
	if (!(host->cpu > 0))
		return 0;
	/* Its cores add what all children send, and a place has one more than it takes. */
	top = fmin(host->cpu * most / (most + 1), most * rate);
	switch (host->kind) {
	case MODEL_SWITCH:
		return fmin(top, most * link);
	case MODEL_SERVER:
		take = fmin(top, link * most / (most + 2));
		*gain = fmin(top, link * most / (most + 1)) - take;
		return take;
	case MODEL_WORKER:
		take = fmin(top, fmax(link - rate, 0));
		*gain = fmin(top - take, rate);
		return take;
	}
	return 0;
}

static bool bound_holds(const struct model *model, double rate)
{
	double takes = 0, worker_gains = 0, server_gains = 0, server_share, gains;
	double most = model->children - 1;

	for (unsigned i = 0; i < model->n; i++) {
		double gain;

		takes += host_take(model, &model->caps[i], rate, &gain);
		if (model->caps[i].kind == MODEL_WORKER)
			worker_gains += gain;
		else
			server_gains += gain;
	}
	/* Every tree has one root. On a worker's host it saves a stream each way; a
	   server of `most` takes needs `most + 2` of its link, so it gains less. */
	gains = fmin(worker_gains, rate);
	server_share = (rate - gains) * most / (most + 2);
	return takes + gains + fmin(server_gains, server_share) >=
	       (model->workers - 1) * rate * (1 - 1e-12);
}

struct bound bound_find(const struct model *model, uint64_t *steps)
{
	struct bound bound = { .by_worker = true };
	double low = 0, high;

	bound.rate = high = model_worker_rate(model, &bound.host);
	*steps += model->n;
	if (bound_holds(model, high))
		return bound;
	bound.by_worker = false;
	for (unsigned i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (bound_holds(model, middle))
			low = middle;
		else
			high = middle;
	}
	*steps += (uint64_t)model->n * BISECTIONS;
	bound.rate = high;
	return bound;
}

double bound_star(const struct model *model)
{
	double best = 0;
	unsigned slowest;
	double most = model_worker_rate(model, &slowest);

	for (unsigned i = 0; i < model->n; i++)
		best = fmax(best, star_alone(model, &model->caps[i]));
	return fmin(best, most);
}

double bound_ring(const struct model *model)
{
	unsigned slowest;
	double w = model->workers;

	return model_worker_rate(model, &slowest) * w / (2 * (w - 1));
}
