/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx: the file format of MNIST. A file has a big-endian magic number with the number of
 * dimensions, a big-endian size for each dimension, then bytes.
 */
#ifndef EXAMPLES_IDX_H
#define EXAMPLES_IDX_H

#include <stddef.h>
#include <stdint.h>

enum { IDX_LABELS = 1, IDX_IMAGES = 3 }; /* numbers of dimensions */

/*
 * Reads a whole file of bytes, gzipped or not. It must have `dims` dimensions; their sizes go to
 * `sizes`. Returns malloc'd bytes, or NULL with a sentence in `why`. Uses little more memory than
 * the file's content, whatever its header claims.
 */
uint8_t *idx_read(const char *path, int dims, size_t *sizes, char *why, size_t why_size);

#endif
