/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/byte_stream.h"

#ifdef HAVE_ZLIB
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

/* zlib's largest window, and gzip's frame around the data. */
#define GZIP_WINDOW (15 + 16)

struct gzip {
	z_stream z;
	bool between; /* a part has ended, and another one may follow */
};

static trib_status gzip_open(void **state)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (gzip && inflateInit2(&gzip->z, GZIP_WINDOW) == Z_OK) {
		*state = gzip;
		return TRIB_OK;
	}
	free(gzip);
	return status_fail(TRIB_ERR_NO_MEMORY, "needs more memory than there is to decompress");
}

/* Tools pad gzip files with zeros to the size of a block; they mean nothing. */
static void padding_skip(struct byte_input *input)
{
	while (input->n && !*input->at) {
		input->at++;
		input->n--;
	}
}

static trib_status gzip_next(void *state, struct byte_input *input, void *to, size_t room,
                             size_t *got, bool *done)
{
	struct gzip *gzip = state;
	int verdict;

	if (gzip->between) {
		padding_skip(input);
		if (!input->n) {
			*done = input->end;
			return TRIB_OK;
		}
		inflateReset(&gzip->z);
		gzip->between = false;
	}
	gzip->z.next_in = (Bytef *)(uintptr_t)input->at;
	gzip->z.avail_in = (uInt)input->n;
	gzip->z.next_out = to;
	gzip->z.avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
	room = gzip->z.avail_out;
	verdict = inflate(&gzip->z, Z_NO_FLUSH);
	*got = room - gzip->z.avail_out;
	input->at += input->n - gzip->z.avail_in;
	input->n = gzip->z.avail_in;
	gzip->between = verdict == Z_STREAM_END;
	if (verdict == Z_STREAM_END || verdict == Z_OK || (verdict == Z_BUF_ERROR && !input->end))
		return TRIB_OK;
	if (verdict == Z_BUF_ERROR)
		return status_fail(TRIB_ERR_CONFIG,
		                   "the gzip data end in the middle: the file is cut");
	return status_fail(TRIB_ERR_CONFIG, "the gzip data are damaged: %s",
	                   gzip->z.msg ? gzip->z.msg : "not gzip");
}

static void gzip_close(void *state)
{
	struct gzip *gzip = state;

	inflateEnd(&gzip->z);
	free(gzip);
}

const struct byte_decoder byte_gzip = { "gzip", gzip_open, gzip_next, gzip_close };
#else
const struct byte_decoder byte_gzip = { .name = "gzip" };
#endif
