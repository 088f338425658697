/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ways/way_choice.h"

/* The number of the class. */
static unsigned size_class(uint64_t bytes)
{
	unsigned size = 0;

	while (size + 1 < WAY_SIZES && bytes >= (uint64_t)WAY_SHORTEST << 2 * (size + 1))
		size++;
	return size;
}

struct way_class *way_class_of(struct way_choice *choice, enum way_kind kind, uint64_t bytes)
{
	unsigned size = size_class(bytes);
	uint32_t from = WAY_SHORTEST << 2 * size;
	struct way_class *class = &choice->classes[kind][size];

	if (bytes < WAY_SHORTEST)
		return NULL;
	class->block = from < WAY_BLOCK ? WAY_BLOCK / from : 1;
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

/* The calls of a trial. */
static uint32_t trial_calls(const struct way_class *class)
{
	return WAY_TRIAL * class->block;
}

bool way_is_trial(const struct way_class *class)
{
	return class->calls < trial_calls(class) || class->calls >= class->keep;
}

uint64_t *way_pair(struct way_class *class)
{
	uint32_t blocks = class->calls / class->block;
	bool is_pair = blocks && class->calls <= trial_calls(class) &&
	               class->calls % (2 * class->block) == 0;

	return is_pair ? &class->took[blocks - 2] : NULL;
}

/* The other way in turn. */
static enum way trial_way(unsigned block)
{
	return block % 2 ? WAY_RANKS : WAY_AGGREGATOR;
}

static uint32_t next_keep(const struct way_class *class)
{
	if (!class->keep)
		return WAY_KEEP_FIRST * class->block;
	return class->keep < WAY_KEEP_LONGEST * class->block ? 2 * class->keep : class->keep;
}

enum way way_take(struct way_class *class)
{
	if (class->calls >= class->keep) {
		class->keep = next_keep(class);
		class->calls = 0;
		for (unsigned i = 0; i < WAY_TRIAL; i++)
			class->took[i] = UINT64_MAX;
	}
	class->calls++;
	return class->calls <= trial_calls(class) ? trial_way((class->calls - 1) / class->block)
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

	for (unsigned i = 0; i < WAY_TRIAL; i++)
		if (trial_way(i) == way && class->took[i] < best)
			best = class->took[i];
	return best;
}

/* Do the pairs so far show that this way is faster? */
static bool is_shown(const struct way_class *class, enum way faster, double through, double among)
{
	uint32_t pairs = class->calls / class->block / 2;

	if (class->known && pairs == 1)
		return faster == class->way;
	if (class->calls == trial_calls(class))
		return true;
	return pairs >= WAY_PAIRS && (through > WAY_FAR * among || among > WAY_FAR * through);
}

bool way_settle(struct way_class *class)
{
	double through = (double)way_best(class, WAY_AGGREGATOR);
	double among = (double)way_best(class, WAY_RANKS);
	enum way faster = through > WAY_CLEARLY * among ? WAY_RANKS : WAY_AGGREGATOR;
	bool confirms = class->known && faster == class->way;

	if (!is_shown(class, faster, through, among))
		return false;
	if (!class->confirmed)
		class->way = faster;
	if (!confirms)
		class->keep = WAY_KEEP_FIRST * class->block;
	class->known = true;
	class->confirmed = confirms;
	class->calls = trial_calls(class);
	return true;
}

double way_gain(const struct way_choice *choice)
{
	double most = 0;

	for (unsigned i = 0; i < WAY_KINDS * WAY_SIZES; i++) {
		const struct way_class *class = &choice->classes[i / WAY_SIZES][i % WAY_SIZES];
		double gain = (double)way_best(class, WAY_AGGREGATOR) /
		              (double)way_best(class, WAY_RANKS);

		if (class->way == WAY_RANKS && gain > most)
			most = gain;
	}
	return most;
}
