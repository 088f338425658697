/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best plan of stars: which hosts have one, and how fast each is. Exact:
 * what a host can give to its star falls as the rate of all rises, so there is
 * one highest rate that the fastest `trees` stars can give together.
 */
#ifndef TRIB_PLAN_STARS_H
#define TRIB_PLAN_STARS_H

#include "plan/shape.h"

/* False where one aggregator cannot have all workers as its children, or none may be one. */
bool stars_fill(const struct model *model, struct shape *shape, uint64_t *steps);

/* How fast one star on this host is alone. */
double star_alone(const struct model *model, const struct model_host *host);

#endif
