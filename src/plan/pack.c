/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pack.h"

#define NOBODY UINT32_MAX
#define STREAMS_MAX 1000000.0 /* more than any host has use for */
#define CLOSER 12             /* halvings of the step in which the fastest was found */

static int32_t streams(double bps, double rate)
{
	return (int32_t)floor(fmin(bps / rate * (1 + 1e-9), STREAMS_MAX));
}

static int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* The most that the host can take away in one place, with what it has left. */
static int32_t host_take(const struct pack *pack, uint32_t i, bool is_root)
{
	const struct model *model = pack->model;
	const struct pack_host *host = &pack->hosts[i];
	enum model_kind kind = model->caps[i].kind;
	int32_t take = least((int32_t)model->children - 1, host->cpu - 1);
	/* What a place costs beside the streams that it takes away; see model_cost. */
	int32_t beside = (kind == MODEL_SERVER ? 2 : 0) - is_root;

	if (kind == MODEL_SWITCH)
		return host->in >= 1 && host->out >= 1 ? take : 0;
	take = least(take, host->in - beside);
	if (!model->multicast)
		return least(take, host->out - beside);
	return host->out >= (kind == MODEL_SERVER ? 2 : 1) - is_root ? take : 0;
}

static void host_charge(struct pack *pack, uint32_t i, unsigned take, bool is_root)
{
	struct model_cost cost = model_cost(pack->model, pack->model->caps[i].kind, take, is_root);

	pack->hosts[i].in -= (int32_t)cost.in;
	pack->hosts[i].out -= (int32_t)cost.out;
	pack->hosts[i].cpu -= (int32_t)cost.cpu;
}

/* Bucket 0 is for those that are of use as a root only. */
static void bucket_put(struct pack *pack, uint32_t i)
{
	int32_t take = host_take(pack, i, false);

	if (take < 1 && host_take(pack, i, true) < 1)
		return;
	take = take < 0 ? 0 : take;
	pack->hosts[i].next = pack->buckets[take];
	pack->buckets[take] = i;
}

static uint32_t bucket_pop(struct pack *pack, unsigned bucket)
{
	uint32_t i = pack->buckets[bucket];

	if (i != NOBODY)
		pack->buckets[bucket] = pack->hosts[i].next;
	(*pack->steps)++;
	return i;
}

/* What every host has for trees of this rate; false where it cannot be enough. */
static bool pack_start(struct pack *pack, unsigned trees, double rate)
{
	const struct model *model = pack->model;
	double all = rate * trees, takes = trees;
	unsigned slowest;

	*pack->steps += model->n;
	if (all > model_worker_rate(model, &slowest) * (1 + 1e-9))
		return false;
	for (unsigned b = 0; b < model->children; b++)
		pack->buckets[b] = NOBODY;
	for (uint32_t i = model->n; i-- > 0;) {
		const struct model_host *host = &model->caps[i];
		struct pack_host *left = &pack->hosts[i];

		left->in = streams(fmax(model_spare(host, host->in, all), 0), rate);
		left->out = streams(fmax(model_spare(host, host->out, all), 0), rate);
		left->cpu = streams(host->cpu, rate);
		takes += fmin(left->cpu, host->kind == MODEL_SWITCH ? STREAMS_MAX : left->in + 1);
		if (left->cpu > 1)
			bucket_put(pack, i);
	}
	return takes >= (double)trees * (model->workers - 1);
}

static int top_bucket(const struct pack *pack)
{
	int top = (int)pack->model->children - 1;

	while (top >= 0 && pack->buckets[top] == NOBODY)
		top--;
	return top;
}

static bool place_take(struct pack *pack, struct shape *shape, unsigned bucket, unsigned need,
                       bool is_root, unsigned *took)
{
	uint32_t i = bucket_pop(pack, bucket);
	unsigned take = (unsigned)host_take(pack, i, is_root);

	*took = take < need ? take : need;
	host_charge(pack, i, *took, is_root);
	return shape_add(shape, i, *took);
}

/* A tree of the largest places there are; the last place is the smallest that will do. */
static bool tree_fill(struct pack *pack, struct shape *shape, double rate)
{
	unsigned need = pack->model->workers - 1, took, first = shape->n_places;
	bool is_root = true;

	shape_start(shape, rate);
	while (need) {
		int bucket = top_bucket(pack);

		if (bucket < 0 || (bucket == 0 && !is_root))
			return false;
		if (!is_root && (unsigned)bucket > need) {
			bucket = (int)need;
			while (pack->buckets[bucket] == NOBODY)
				bucket++;
		}
		if (!place_take(pack, shape, (unsigned)bucket, need, is_root, &took))
			return false;
		need -= took;
		is_root = false;
	}
	/* A host is in a tree once: only now may it be taken again. */
	for (unsigned i = first; i < shape->n_places; i++)
		bucket_put(pack, shape->places[i].host);
	return shape_arrange(pack->model, shape, shape->n_trees - 1) <= pack->model->depth;
}

bool pack_fill(struct pack *pack, unsigned trees, double rate, struct shape *shape)
{
	shape_clear(shape);
	if (!pack_start(pack, trees, rate))
		return false;
	for (unsigned t = 0; t < trees; t++)
		if (!tree_fill(pack, shape, rate))
			return false;
	return true;
}

double pack_search(struct pack *pack, unsigned trees, double most, struct shape *shape)
{
	double step = 0.99, fits = most / trees, fails = fits;

	/* Not by halves from the start: where a rate does not fit, a higher one may. */
	for (unsigned i = 0; !pack_fill(pack, trees, fits, shape); i++) {
		if (i == 100)
			return 0;
		fails = fits;
		fits *= step;
		step = i < 40 ? 0.99 : 0.9;
	}
	for (unsigned i = 0; i < CLOSER && fails > fits; i++) {
		double middle = (fits + fails) / 2;

		if (pack_fill(pack, trees, middle, shape))
			fits = middle;
		else
			fails = middle;
	}
	return pack_fill(pack, trees, fits, shape) ? fits : 0;
}
