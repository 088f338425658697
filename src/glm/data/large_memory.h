/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zeroed memory for large arrays that are read in a random order. It lies in huge pages where the
 * system has them: with small pages, each new place costs a walk through the page tables.
 */
#ifndef TRIB_GLM_LARGE_MEMORY_H
#define TRIB_GLM_LARGE_MEMORY_H

#include <stddef.h>

/* At least 64-byte aligned; for free(). NULL: no memory. */
void *large_memory(size_t bytes);

#endif
