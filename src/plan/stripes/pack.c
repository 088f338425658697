/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/pack.h"

#define NOBODY UINT32_MAX
#define UNITS_MAX 10000000.0 /* upper bound, so that the count fits int32_t */
#define STEPS_FINE 40        /* steps of 1 % down from the bound */
#define STEPS_COARSE 60      /* further steps of 10 % */
#define CLOSER 10            /* bisections between the last two steps */
#define CLOSER_ONE 40        /* bisections for a single tree: the result is then the optimum */

static int32_t units(double bps, double unit)
{
	return (int32_t)floor(fmin(bps / unit * (1 + 1e-9), UNITS_MAX));
}

static int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* The host's largest take in a tree, without the limit on children. */
static int32_t host_room(const struct pack *pack, uint32_t i, int32_t weight, bool is_root)
{
	const struct pack_host *host = &pack->hosts[i];

	return model_room(pack->model, pack->model->caps[i].kind, host->in / weight,
	                  host->out / weight, host->cpu / weight, is_root);
}

/* The host's largest take in a tree, with the limit on children. */
static int32_t host_take(const struct pack *pack, uint32_t i, int32_t weight, bool is_root)
{
	return least(host_room(pack, i, weight, is_root), (int32_t)pack->model->children - 1);
}

static void host_charge(struct pack *pack, uint32_t i, unsigned take, int32_t weight, bool is_root)
{
	struct model_cost cost = model_cost(pack->model, pack->model->caps[i].kind, take, is_root);

	pack->hosts[i].in -= (int32_t)cost.in * weight;
	pack->hosts[i].out -= (int32_t)cost.out * weight;
	pack->hosts[i].cpu -= (int32_t)cost.cpu * weight;
}

/*
 * Puts a host into its bucket. For each possible take there are two buckets: one for hosts that
 * could take one more as the root, one for the others. Higher buckets are for hosts with room for
 * several full places, by their number. Hosts with the most room are used first, so that no host is
 * used up early. Level 0 is for hosts that fit as a root only.
 */
static void bucket_put(struct pack *pack, uint32_t i, int32_t weight)
{
	int32_t room = host_room(pack, i, weight, false), level = room;
	int32_t most = (int32_t)pack->model->children - 1;
	bool gains = host_room(pack, i, weight, true) > room && room < most;
	uint32_t *bucket;

	(*pack->steps)++;
	if (room < 1 && host_room(pack, i, weight, true) < 1)
		return;
	if (room > most)
		level = most + least(room / most, PACK_FULL_MAX);
	bucket = &pack->buckets[2 * (level < 0 ? 0 : level) + !gains];
	pack->hosts[i].next = *bucket;
	*bucket = i;
}

/* Puts all hosts into the buckets for trees of this weight. */
static void buckets_fill(struct pack *pack, int32_t weight)
{
	for (unsigned b = 0; b < PACK_BUCKETS(pack->model->children); b++)
		pack->buckets[b] = NOBODY;
	for (uint32_t i = pack->model->n; i-- > 0;)
		if (pack->hosts[i].cpu > weight)
			bucket_put(pack, i, weight);
}

/* The highest bucket that is not empty; -1: none. */
static int bucket_top(const struct pack *pack)
{
	int top = (int)PACK_BUCKETS(pack->model->children) - 1;

	while (top >= 0 && pack->buckets[top] == NOBODY)
		top--;
	return top;
}

/* The first nonempty bucket of at least this level. There must be one. */
static int bucket_from(const struct pack *pack, int level)
{
	int bucket = 2 * level;

	while (pack->buckets[bucket] == NOBODY)
		bucket++;
	return bucket;
}

/*
 * The bucket to take the root from: hosts with the largest (or, with `small`, the smallest) room,
 * preferably those that gain as a root.
 */
static int bucket_root(const struct pack *pack, int top, bool small)
{
	int gains = small ? 0 : top & ~1;

	while (gains <= top && pack->buckets[gains] == NOBODY)
		gains += 2;
	if (gains <= top)
		return gains;
	return small ? bucket_from(pack, 0) : top;
}

