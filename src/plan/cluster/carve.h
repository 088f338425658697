/* SPDX-License-Identifier: Apache-2.0 */
/* carve: divides the caller's work memory. */
#ifndef TRIB_PLAN_CLUSTER_CARVE_H
#define TRIB_PLAN_CLUSTER_CARVE_H

#include <stddef.h>

/* The next piece, for `count` items of `size` bytes. If `work` is NULL, only counts bytes. */
static inline void *carve(char *work, size_t *used, size_t count, size_t size)
{
	size_t at = *used;

	*used += (count * size + 15) & ~(size_t)15;
	return work ? work + at : NULL;
}

#endif
