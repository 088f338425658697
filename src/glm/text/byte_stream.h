/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_stream: the bytes of a file that may be compressed with gzip or xz. The first bytes of the
 * file say so, not its name. Several compressed parts in one file are read one after the other.
 */
#ifndef TRIB_GLM_BYTE_STREAM_H
#define TRIB_GLM_BYTE_STREAM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct byte_stream;

/* "-": standard input. The error names the file. */
trib_status byte_stream_open(struct byte_stream **stream, const char *path);

/*
 * Reads 1 to `room` bytes; *got is 0 at the end. The error has no file name in it, because the
 * caller knows file and line. A file that ends in the middle of compressed data is an error.
 */
trib_status byte_stream_read(struct byte_stream *stream, void *to, size_t room, size_t *got);

/* Standard input and pipes can be read once only. */
bool byte_stream_is_once(const struct byte_stream *stream);

void byte_stream_close(struct byte_stream *stream);

/* Below: for the decoders. */

/* Compressed bytes that were read from the file, and not decoded yet. */
struct byte_input {
	const uint8_t *at;
	size_t n;
	bool end; /* the file has no more */
};

/* `next` decodes some of the input. It returns 0 bytes if it needs more input, or if all is done.
 */
struct byte_decoder {
	const char *name;
	trib_status (*open)(void **state);
	trib_status (*next)(void *state, struct byte_input *input, void *to, size_t room,
	                    size_t *got, bool *done);
	void (*close)(void *state);
};

/* Without its library, a decoder's `open` is NULL. */
extern const struct byte_decoder byte_gzip, byte_xz;

#endif
