/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/data/update_data.h"

#include "glm/text/line_stream.h"
#include "sparse/data/update_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX (512ull << 20)
#define RECORDS_MAX (1ull << 31)
#define GUESS_LINES 50u

void update_data_free(struct update_data *data)
{
	key_index_free(&data->index);
	free(data->counts);
	free(data->updates);
	free(data->groups);
	*data = (struct update_data){ 0 };
}

static trib_status key_count(struct update_data *data, uint64_t key, uint64_t count,
                             uint32_t *number)
{
	trib_status status = key_index_add(&data->index, key, number);

	if (status != TRIB_OK)
		return status;
	if (data->counts_room < data->index.room) {
		uint64_t *counts = realloc(data->counts, data->index.room * sizeof(*counts));

		if (!counts)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u keys",
			                   data->index.room);
		memset(counts + data->counts_room, 0,
		       (data->index.room - data->counts_room) * sizeof(*counts));
		data->counts = counts;
		data->counts_room = data->index.room;
	}
	if (data->total + count < count)
		return status_fail(TRIB_ERR_CONFIG, "the counts have a sum above 2^64");
	data->counts[*number] += count;
	data->total += count;
	return TRIB_OK;
}

trib_status update_data_count(struct update_data *data, uint64_t key, uint64_t count)
{
	uint32_t number;

	return key_count(data, key, count, &number);
}

static trib_status records_grow(struct update_data *data)
{
	size_t room = data->room ? 2 * data->room : 4096;
	uint32_t *updates = NULL, *groups = NULL;

	if (data->room < RECORDS_MAX)
		updates = realloc(data->updates, room * data->per_record * sizeof(*updates));
	if (updates) {
		data->updates = updates;
		groups = realloc(data->groups, room * sizeof(*groups));
	}
	if (!groups)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %zu records", room);
	data->groups = groups;
	data->room = room;
	return TRIB_OK;
}

trib_status update_data_record(struct update_data *data, const uint64_t *keys, unsigned n,
                               uint32_t group)
{
	trib_status status = TRIB_OK;

	data->per_record = n;
	if (data->records == data->room && (status = records_grow(data)) != TRIB_OK)
		return status;
	for (unsigned i = 0; status == TRIB_OK && i < n; i++)
		status = key_count(data, keys[i], 1, &data->updates[data->records * n + i]);
	if (status == TRIB_OK)
		data->groups[data->records++] = group;
	return status;
}

/* ---- a file ---- */

/* The first lines of a file, which are kept until their format is known. */
struct first_lines {
	char *text[GUESS_LINES];
	size_t length[GUESS_LINES];
	unsigned n;
};

static trib_status line_keep(struct first_lines *first, const struct line *line)
{
	char *text = malloc(line->length + 1);

	if (!text)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a line");
	memcpy(text, line->text, line->length + 1);
	first->text[first->n] = text;
	first->length[first->n++] = line->length;
	return TRIB_OK;
}

static trib_status kept_lines_take(struct update_data *data, struct first_lines *first,
                                   uint64_t *number)
{
	trib_status status = TRIB_OK;
	unsigned i = 0;

	if (data->format == UPDATES_AUTO)
		data->format = update_format_guess((const char *const *)first->text, first->n);
	for (; i < first->n && status == TRIB_OK; i++) {
		*number = i + 1;
		status = update_line_take(data, first->text[i], first->length[i]);
	}
	for (i = 0; i < first->n; i++)
		free(first->text[i]);
	first->n = 0;
	return status;
}

static trib_status lines_take(struct update_data *data, struct line_stream *lines,
                              struct first_lines *first, uint64_t *number)
{
	bool is_kept = true, more = true;

	for (;;) {
		struct line line;
		trib_status status;

		*number = lines->number + 1;
		if ((status = line_next(lines, &line, &more)) != TRIB_OK)
			return status;
		if (more && line.too_long)
			return status_fail(TRIB_ERR_CONFIG, "the line has more than %llu MiB",
			                   LINE_BYTES_MAX >> 20);
		if (is_kept && more && first->n < GUESS_LINES) {
			if ((status = line_keep(first, &line)) != TRIB_OK)
				return status;
			continue;
		}
		if (is_kept && (status = kept_lines_take(data, first, number)) != TRIB_OK)
			return status;
		is_kept = false;
		if (!more)
			return TRIB_OK;
		*number = lines->number;
		if ((status = update_line_take(data, line.text, line.length)) != TRIB_OK)
			return status;
	}
}

trib_status update_data_read(struct update_data *data, const char *path)
{
	struct first_lines first = { .n = 0 };
	struct line_stream lines;
	uint64_t number = 0;
	trib_status status = line_stream_open(&lines, path, LINE_BYTES_MAX);

	if (status == TRIB_OK) {
		status = lines_take(data, &lines, &first, &number);
		if (status != TRIB_OK)
			status_fail(status, "%s:%" PRIu64 ": %s", path, number, trib_last_error());
	}
	for (unsigned i = 0; i < first.n; i++)
		free(first.text[i]);
	line_stream_close(&lines);
	return status;
}

struct heat_key *update_data_rank(const struct update_data *data, const uint64_t *counts, size_t *n)
{
	struct heat_key *keys = calloc((size_t)data->index.n + 1, sizeof(*keys));

	*n = 0;
	for (uint32_t i = 0; keys && i < data->index.n; i++)
		if (counts[i])
			keys[(*n)++] = (struct heat_key){ data->index.keys[i], counts[i] };
	if (keys)
		heat_rank(keys, *n);
	return keys;
}
