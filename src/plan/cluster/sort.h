/* SPDX-License-Identifier: Apache-2.0 */
/* Heap sort of indices. In place, unlike qsort, which may allocate. */
#ifndef TRIB_PLAN_CLUSTER_SORT_H
#define TRIB_PLAN_CLUSTER_SORT_H

#include <stdbool.h>
#include <stdint.h>

/* Does `a` come before `b`? The order must be total: break ties by index. */
typedef bool sort_before(const void *context, uint32_t a, uint32_t b);

void sort_indices(uint32_t *indices, unsigned n, sort_before *before, const void *context);

#endif
