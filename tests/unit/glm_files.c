/* SPDX-License-Identifier: Apache-2.0 */
#include "glm_files.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

static const char *const names[] = { "plain", "gzip", "xz", "gzip-parts", "xz-parts" };
static char folder[64], paths[5][128];

static void must(bool so, const char *what)
{
	if (!so) {
		perror(what);
		abort();
	}
}

static size_t gzip_pack(const void *bytes, size_t length, unsigned char *to, size_t room)
{
#ifdef HAVE_ZLIB
	z_stream z = { .next_in = (Bytef *)(size_t)bytes,
		       .avail_in = (uInt)length,
		       .next_out = to,
		       .avail_out = (uInt)room };

	must(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
	must(deflate(&z, Z_FINISH) == Z_STREAM_END, "zlib");
	deflateEnd(&z);
	return room - z.avail_out;
#else
	(void)bytes, (void)length, (void)to, (void)room;
	return 0;
#endif
}

static size_t xz_pack(const void *bytes, size_t length, unsigned char *to, size_t room)
{
	size_t used = 0;

#ifdef HAVE_LZMA
	must(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, bytes, length, to, &used, room) ==
	             LZMA_OK,
	     "lzma");
#else
	(void)bytes, (void)length, (void)to, (void)room;
#endif
	return used;
}

static size_t pack(const char *bytes, size_t length, enum packing packing, unsigned char *to,
                   size_t room)
{
	size_t half = length / 2, used;

	switch (packing) {
	case PACK_GZIP:
		return gzip_pack(bytes, length, to, room);
	case PACK_XZ:
		return xz_pack(bytes, length, to, room);
	case PACK_GZIP_PARTS:
		used = gzip_pack(bytes, half, to, room);
		return used + gzip_pack(bytes + half, length - half, to + used, room - used);
	case PACK_XZ_PARTS:
		used = xz_pack(bytes, half, to, room);
		return used + xz_pack(bytes + half, length - half, to + used, room - used);
	default:
		memcpy(to, bytes, length);
		return length;
	}
}

static void bytes_write(const char *path, int flags, const void *bytes, size_t length)
{
	int file = open(path, O_WRONLY | O_CREAT | flags, 0600);

	must(file >= 0 && write(file, bytes, length) == (ssize_t)length && !close(file), path);
}

const char *file_write(const void *bytes, size_t length, enum packing packing)
{
	static bool told[5];
	size_t room = length * 2 + 4096, used;
	unsigned char *packed = malloc(room);

	must(packed != NULL, "malloc");
	if (!*folder) {
		const char *parent = getenv("TMPDIR");

		snprintf(folder, sizeof(folder), "%.40s/glm-XXXXXX", parent ? parent : "/tmp");
		must(mkdtemp(folder) != NULL, folder);
	}
	used = pack(bytes, length, packing, packed, room);
	if (!used && packing != PACK_PLAIN) {
		if (!told[packing])
			printf("omitted: no library for %s\n", names[packing]);
		told[packing] = true;
		free(packed);
		return NULL;
	}
	snprintf(paths[packing], sizeof(paths[packing]), "%s/%s", folder, names[packing]);
	bytes_write(paths[packing], O_TRUNC, packed, used);
	free(packed);
	return paths[packing];
}

size_t file_size(const char *path)
{
	struct stat about;

	must(!stat(path, &about), path);
	return (size_t)about.st_size;
}

void file_cut(const char *path, size_t size)
{
	must(!truncate(path, (off_t)size), path);
}

void file_flip(const char *path, size_t at)
{
	int file = open(path, O_RDWR);
	unsigned char byte = 0;

	must(file >= 0 && pread(file, &byte, 1, (off_t)at) == 1, path);
	byte = (unsigned char)~byte;
	must(pwrite(file, &byte, 1, (off_t)at) == 1 && !close(file), path);
}

void file_append(const char *path, const void *bytes, size_t length)
{
	bytes_write(path, O_APPEND, bytes, length);
}

void files_remove(void)
{
	unsigned i;

	for (i = 0; i < 5; i++)
		if (*paths[i])
			unlink(paths[i]);
	if (*folder)
		rmdir(folder);
}
