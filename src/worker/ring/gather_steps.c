/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ring/gather_steps.h"

bool gather_takes_steps(unsigned size)
{
	return gather_steps(size) < size - 1;
}

unsigned gather_steps(unsigned size)
{
	unsigned steps = 0;

	while (1u << steps < size)
		steps++;
	return steps;
}

struct gather_step gather_step(unsigned rank, unsigned size, unsigned step)
{
	unsigned far = 1u << step, from = (rank + far) % size;

	if (size & (size - 1))
		return (struct gather_step){ .to = (rank + size - far) % size,
			                     .from = from,
			                     .n = far < size - far ? far : size - far,
			                     .sends = rank,
			                     .takes = from };
	from = rank ^ far;
	return (struct gather_step){ .to = from,
		                     .from = from,
		                     .n = far,
		                     .sends = rank & ~(far - 1),
		                     .takes = from & ~(far - 1) };
}
