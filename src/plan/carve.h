/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the caller's work memory. */
#ifndef TRIB_PLAN_CARVE_H
#define TRIB_PLAN_CARVE_H

#include <stddef.h>

/* The next piece, for `count` things of a size; only counts where there is no memory. */
static inline void *carve(char *work, size_t *used, size_t count, size_t size)
{
	size_t at = *used;

	*used += (count * size + 15) & ~(size_t)15;
	return work ? work + at : NULL;
}

#endif
