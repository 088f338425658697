/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns: the best trees if few hosts may aggregate. Each host then takes part in many
 * trees with irregular rates, which a heuristic does not find.
 *
 * It solves a linear program by column generation. A tree is a column: the cost of a rate
 * of 1 to each host's links and cores. There are too many trees to list, but the simplex
 * method only asks for a column that pays at the present prices, and the cheapest tree is
 * easy to find. If the cheapest tree does not pay, the solution is optimal.
 */
#ifndef TRIB_PLAN_STRIPES_COLUMNS_H
#define TRIB_PLAN_STRIPES_COLUMNS_H

#include "plan/stripes/tree_shape.h"

#define COLUMNS_HOSTS_MAX 16u

/*
 * Returns the optimal rate of all trees together; INFINITY: unknown, because more than
 * COLUMNS_HOSTS_MAX hosts may aggregate or the search took too long. Fills the shape with
 * the fastest trees of the optimum, as many as the model allows. An empty shape: no tree
 * exists.
 */
double columns_fill(const struct model *model, struct shape *shape, uint64_t *steps);

#endif
