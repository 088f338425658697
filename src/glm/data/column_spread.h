/* SPDX-License-Identifier: Apache-2.0 */
/* column_spread: counts of a column's values by sign and magnitude; see struct glm_spread. Pure. */
#ifndef TRIB_GLM_COLUMN_SPREAD_H
#define TRIB_GLM_COLUMN_SPREAD_H

#include "glm/data/glm_load.h"

/* Adds a value that is not 0. `first`: the column had no value before. */
void spread_add(struct glm_spread *spread, float value, bool first);

/* Magnitudes of a bin: from *from to below *to. */
void spread_bin(const struct glm_spread *spread, uint32_t bin, double *from, double *to);

#endif
