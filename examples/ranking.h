/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranking: how well scores find the items that a user chose later. Items of the training data are
 * left out of the ranking, as is usual.
 */
#ifndef EXAMPLES_RANKING_H
#define EXAMPLES_RANKING_H

#include "interactions.h"

enum { RANKING_TOP = 20 };

struct ranking {
	size_t users;            /* that were tested */
	double recall, hit_rate; /* sums over users until ranking_mean */
};

/* Adds a user whose items have these scores. Scores of known items are overwritten. */
void ranking_add(struct ranking *ranking, const struct interactions *train,
                 const struct interactions *test, uint32_t user, float *scores);
void ranking_mean(struct ranking *ranking);

#endif
