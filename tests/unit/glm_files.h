/* SPDX-License-Identifier: Apache-2.0 */
/* glm_files: files for the tests of glm/text and glm/data, plain or compressed. */
#ifndef TRIB_TESTS_GLM_FILES_H
#define TRIB_TESTS_GLM_FILES_H

#include <stddef.h>

enum packing { PACK_PLAIN, PACK_GZIP, PACK_XZ, PACK_GZIP_PARTS, PACK_XZ_PARTS };

/*
 * Writes a file, and returns its path, which is the same for a packing each time. NULL: the library
 * for the packing is missing; that is printed once. The parts are two halves, compressed apart.
 */
const char *file_write(const void *bytes, size_t length, enum packing packing);

size_t file_size(const char *path);
void file_cut(const char *path, size_t size);
/* Turns all bits of one byte. */
void file_flip(const char *path, size_t at);
void file_append(const char *path, const void *bytes, size_t length);

/* Removes all of them. */
void files_remove(void);

#endif
