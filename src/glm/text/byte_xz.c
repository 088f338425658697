/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/byte_stream.h"

#ifdef HAVE_LZMA
#include <lzma.h>
#include <stdlib.h>

/* Enough for the largest preset, xz -9 (65 MiB). A hostile file may ask for much more. */
#define XZ_MEMORY (256ull << 20)

static trib_status xz_open(void **state)
{
	lzma_stream *xz = calloc(1, sizeof(*xz));

	if (xz && lzma_stream_decoder(xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK) {
		*state = xz;
		return TRIB_OK;
	}
	free(xz);
	return status_fail(TRIB_ERR_NO_MEMORY, "needs more memory than there is to decompress");
}

static trib_status xz_next(void *state, struct byte_input *input, void *to, size_t room,
                           size_t *got, bool *done)
{
	lzma_stream *xz = state;
	lzma_ret verdict;

	xz->next_in = input->at;
	xz->avail_in = input->n;
	xz->next_out = to;
	xz->avail_out = room;
	verdict = lzma_code(xz, input->end ? LZMA_FINISH : LZMA_RUN);
	*got = room - xz->avail_out;
	input->at = xz->next_in;
	input->n = xz->avail_in;
	*done = verdict == LZMA_STREAM_END;
	switch (verdict) {
	case LZMA_OK:
	case LZMA_STREAM_END:
		return TRIB_OK;
	case LZMA_BUF_ERROR:
		if (!input->end)
			return TRIB_OK;
		return status_fail(TRIB_ERR_CONFIG,
		                   "the xz data end in the middle: the file is cut");
	case LZMA_MEMLIMIT_ERROR:
	case LZMA_MEM_ERROR:
		return status_fail(TRIB_ERR_NO_MEMORY,
		                   "the xz data need more than %llu MiB to decompress",
		                   XZ_MEMORY >> 20);
	default:
		return status_fail(TRIB_ERR_CONFIG, "the xz data are damaged");
	}
}

static void xz_close(void *state)
{
	lzma_end(state);
	free(state);
}

const struct byte_decoder byte_xz = { "xz", xz_open, xz_next, xz_close };
#else
const struct byte_decoder byte_xz = { .name = "xz" };
#endif
