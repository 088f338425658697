/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_bytes: the bytes of files of models and checkpoints. Little-endian, with a checksum at the
 * end. A writer goes to a file beside the wanted one, which is renamed when all is on disk. A
 * reader looks at memory, and never beyond it. What is no file, such as a device or a pipe, is
 * written to as it is: a rename would replace it.
 */
#ifndef TRIB_GLM_MODEL_BYTES_H
#define TRIB_GLM_MODEL_BYTES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bytes_writer {
	FILE *file;
	char path[4096], beside[4128];
	uint64_t sum;
	uint8_t pending[8]; /* bytes that are not in the sum yet */
	size_t n_pending;
	bool failed;
	bool is_straight; /* to `path` itself */
};

trib_status bytes_create(struct bytes_writer *out, const char *path);
/* Can this file be written? Leaves it as it is. */
trib_status bytes_try(const char *path);
void bytes_put(struct bytes_writer *out, const void *bytes, size_t n);
void bytes_put_u32(struct bytes_writer *out, uint32_t value);
void bytes_put_u64(struct bytes_writer *out, uint64_t value);
void bytes_put_f64(struct bytes_writer *out, double value);
void bytes_put_floats(struct bytes_writer *out, const float *values, size_t n);
/* Writes the checksum, and gives the file its name. */
trib_status bytes_commit(struct bytes_writer *out);

struct bytes_reader {
	const uint8_t *at, *end;
	bool failed; /* something was beyond the end */
};

/* All of a file; the caller frees it. */
trib_status bytes_load(const char *path, uint8_t **bytes, size_t *n);
/* Checks the first 8 bytes and the checksum, and leaves what is between them. */
trib_status bytes_open(struct bytes_reader *in, const char *what, const char magic[8],
                       const uint8_t *bytes, size_t n);
uint32_t bytes_get_u32(struct bytes_reader *in);
uint64_t bytes_get_u64(struct bytes_reader *in);
double bytes_get_f64(struct bytes_reader *in);
/* `n` bytes; NULL: there are not as many. */
const uint8_t *bytes_get(struct bytes_reader *in, uint64_t n);
/* New memory, which the caller frees. NULL: no memory, or not as many are there. */
float *bytes_get_floats(struct bytes_reader *in, uint64_t n);

/* The checksum of more bytes; it starts with this. All but the last piece are multiples of 8 bytes.
 */
#define BYTES_SUM_START 0x5452494247524c4dull
uint64_t bytes_sum(uint64_t sum, const uint8_t *bytes, size_t n);

#endif
