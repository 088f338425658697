/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cluster/sort.h"

/* Heap step: moves the entry at `at` down until neither of its children comes after it. */
static void sink(uint32_t *heap, unsigned at, unsigned n, sort_before *before, const void *context)
{
	uint32_t moved = heap[at];

	for (unsigned child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && before(context, heap[child], heap[child + 1]))
			child++;
		if (!before(context, moved, heap[child]))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

void sort_indices(uint32_t *indices, unsigned n, sort_before *before, const void *context)
{
	for (unsigned i = n / 2; i-- > 0;)
		sink(indices, i, n, before, context);
	for (unsigned end = n; end-- > 1;) {
		uint32_t last = indices[0];

		indices[0] = indices[end];
		indices[end] = last;
		sink(indices, 0, end, before, context);
	}
}
