/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled, not run: checks that the engine compiles for BPF unchanged. */
#include "engine/dense.h"

/* BPF functions have at most five parameters. */
int take(struct dense_lane *lane, struct dense_cell *cell, void *sum,
         const struct wire_header *packet, uint32_t bytes);

int take(struct dense_lane *lane, struct dense_cell *cell, void *sum,
         const struct wire_header *packet, uint32_t bytes)
{
	return (int)dense_take(lane, cell, sum, packet, packet + 1, bytes);
}
