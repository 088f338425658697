/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stars: the best plan of stars: which hosts have one, and how fast each is. It is exact: a
 * host's capacity for its star falls as the rate of all rises, so there is one highest rate
 * that the fastest `trees` stars reach together.
 */
#ifndef TRIB_PLAN_STRIPES_STARS_H
#define TRIB_PLAN_STRIPES_STARS_H

#include "plan/stripes/tree_shape.h"

/* False: the fan-in limit forbids a star over all workers, or no host may aggregate. */
bool stars_fill(const struct model *model, struct shape *shape, uint64_t *steps);

/* The rate of a single star on this host. */
double star_alone(const struct model *model, const struct model_host *host);

#endif
