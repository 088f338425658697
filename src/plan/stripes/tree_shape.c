/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/tree_shape.h"

#include <string.h>

#define NOBODY UINT32_MAX

void shape_clear(struct shape *shape)
{
	shape->n_trees = shape->n_places = 0;
}

void shape_start(struct shape *shape, double rate)
{
	shape->trees[shape->n_trees++] =
		(struct shape_tree){ .rate = rate, .first = shape->n_places };
}

bool shape_add(struct shape *shape, uint32_t host, uint32_t take)
{
	if (shape->n_places == shape->places_max)
		return false;
	shape->places[shape->n_places++] = (struct shape_place){ host, take, -1 };
	shape->trees[shape->n_trees - 1].n++;
	return true;
}

void shape_copy(struct shape *to, const struct shape *from)
{
	to->n_trees = from->n_trees;
	to->n_places = from->n_places;
	memcpy(to->trees, from->trees, from->n_trees * sizeof(*to->trees));
	memcpy(to->places, from->places, from->n_places * sizeof(*to->places));
}

/* The place's children other than the worker on its own host. */
static unsigned place_remote(const struct model *model, const struct shape_place *place)
{
	return place->take + (model->caps[place->host].kind != MODEL_WORKER);
}

/*
 * Level by level: each place becomes a child of the first earlier place with a free slot. Places
 * are sorted by size, the largest first, so the tree is shallow and the last place is the deepest.
 */
unsigned shape_arrange(const struct model *model, struct shape *shape, unsigned tree)
{
	struct shape_place *places = shape->places + shape->trees[tree].first;
	unsigned n = shape->trees[tree].n, parent = 0, used = 0, depth = 0;

	for (unsigned i = 1; i < n; i++) {
		for (; used == place_remote(model, &places[parent]); parent++)
			used = 0;
		places[i].parent = (int32_t)parent;
		used++;
	}
	for (int at = (int)n - 1; at >= 0; at = places[at].parent)
		depth++;
	return depth;
}

void shape_leaves(const struct model *model, const struct shape *shape, unsigned tree,
                  uint32_t *leaf, uint32_t *free_slots)
{
	const struct shape_place *places = shape->places + shape->trees[tree].first;
	unsigned n = shape->trees[tree].n, at = 0;

	for (unsigned r = 0; r < model->workers; r++)
		leaf[r] = NOBODY;
	if (!n)
		return;
	for (unsigned i = 0; i < n; i++) {
		free_slots[i] = place_remote(model, &places[i]);
		if (model->caps[places[i].host].kind == MODEL_WORKER)
			leaf[model->hosts[places[i].host].rank] = i;
		if (i)
			free_slots[places[i].parent]--;
	}
	for (unsigned i = 0; i < model->workers; i++) {
		unsigned rank = model->order[i];

		if (leaf[rank] != NOBODY)
			continue;
		while (at + 1 < n && !free_slots[at])
			at++;
		leaf[rank] = at;
		free_slots[at]--;
	}
}

void shape_forest(const struct model *model, const struct shape *shape, struct forest *out)
{
	uint32_t leaf[TREE_RANKS_MAX], slots[TREE_RANKS_MAX];
	double total = 0;

	for (unsigned t = 0; t < shape->n_trees; t++)
		total += shape->trees[t].rate;
	out->n_trees = shape->n_trees;
	for (unsigned t = 0; t < shape->n_trees; t++) {
		const struct shape_place *places = shape->places + shape->trees[t].first;
		struct tree *tree = &out->trees[t];

		tree_start(tree, shape->trees[t].rate / total,
		           model->hosts[places[0].host].address);
		for (unsigned i = 1; i < shape->trees[t].n; i++)
			tree_add(tree, places[i].parent, model->hosts[places[i].host].address);
		shape_leaves(model, shape, t, leaf, slots);
		for (unsigned rank = 0; rank < model->workers; rank++)
			tree_add_rank(tree, (int)leaf[rank], rank);
	}
}