/* Converts every host's capacity to units. False: it is too little in all. */
static bool hosts_count(struct pack *pack, unsigned all, double unit)
{
	const struct model *model = pack->model;
	double rate = unit * all, takes = all;

	*pack->steps += model->n;
	for (uint32_t i = 0; i < model->n; i++) {
		const struct model_host *host = &model->caps[i];
		struct pack_host *left = &pack->hosts[i];

		left->in = units(fmax(model_spare(host, host->in, rate), 0), unit);
		left->out = units(fmax(model_spare(host, host->out, rate), 0), unit);
		left->cpu = units(host->cpu, unit);
		takes += fmin(left->cpu, host->kind == MODEL_SWITCH ? UNITS_MAX : left->in);
	}
	return takes >= (double)all * (model->workers - 1);
}

static bool place_take(struct pack *pack, struct shape *shape, unsigned bucket, int32_t weight,
                       unsigned *need, bool is_root)
{
	uint32_t i = pack->buckets[bucket];
	unsigned take = (unsigned)host_take(pack, i, weight, is_root);

	pack->buckets[bucket] = pack->hosts[i].next;
	take = take < *need ? take : *need;
	*need -= take;
	host_charge(pack, i, take, weight, is_root);
	return shape_add(shape, i, take);
}

/* Builds a tree from the largest places. The last place is the smallest that suffices. */
static bool tree_fill(struct pack *pack, struct shape *shape, int32_t weight, double unit,
                      bool small_root)
{
	unsigned need = pack->model->workers - 1, first = shape->n_places;
	bool is_root = true;

	shape_start(shape, weight * unit);
	for (; need; is_root = false) {
		int bucket = bucket_top(pack);

		if (bucket < 0 || (bucket < 2 && !is_root))
			return false;
		if (is_root)
			bucket = bucket_root(pack, bucket, small_root);
		else if ((unsigned)bucket / 2 > need)
			bucket = bucket_from(pack, (int)need);
		if (!place_take(pack, shape, (unsigned)bucket, weight, &need, is_root))
			return false;
	}
	/* A host has at most one place in a tree, so hosts return to the buckets only now. */
	for (unsigned i = first; i < shape->n_places; i++)
		bucket_put(pack, shape->places[i].host, weight);
	return shape_arrange(pack->model, shape, shape->n_trees - 1) <= pack->model->depth;
}

static bool trees_fill(struct pack *pack, struct shape *shape, unsigned trees, unsigned weight,
                       double unit, bool small_root)
{
	if (!trees)
		return true;
	buckets_fill(pack, (int32_t)weight);
	for (unsigned t = 0; t < trees; t++)
		if (!tree_fill(pack, shape, (int32_t)weight, unit, small_root))
			return false;
	return true;
}

static unsigned mix_units(const struct pack_mix *mix)
{
	return mix->heavy * mix->heavy_weight + mix->light * mix->light_weight;
}

/* Packs the trees with a unit of `unit` bits a second; false: they do not fit. */
static bool pack_fill(struct pack *pack, const struct pack_mix *mix, double unit,
                      struct shape *shape)
{
	shape_clear(shape);
	return hosts_count(pack, mix_units(mix), unit) &&
	       trees_fill(pack, shape, mix->heavy, mix->heavy_weight, unit, mix->small_root) &&
	       trees_fill(pack, shape, mix->light, mix->light_weight, unit, mix->small_root);
}

double pack_search(struct pack *pack, const struct pack_mix *mix, double most, struct shape *shape)
{
	unsigned closer = pack->model->trees == 1 ? CLOSER_ONE : CLOSER;
	double fits = most / mix_units(mix), fails = fits;

	/*
	 * Step down first: if a rate does not fit, a higher rate may still fit, so bisection alone
	 * would miss it.
	 */
	for (unsigned i = 0; !pack_fill(pack, mix, fits, shape); i++) {
		if (i == STEPS_FINE + STEPS_COARSE)
			return 0;
		fails = fits;
		fits *= i < STEPS_FINE ? 0.99 : 0.9;
	}
	for (unsigned i = 0; i < closer && fails > fits; i++) {
		double middle = (fits + fails) / 2;

		if (pack_fill(pack, mix, middle, shape))
			fits = middle;
		else
			fails = middle;
	}
	return pack_fill(pack, mix, fits, shape) ? fits : 0;
}
