/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heat_watch: have other rows become popular? A worker looks at the share of its pushed rows that
 * are in the map. It sees rows in the order in which they are pushed. A server does not: sums of
 * hot rows reach it sooner than the cold rows that wait for its link.
 */
#ifndef TRIB_SPARSE_HEAT_WATCH_H
#define TRIB_SPARSE_HEAT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define HEAT_WATCH_ROWS 1000u /* fewer rows say nothing */
#define HEAT_WATCH_TIMES 2u   /* in a row that the share was low: one may be chance */

/* Begin with zeros, for each map. */
struct heat_watch {
	uint32_t rows, hot; /* pushed since the share was last looked at */
	uint32_t low_times; /* in a row that the share was below half of the usual one */
	double usual;       /* share, smoothed */
};

/* Adds the rows of a push. True, once: the heat has moved. */
static inline bool heat_watch_add(struct heat_watch *watch, uint32_t rows, uint32_t hot)
{
	double share;

	watch->rows += rows;
	watch->hot += hot;
	if (watch->rows < HEAT_WATCH_ROWS)
		return false;
	share = (double)watch->hot / (double)watch->rows;
	watch->rows = watch->hot = 0;
	if (share < watch->usual / 2)
		return ++watch->low_times == HEAT_WATCH_TIMES;
	watch->low_times = 0;
	watch->usual = watch->usual > 0 ? 0.8 * watch->usual + 0.2 * share : share;
	return false;
}

#endif
