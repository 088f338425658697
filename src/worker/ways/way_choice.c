/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ways/way_choice.h"

/* The number of the class. */
static unsigned size_class(uint64_t bytes)
{
	unsigned size = 0;

	while (size + 1 < WAY_SIZES && bytes > (uint64_t)WAY_SHORTEST << 2 * (size + 1))
		size++;
	return size;
}

/* The ways of a class are the first ones of enum way. */
static uint32_t ways_of(enum way_kind kind, unsigned size, bool fits, bool several)
{
	if (!fits)
		return WAY_DENSE;
	return kind == WAY_ALLREDUCE && size == 0 && several ? WAYS : WAY_ONE;
}

struct way_class *way_class_of(struct way_choice *choice, enum way_kind kind, uint64_t bytes,
                               bool fits, bool several)
{
	unsigned size = size_class(bytes);
	uint32_t from = WAY_SHORTEST << 2 * size;
	struct way_class *class = &choice->classes[kind][size];

	if (bytes < WAY_SHORTEST)
		return NULL;
	class->block = from < WAY_BLOCK ? WAY_BLOCK / from : 1;
	if (!class->ways)
		class->ways = ways_of(kind, size, fits, several);
	return class;
}

enum way_kind way_class_kind(const struct way_choice *choice, const struct way_class *class)
{
	return (enum way_kind)((size_t)(class - choice->classes[0]) / WAY_SIZES);
}

uint64_t way_class_from(const struct way_choice *choice, const struct way_class *class)
{
	return (uint64_t)WAY_SHORTEST << 2 * ((size_t)(class - choice->classes[0]) % WAY_SIZES);
}

/* The calls of a turn. */
static uint32_t turn_calls(const struct way_class *class)
{
	return class->ways * class->block;
}

/* The calls of a trial. */
static uint32_t trial_calls(const struct way_class *class)
{
	return WAY_TURNS * turn_calls(class);
}

bool way_is_trial(const struct way_class *class)
{
	return class->calls < trial_calls(class) || class->calls >= class->keep;
}

uint64_t *way_turn(struct way_class *class)
{
	bool has_ended = class->calls && class->calls <= trial_calls(class) &&
	                 class->calls % turn_calls(class) == 0;

	return has_ended ? &class->took[class->calls / class->block - class->ways] : NULL;
}

/* The ways in turn. */
static enum way trial_way(const struct way_class *class, unsigned block)
{
	return (enum way)(block % class->ways);
}

static uint32_t next_keep(const struct way_class *class)
{
	if (!class->keep)
		return WAY_KEEP_FIRST * turn_calls(class);
	return class->keep < WAY_KEEP_LONGEST * turn_calls(class) ? 2 * class->keep : class->keep;
}

enum way way_take(struct way_class *class)
{
	if (class->calls >= class->keep) {
		class->keep = next_keep(class);
		class->calls = 0;
		for (unsigned i = 0; i < WAY_TURNS * WAYS; i++)
			class->took[i] = UINT64_MAX;
	}
	class->calls++;
	return class->calls <= trial_calls(class)
	               ? trial_way(class, (class->calls - 1) / class->block)
	               : class->way;
}

void way_note(struct way_class *class, uint64_t took)
{
	uint64_t *block = &class->took[(class->calls - 1) / class->block];

	*block = *block == UINT64_MAX ? took : *block + took;
}

uint64_t way_scaled(uint64_t took, uint64_t from, uint64_t bytes)
{
	return (uint64_t)((double)took * (double)from / (double)bytes) + 1;
}

uint64_t way_best(const struct way_class *class, enum way way)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < WAY_TURNS * class->ways; i++)
		if (trial_way(class, i) == way && class->took[i] < best)
			best = class->took[i];
	return best;
}

static bool is_faster(const struct way_class *class, enum way way, enum way than, double times)
{
	return (double)way_best(class, than) > times * (double)way_best(class, way);
}

/* The ways that do not leave the aggregator come first; but the last result stays if it is as good.
 */
static enum way fastest(const struct way_class *class)
{
	enum way way = WAY_AGGREGATOR;

	if (is_faster(class, WAY_DENSE, way, WAY_CLEARLY))
		way = WAY_DENSE;
	if (is_faster(class, WAY_RANKS, way, WAY_CLEARLY))
		way = WAY_RANKS;
	if (is_faster(class, WAY_ONE, way, WAY_CLEARLY))
		way = WAY_ONE;
	return class->known && !is_faster(class, way, class->way, WAY_BETTER) ? class->way : way;
}

/* Do the turns so far show that this way is the fastest? */
static bool is_shown(const struct way_class *class, enum way way)
{
	uint32_t turns = class->calls / turn_calls(class);
	bool is_far = true;

	if (class->known && turns == 1)
		return way == class->way;
	if (class->calls == trial_calls(class))
		return true;
	for (enum way other = 0; other < WAYS; other++)
		is_far &= other == way || is_faster(class, way, other, WAY_FAR);
	return is_far && turns >= WAY_LEAST;
}

bool way_settle(struct way_class *class)
{
	enum way way = fastest(class);
	bool confirms = class->known && way == class->way;

	if (!is_shown(class, way))
		return false;
	if (!class->confirmed)
		class->way = way;
	if (!confirms)
		class->keep = WAY_KEEP_FIRST * turn_calls(class);
	class->known = true;
	class->confirmed = confirms;
	class->calls = trial_calls(class);
	return true;
}

uint64_t way_best_through(const struct way_class *class)
{
	uint64_t slots = way_best(class, WAY_AGGREGATOR), dense = way_best(class, WAY_DENSE);

	return slots < dense ? slots : dense;
}

uint64_t way_best_among(const struct way_class *class)
{
	uint64_t shares = way_best(class, WAY_RANKS), one = way_best(class, WAY_ONE);

	return shares < one ? shares : one;
}

double way_gain(const struct way_choice *choice)
{
	double most = 0;

	for (unsigned i = 0; i < WAY_KINDS * WAY_SIZES; i++) {
		const struct way_class *class = &choice->classes[i / WAY_SIZES][i % WAY_SIZES];
		double gain = (double)way_best_through(class) / (double)way_best_among(class);

		if (way_is_among(class->way) && gain > most)
			most = gain;
	}
	return most;
}
