/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/model/model_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUM_FACTOR 0x9fb21c651e98df25ull
#define FILE_MAX (64ull << 30)

static void word_store(uint8_t *to, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t word_load(const uint8_t *from, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

static uint64_t word_sum(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * SUM_FACTOR;
	return sum << 29 | sum >> 35;
}

/* Words of 8 bytes; the last one is filled with zeros. Every step is a bijection of the sum. */
uint64_t bytes_sum(uint64_t sum, const uint8_t *bytes, size_t n)
{
	for (; n >= 8; bytes += 8, n -= 8)
		sum = word_sum(sum, word_load(bytes, 8));
	return n ? word_sum(sum, word_load(bytes, (unsigned)n)) : sum;
}

/* ---- writing ---- */

static bool is_no_file(const char *path)
{
	struct stat about;

	return !stat(path, &about) && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

trib_status bytes_create(struct bytes_writer *out, const char *path)
{
	*out = (struct bytes_writer){ .sum = BYTES_SUM_START };
	if (strlen(path) >= sizeof(out->path))
		return status_fail(TRIB_ERR_ARGUMENT, "the name of a file is too long");
	snprintf(out->path, sizeof(out->path), "%s", path);
	out->is_straight = is_no_file(path);
	if (out->is_straight)
		snprintf(out->beside, sizeof(out->beside), "%s", path);
	else
		snprintf(out->beside, sizeof(out->beside), "%s.new.%d", path, (int)getpid());
	out->file = fopen(out->beside, "wb");
	if (!out->file)
		return status_fail_errno("cannot write %s", out->beside);
	return TRIB_OK;
}

trib_status bytes_try(const char *path)
{
	struct bytes_writer out;
	struct stat about;
	trib_status status;

	if (!stat(path, &about) && S_ISDIR(about.st_mode))
		return status_fail(TRIB_ERR_ARGUMENT, "cannot write %s: it is a folder", path);
	/* Opening a pipe waits for its reader. */
	if (is_no_file(path))
		return TRIB_OK;
	status = bytes_create(&out, path);
	if (status != TRIB_OK)
		return status;
	fclose(out.file);
	unlink(out.beside);
	return TRIB_OK;
}

void bytes_put(struct bytes_writer *out, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;
	size_t whole;

	out->failed |= fwrite(bytes, 1, n, out->file) != n;
	while (n && out->n_pending) {
		out->pending[out->n_pending++] = *from++;
		n--;
		if (out->n_pending == 8) {
			out->sum = bytes_sum(out->sum, out->pending, 8);
			out->n_pending = 0;
		}
	}
	whole = n / 8 * 8;
	out->sum = bytes_sum(out->sum, from, whole);
	for (size_t i = whole; i < n; i++)
		out->pending[out->n_pending++] = from[i];
}

void bytes_put_u32(struct bytes_writer *out, uint32_t value)
{
	uint8_t bytes[4];

	word_store(bytes, value, 4);
	bytes_put(out, bytes, 4);
}

void bytes_put_u64(struct bytes_writer *out, uint64_t value)
{
	uint8_t bytes[8];

	word_store(bytes, value, 8);
	bytes_put(out, bytes, 8);
}

void bytes_put_f64(struct bytes_writer *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, 8);
	bytes_put_u64(out, bits);
}

void bytes_put_floats(struct bytes_writer *out, const float *values, size_t n)
{
	uint8_t bytes[4096];

	while (n) {
		size_t now = n < sizeof(bytes) / 4 ? n : sizeof(bytes) / 4;

		for (size_t i = 0; i < now; i++) {
			uint32_t bits;

			memcpy(&bits, &values[i], 4);
			word_store(bytes + 4 * i, bits, 4);
		}
		bytes_put(out, bytes, 4 * now);
		values += now;
		n -= now;
	}
}

trib_status bytes_commit(struct bytes_writer *out)
{
	uint64_t sum = bytes_sum(out->sum, out->pending, out->n_pending);
	trib_status status = TRIB_OK;
	uint8_t bytes[8];

	word_store(bytes, sum, 8);
	out->failed |= fwrite(bytes, 1, 8, out->file) != 8 || fflush(out->file) ||
	               (!out->is_straight && fsync(fileno(out->file)));
	if (out->failed)
		status = status_fail_errno("cannot write %s", out->beside);
	if (fclose(out->file) && status == TRIB_OK)
		status = status_fail_errno("cannot write %s", out->beside);
	if (out->is_straight)
		return status;
	if (status == TRIB_OK && rename(out->beside, out->path))
		status = status_fail_errno("cannot rename %s to %s", out->beside, out->path);
	if (status != TRIB_OK)
		unlink(out->beside);
	return status;
}

/* ---- reading ---- */

trib_status bytes_load(const char *path, uint8_t **bytes, size_t *n)
{
	FILE *file = fopen(path, "rb");
	trib_status status = TRIB_OK;
	struct stat about;

	*bytes = NULL;
	if (!file)
		return status_fail_errno("cannot read %s", path);
	if (fstat(fileno(file), &about))
		status = status_fail_errno("cannot read %s", path);
	else if (!S_ISREG(about.st_mode) || (uint64_t)about.st_size > FILE_MAX)
		status = status_fail(TRIB_ERR_ARGUMENT, "%s is no file of a model", path);
	*n = status == TRIB_OK ? (size_t)about.st_size : 0;
	if (status == TRIB_OK && !(*bytes = malloc(*n ? *n : 1)))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %s, %zu bytes", path, *n);
	if (status == TRIB_OK && fread(*bytes, 1, *n, file) != *n)
		status = status_fail_errno("cannot read %s", path);
	fclose(file);
	return status;
}

trib_status bytes_open(struct bytes_reader *in, const char *what, const char magic[8],
                       const uint8_t *bytes, size_t n)
{
	*in = (struct bytes_reader){ .at = bytes, .end = bytes };
	if (n < 8 || memcmp(bytes, magic, 8) != 0)
		return status_fail(TRIB_ERR_ARGUMENT, "it is not a %s", what);
	if (n < 16 || bytes_sum(BYTES_SUM_START, bytes, n - 8) != word_load(bytes + n - 8, 8))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the %s is damaged or cut: its checksum is wrong", what);
	in->at = bytes + 8;
	in->end = bytes + n - 8;
	return TRIB_OK;
}

const uint8_t *bytes_get(struct bytes_reader *in, uint64_t n)
{
	const uint8_t *at = in->at;

	if (n > (uint64_t)(in->end - in->at)) {
		in->failed = true;
		return NULL;
	}
	in->at += n;
	return at;
}

uint32_t bytes_get_u32(struct bytes_reader *in)
{
	const uint8_t *at = bytes_get(in, 4);

	return at ? (uint32_t)word_load(at, 4) : 0;
}

uint64_t bytes_get_u64(struct bytes_reader *in)
{
	const uint8_t *at = bytes_get(in, 8);

	return at ? word_load(at, 8) : 0;
}

double bytes_get_f64(struct bytes_reader *in)
{
	uint64_t bits = bytes_get_u64(in);
	double value;

	memcpy(&value, &bits, 8);
	return value;
}

float *bytes_get_floats(struct bytes_reader *in, uint64_t n)
{
	const uint8_t *at = n <= UINT64_MAX / 4 ? bytes_get(in, 4 * n) : NULL;
	float *values;

	if (!at) {
		in->failed = true;
		return NULL;
	}
	values = malloc(n ? n * sizeof(*values) : 1);
	for (uint64_t i = 0; values && i < n; i++) {
		uint32_t bits = (uint32_t)word_load(at + 4 * i, 4);

		memcpy(&values[i], &bits, 4);
	}
	return values;
}
