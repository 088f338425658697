/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/bound.h"
#include "plan/stripes/stars.h"

#define BISECTIONS 60

/* The largest take of one place. */
struct most {
	double root;  /* at the root */
	double inner; /* at another place: the root takes at least one stream itself */
};

static struct most most_find(const struct model *model)
{
	double children = model->children - 1.0, others = model->workers - 2.0;

	return (struct most){ .root = children, .inner = fmin(children, others) };
}

/*
 * The largest sum of a host's takes if the sum of all trees is `rate` and the host is never a root.
 * *gain: the increase if it is the root of some trees.
 */
static double host_take(const struct model *model, const struct model_host *host, double rate,
                        double *gain)
{
	struct most most = most_find(model);
	double link = fmin(host->in, host->out), top, take;

	/*
	 * With multicast a place sends at most two streams, whatever it takes. Ignoring the link
	 * out keeps this an upper bound.
	 */
	if (model->multicast && host->kind != MODEL_SWITCH)
		link = host->in;
	*gain = 0;
	if (!(host->cpu > 0))
		return 0;
	/*
	 * The host's cores add the streams of all children, and a place has one child more than it
	 * takes.
	 */
	top = fmin(host->cpu * most.root / (most.root + 1), most.root * rate);
	switch (host->kind) {
	case MODEL_SWITCH:
		return fmin(top, most.root * link);
	case MODEL_SERVER:
		take = fmin(top, link * most.inner / (most.inner + 2));
		*gain = fmin(top, link * most.root / (most.root + 1)) - take;
		return take;
	case MODEL_WORKER:
		take = fmin(top, fmax(link - rate, 0));
		*gain = fmin(top - take, rate);
		return take;
	}
	return 0;
}

/* The takes of all hosts at a rate. */
struct sum {
	double workers, worker_gains;
	double servers, server_gains; /* servers with one NIC */
	/*
	 * room: the sum of min(link, cores) over servers; widest: its largest term; cores: the sum
	 * over servers whose cores are the limit.
	 */
	double room, cores, widest;
};

static void sum_host(const struct model *model, const struct model_host *host, double rate,
                     struct sum *sum)
{
	double link = model->multicast ? host->in : fmin(host->in, host->out), gain;
	double take = host_take(model, host, rate, &gain);

	if (host->kind == MODEL_SERVER) {
		sum->servers += take;
		sum->server_gains += gain;
		sum->room += fmin(link, host->cpu);
		sum->cores += host->cpu < link ? host->cpu : 0;
		sum->widest = fmax(sum->widest, fmin(link, host->cpu));
	} else { /* a switch has gain 0 */
		sum->workers += take;
		sum->worker_gains += gain;
	}
}

/*
 * A bound on the sum of all servers' takes, S, for a limited number of trees.
 *
 * A server's place costs its link two streams besides those it takes, and its cores one. With
 * unlimited trees, each tree could be so slow that one place takes nearly all of it. With `trees`
 * trees: let S_t be the servers' takes in tree t, of rate x_t. The tree has at least S_t / widest
 * places, and S_t is at most (workers - 1) x_t. So one stream for each place costs at least sum(x_t
 * S_t) / widest >= sum(S_t^2) / (workers - 1) / widest >= h S^2 with h = 1 / (trees (workers - 1)
 * widest). The second stream costs as much, except where cores are the limit. Therefore S + h S^2 +
 * h max(0, S - cores)^2 is at most the capacity of all.
 */
static double servers_within(const struct model *model, const struct sum *sum, double roots)
{
	double all = sum->room + roots, h, s, b;

	if (!(sum->widest > 0))
		return 0;
	h = 1 / ((model->workers - 1) * (double)model->trees * sum->widest);
	s = (sqrt(1 + 4 * h * all) - 1) / (2 * h);
	if (s <= sum->cores)
		return s;
	b = 1 - 2 * h * sum->cores;
	return (sqrt(b * b + 8 * h * (all - h * sum->cores * sum->cores)) - b) / (4 * h);
}

/*
 * Can the takes of all hosts reach (workers - 1) rate? Every tree has one root. On a worker's host
 * the root saves a stream each way. On a server, a place needs inner + 2 streams of the link, and
 * root + 1 at the root. The slope is how much more the server takes for each root.
 */
static bool bound_holds(const struct model *model, double rate, bool few_trees)
{
	struct most most = most_find(model);
	double slope = most.root - most.inner * (most.root + 1) / (most.inner + 2);
	struct sum sum = { 0 };
	double gains, servers;

	for (unsigned i = 0; i < model->n; i++)
		sum_host(model, &model->caps[i], rate, &sum);
	gains = fmin(sum.worker_gains, rate);
	servers = sum.servers + fmin(sum.server_gains, (rate - gains) * slope);
	if (few_trees)
		servers = fmin(servers, servers_within(model, &sum, rate - gains));
	return sum.workers + gains + servers >= (model->workers - 1) * rate * (1 - 1e-12);
}

/* The highest rate up to `high` that holds. If a rate holds, all lower rates hold. */
static double bound_search(const struct model *model, double high, bool few_trees, uint64_t *steps)
{
	double low = 0;

	*steps += model->n;
	if (bound_holds(model, high, few_trees))
		return high;
	for (unsigned i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (bound_holds(model, middle, few_trees))
			low = middle;
		else
			high = middle;
	}
	*steps += (uint64_t)model->n * BISECTIONS;
	return high;
}

double bound_within(const struct model *model, double rate, uint64_t *steps)
{
	return bound_search(model, rate, true, steps);
}

struct bound bound_find(const struct model *model, uint64_t *steps)
{
	struct bound bound = { 0 };
	double links = model_worker_rate(model, &bound.host);

	bound.rate = bound_search(model, links, false, steps);
	bound.by_worker = bound.rate >= links;
	bound.within = bound_within(model, bound.rate, steps);
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
