/* SPDX-License-Identifier: Apache-2.0 */
#include "idx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

enum {
	IDX_MAGIC_BYTES = 0x0800, /* the element type in the magic number: unsigned byte */
	IDX_COUNT_MAX = 1 << 24,
	IDX_SIDE_MAX = 1 << 12,
	IDX_PIECE = 1 << 20,
};

#ifdef HAVE_ZLIB
typedef gzFile idx_file;

static idx_file file_open(const char *path)
{
	return gzopen(path, "rb");
}

static long file_read(idx_file file, void *to, size_t size)
{
	return gzread(file, to, (unsigned)size);
}

static const char *file_error(idx_file file)
{
	int code;
	const char *text = gzerror(file, &code);

	return code == Z_ERRNO ? strerror(errno) : text;
}

static void file_close(idx_file file)
{
	gzclose_r(file);
}
#else
typedef FILE *idx_file;

static idx_file file_open(const char *path)
{
	return fopen(path, "rb");
}

static long file_read(idx_file file, void *to, size_t size)
{
	size_t got = fread(to, 1, size, file);

	return ferror(file) ? -1 : (long)got;
}

static const char *file_error(idx_file file)
{
	(void)file;
	return strerror(errno);
}

static void file_close(idx_file file)
{
	fclose(file);
}
#endif

static uint32_t big_endian(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Reads the header. Returns the number of content bytes, or 0 with a sentence in `why`. */
static size_t header_read(idx_file file, int dims, size_t *sizes, char *why, size_t why_size)
{
	uint8_t header[4 + 4 * IDX_IMAGES] = { 0 };
	long want = 4 + 4 * dims;
	long got = file_read(file, header, (size_t)want);
	uint32_t magic = big_endian(header);
	size_t total = 1;

	if (got < 0) {
		snprintf(why, why_size, "%s", file_error(file));
		return 0;
	}
#ifndef HAVE_ZLIB
	if (got >= 2 && header[0] == 0x1f && header[1] == 0x8b) {
		snprintf(why, why_size, "is gzipped, and this build has no zlib: gunzip it");
		return 0;
	}
#endif
	if (got >= 4 && magic != (uint32_t)(IDX_MAGIC_BYTES | dims)) {
		snprintf(why, why_size, "has magic number 0x%08x where 0x%08x belongs", magic,
		         (unsigned)(IDX_MAGIC_BYTES | dims));
		return 0;
	}
	if (got < want) {
		snprintf(why, why_size, "ends inside its header, after %ld bytes", got);
		return 0;
	}
	for (int i = 0; i < dims; i++) {
		uint32_t size = big_endian(header + 4 + 4 * i);

		if (size == 0 || size > (i == 0 ? IDX_COUNT_MAX : IDX_SIDE_MAX)) {
			snprintf(why, why_size, "claims a size of %u in dimension %d", size, i);
			return 0;
		}
		sizes[i] = size;
		total *= size;
	}
	return total;
}

/*
 * Reads the content. The buffer grows with the bytes that really arrive. So a header that claims
 * too much costs at most twice the file's content in memory.
 */
static uint8_t *content_read(idx_file file, size_t total, char *why, size_t why_size)
{
	uint8_t *bytes = NULL, *grown, extra;
	size_t have = 0, room = 0;
	long got;

	while (have < total) {
		if (have == room) {
			room = room ? room * 2 : IDX_PIECE;
			room = room < total ? room : total;
			grown = realloc(bytes, room);
			if (!grown) {
				snprintf(why, why_size, "needs %zu bytes of memory: %s", room,
				         strerror(errno));
				goto fail;
			}
			bytes = grown;
		}
		got = file_read(file, bytes + have,
		                room - have < IDX_PIECE ? room - have : IDX_PIECE);
		if (got < 0) {
			snprintf(why, why_size, "%s", file_error(file));
			goto fail;
		}
		if (got == 0) {
			snprintf(why, why_size, "is truncated: %zu of %zu bytes are there", have,
			         total);
			goto fail;
		}
		have += (size_t)got;
	}
	/* Reading up to the end makes zlib verify its checksum. */
	got = file_read(file, &extra, 1);
	if (got == 0)
		return bytes;
	if (got < 0)
		snprintf(why, why_size, "%s", file_error(file));
	else
		snprintf(why, why_size, "is longer than the %zu bytes its header claims", total);
fail:
	free(bytes);
	return NULL;
}

uint8_t *idx_read(const char *path, int dims, size_t *sizes, char *why, size_t why_size)
{
	char reason[160];
	uint8_t *bytes = NULL;
	idx_file file;
	size_t total;

	errno = 0;
	file = file_open(path);
	if (!file) {
		snprintf(why, why_size, "%s: %s", path, strerror(errno ? errno : ENOMEM));
		return NULL;
	}
	total = header_read(file, dims, sizes, reason, sizeof(reason));
	if (total)
		bytes = content_read(file, total, reason, sizeof(reason));
	if (!bytes)
		snprintf(why, why_size, "%s: %s", path, reason);
	file_close(file);
	return bytes;
}
