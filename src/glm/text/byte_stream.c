/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/byte_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_ROOM 65536u
#define MAGIC_MAX 6u

struct byte_stream {
	int file;
	bool once;
	bool done;
	const struct byte_decoder *decoder; /* NULL: plain bytes */
	void *state;
	struct byte_input input;
	uint8_t room[INPUT_ROOM];
};

/* How files begin that are compressed. Those without a decoder get a sentence. */
static const struct {
	const char *magic;
	uint8_t bytes;
	const struct byte_decoder *decoder;
	const char *name;
} magics[] = {
	{ "\x1f\x8b", 2, &byte_gzip, NULL },          { "\xfd\x37zXZ", 6, &byte_xz, NULL },
	{ "\x28\xb5\x2f\xfd", 4, NULL, "zstd data" }, { "BZh", 3, NULL, "bzip2 data" },
	{ "PK\x03\x04", 4, NULL, "a zip archive" },   { "\x93NUMPY", 6, NULL, "a NumPy array" },
};

/* Adds bytes of the file to what is left of the input. */
static trib_status input_fill(struct byte_stream *stream)
{
	struct byte_input *input = &stream->input;
	ssize_t got;

	memmove(stream->room, input->at, input->n);
	input->at = stream->room;
	do
		got = read(stream->file, stream->room + input->n, INPUT_ROOM - input->n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return status_fail_errno("cannot be read");
	input->end = !got;
	input->n += (size_t)got;
	return TRIB_OK;
}

static trib_status decoder_find(struct byte_stream *stream)
{
	struct byte_input *input = &stream->input;
	trib_status status;
	unsigned i;

	/* A pipe may return a few bytes at a time. */
	while (input->n < MAGIC_MAX && !input->end)
		if ((status = input_fill(stream)) != TRIB_OK)
			return status;
	for (i = 0; i < sizeof(magics) / sizeof(*magics); i++) {
		if (input->n < magics[i].bytes ||
		    memcmp(input->at, magics[i].magic, magics[i].bytes) != 0)
			continue;
		if (!magics[i].decoder)
			return status_fail(TRIB_ERR_CONFIG,
			                   "is %s; text, and text in gzip or xz, can be read",
			                   magics[i].name);
		stream->decoder = magics[i].decoder;
		if (!stream->decoder->open)
			return status_fail(TRIB_ERR_CONFIG,
			                   "is compressed with %s, and this program was built "
			                   "without its library",
			                   stream->decoder->name);
		return stream->decoder->open(&stream->state);
	}
	return TRIB_OK;
}

trib_status byte_stream_open(struct byte_stream **stream, const char *path)
{
	struct byte_stream *made = calloc(1, sizeof(*made));
	bool standard = !strcmp(path, "-");
	struct stat about;
	trib_status status;

	*stream = NULL;
	if (!made)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for its buffer", path);
	made->input.at = made->room;
	made->file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (made->file < 0 || fstat(made->file, &about) < 0) {
		status = status_fail_errno("%s", path);
	} else if (S_ISDIR(about.st_mode)) {
		status = status_fail(TRIB_ERR_CONFIG, "%s is a folder", path);
	} else {
		made->once = standard || !S_ISREG(about.st_mode);
		if ((status = decoder_find(made)) == TRIB_OK) {
			*stream = made;
			return TRIB_OK;
		}
		status_fail(status, "%s %s", path, trib_last_error());
	}
	byte_stream_close(made);
	return status;
}

static trib_status plain_read(struct byte_stream *stream, void *to, size_t room, size_t *got)
{
	struct byte_input *input = &stream->input;
	ssize_t n;

	if (input->n) {
		*got = room < input->n ? room : input->n;
		memcpy(to, input->at, *got);
		input->at += *got;
		input->n -= *got;
		return TRIB_OK;
	}
	/* Straight to the caller, without the copy. */
	do
		n = read(stream->file, to, room);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return status_fail_errno("cannot be read");
	*got = (size_t)n;
	return TRIB_OK;
}

trib_status byte_stream_read(struct byte_stream *stream, void *to, size_t room, size_t *got)
{
	trib_status status;

	*got = 0;
	if (!stream->decoder)
		return plain_read(stream, to, room, got);
	while (!*got && !stream->done) {
		if (!stream->input.n && !stream->input.end &&
		    (status = input_fill(stream)) != TRIB_OK)
			return status;
		status = stream->decoder->next(stream->state, &stream->input, to, room, got,
		                               &stream->done);
		if (status != TRIB_OK)
			return status;
	}
	return TRIB_OK;
}

bool byte_stream_is_once(const struct byte_stream *stream)
{
	return stream->once;
}

void byte_stream_close(struct byte_stream *stream)
{
	if (!stream)
		return;
	if (stream->state)
		stream->decoder->close(stream->state);
	if (stream->file > STDIN_FILENO)
		close(stream->file);
	free(stream);
}
