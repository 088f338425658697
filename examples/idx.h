/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IDX, the file format of MNIST: a big-endian magic number that says the
 * number of dimensions, one big-endian size for each of them, then bytes.
 */
#ifndef EXAMPLES_IDX_H
#define EXAMPLES_IDX_H

#include <stddef.h>
#include <stdint.h>

enum { IDX_LABELS = 1, IDX_IMAGES = 3 }; /* numbers of dimensions */

/*
 * Reads a whole file of bytes, gzipped or not, that has `dims` dimensions,
 * and writes their sizes to `sizes`. Returns malloc'd bytes, or NULL with a
 * sentence in `why`. Never holds much more memory than the file has content,
 * whatever its header claims.
 */
uint8_t *idx_read(const char *path, int dims, size_t *sizes, char *why, size_t why_size);

#endif
