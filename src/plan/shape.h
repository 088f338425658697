/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of any size, by the numbers of hosts. A plan is made as lists of
 * places (which host takes how many streams away); a list becomes a tree of
 * least depth; trees become a forest where they are small enough.
 */
#ifndef TRIB_PLAN_SHAPE_H
#define TRIB_PLAN_SHAPE_H

#include "plan/model.h"

struct shape_place {
	uint32_t host;
	uint32_t take;  /* children - 1 */
	int32_t parent; /* among the tree's places; -1: the root, which is the first */
};

struct shape_tree {
	double rate;       /* bits a second */
	uint32_t first, n; /* its places */
};

struct shape {
	unsigned n_trees, n_places, places_max;
	struct shape_tree trees[PLAN_TREES_MAX];
	struct shape_place *places;
};

void shape_clear(struct shape *shape);
/* A new tree without places. */
void shape_start(struct shape *shape, double rate);
/* One more place in the last tree; false: there is no room. */
bool shape_add(struct shape *shape, uint32_t host, uint32_t take);
void shape_copy(struct shape *to, const struct shape *from);

/*
 * Gives the places of a tree their parents, so that it is as shallow as its
 * places allow; they have to take workers - 1 away in all. Returns its depth.
 */
unsigned shape_arrange(const struct model *model, struct shape *shape, unsigned tree);

/* The place that each rank sends to, into leaf[workers]. `free` has room for n places. */
void shape_leaves(const struct model *model, const struct shape *shape, unsigned tree,
                  uint32_t *leaf, uint32_t *free_slots);

/* As a forest; shares are the rates'. Only for up to TREE_RANKS_MAX workers. */
void shape_forest(const struct model *model, const struct shape *shape, struct forest *out);

#endif
