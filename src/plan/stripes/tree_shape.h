/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_shape: trees of any size over host indexes. The planner makes lists of places: which
 * host takes how many streams away. shape_arrange turns a list into a tree of least depth,
 * and shape_forest turns trees into a forest if they are small enough.
 */
#ifndef TRIB_PLAN_STRIPES_TREE_SHAPE_H
#define TRIB_PLAN_STRIPES_TREE_SHAPE_H

#include "plan/stripes/model.h"

struct shape_place {
	uint32_t host;
	uint32_t take;  /* children - 1 */
	int32_t parent; /* index among the tree's places; -1: the root, which is first */
};

struct shape_tree {
	double rate;       /* bits a second */
	uint32_t first, n; /* its places are places[first .. first + n) */
};

struct shape {
	unsigned n_trees, n_places, places_max;
	struct shape_tree trees[PLAN_TREES_MAX];
	struct shape_place *places;
};

void shape_clear(struct shape *shape);
/* A new tree without places. */
void shape_start(struct shape *shape, double rate);
/* Adds a place to the last tree; false: no memory is left. */
bool shape_add(struct shape *shape, uint32_t host, uint32_t take);
void shape_copy(struct shape *to, const struct shape *from);

/*
 * Gives the places of a tree their parents, so that it is as shallow as possible. The places
 * must take workers - 1 in all. Returns the depth.
 */
unsigned shape_arrange(const struct model *model, struct shape *shape, unsigned tree);

/* Writes the place that each rank sends to into leaf[workers]. free_slots has room for n. */
void shape_leaves(const struct model *model, const struct shape *shape, unsigned tree,
                  uint32_t *leaf, uint32_t *free_slots);

/* Converts it to a forest; the rates become the shares. For up to TREE_RANKS_MAX workers. */
void shape_forest(const struct model *model, const struct shape *shape, struct forest *out);

#endif
