/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best trees where few hosts may aggregate: each then takes part in many
 * trees, of rates that nobody would guess.
 *
 * A tree is a column of a linear program: what a rate of 1 costs each host's
 * links and cores. There are too many to write down, but the simplex method only
 * asks for one that is worth more than it costs at the prices of the moment, and
 * the cheapest tree is easily found. When it is worth no more than it costs, no
 * other trees, however many, can do better together.
 */
#ifndef TRIB_PLAN_COLUMNS_H
#define TRIB_PLAN_COLUMNS_H

#include "plan/shape.h"

#define COLUMNS_HOSTS_MAX 16u

/*
 * Gives what all trees together can have at most, INFINITY: not known, as there are more hosts than
 * that or it took too long. The fastest trees of those that have it, as many as the
 * model allows, are in the shape, which has none where there is no tree at all.
 */
double columns_fill(const struct model *model, struct shape *shape, uint64_t *steps);

#endif
