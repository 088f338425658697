/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/large_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

void *large_memory(size_t bytes)
{
	size_t unit = bytes < HUGE_PAGE ? LINE : HUGE_PAGE, size;
	void *memory;

	if (bytes > SIZE_MAX - HUGE_PAGE)
		return NULL;
	size = (bytes + !bytes + unit - 1) / unit * unit;
	memory = aligned_alloc(unit, size);
	if (!memory)
		return NULL;
	/* A system without huge pages refuses, which changes nothing but speed. */
	if (unit == HUGE_PAGE)
		(void)madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 0, size);
	return memory;
}
