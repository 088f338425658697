/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/row_reader.h"
#include "glm/text/csv_guess.h"
#include "glm/text/line_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a sentence has room for, behind the name of the file and the line. */
#define REASON 340
#define NAME_MAX_SHOWN 240u

struct row_reader {
	const char *name; /* of the file, in sentences; only the end of a long path */
	enum glm_format kind;
	struct row_format format;
	struct glm_rules rules;
	struct glm_problem *problem;
	struct line_stream lines;
	struct line pending; /* the first line with data, which was read for its format */
	bool is_pending;
	char *header; /* the line of names; NULL: none */
	struct glm_row row;
	size_t room; /* of the row's arrays */
};

static trib_status sentence_fail(struct row_reader *reader, trib_status status, uint64_t line,
                                 const char *says)
{
	char *sentence = reader->problem->sentence[0];

	if (line)
		snprintf(sentence, GLM_SENTENCE, "%s:%llu: %.*s", reader->name,
		         (unsigned long long)line, REASON, says);
	else
		snprintf(sentence, GLM_SENTENCE, "%s: %.*s", reader->name, REASON, says);
	if (!reader->problem->kept)
		reader->problem->kept = 1;
	return status_fail(status, "%s", sentence);
}

/* An error of the stream gets file and line. */
static trib_status stream_fail(struct row_reader *reader, trib_status status)
{
	return sentence_fail(reader, status, reader->lines.number + 1, trib_last_error());
}

static trib_status bad_row(struct row_reader *reader, const char *why)
{
	struct glm_problem *problem = reader->problem;
	const char *cut =
		problem->no_newline
			? " (the file ends in this line, without a newline: it may be cut)"
			: "";
	char says[REASON], more[REASON];

	snprintf(says, sizeof(says), "%.*s%s", (int)GLM_WHY, why, cut);
	if (!reader->rules.skip)
		return sentence_fail(reader, TRIB_ERR_CONFIG, reader->lines.number, says);
	problem->skipped++;
	if (reader->rules.skip_max && problem->skipped > reader->rules.skip_max) {
		snprintf(more, sizeof(more), "bad row %llu, and %llu may be skipped: %.*s",
		         (unsigned long long)problem->skipped,
		         (unsigned long long)reader->rules.skip_max, (int)GLM_WHY, says);
		return sentence_fail(reader, TRIB_ERR_CONFIG, reader->lines.number, more);
	}
	if (problem->kept < GLM_PROBLEMS_KEPT)
		snprintf(problem->sentence[problem->kept++], GLM_SENTENCE, "%s:%llu: %.*s",
		         reader->name, (unsigned long long)reader->lines.number, REASON, says);
	return TRIB_OK;
}

static trib_status row_room_make(struct row_reader *reader, size_t length)
{
	size_t room = row_room(length);
	uint32_t *column;
	float *value;

	if (room <= reader->room)
		return TRIB_OK;
	room += room / 2;
	column = realloc(reader->row.column, room * sizeof(*column));
	if (column)
		reader->row.column = column;
	value = realloc(reader->row.value, room * sizeof(*value));
	if (value)
		reader->row.value = value;
	if (!column || !value)
		return row_reader_fail(reader, "no memory for a row of %zu bytes", length);
	reader->room = room;
	return TRIB_OK;
}

static trib_status line_take(struct row_reader *reader, struct line *line, bool *more)
{
	trib_status status;

	if (reader->is_pending) {
		reader->is_pending = false;
		*line = reader->pending;
		*more = true;
		return TRIB_OK;
	}
	if ((status = line_next(&reader->lines, line, more)) != TRIB_OK)
		return stream_fail(reader, status);
	if (*more)
		reader->problem->no_newline = line->no_newline;
	return TRIB_OK;
}

/* Is there a label, and do the other columns fit a model? */
static trib_status csv_columns_check(struct row_reader *reader, const struct glm_source *source)
{
	const struct row_format *format = &reader->format;
	uint32_t columns = row_reader_columns(reader);

	if (!columns)
		return sentence_fail(reader, TRIB_ERR_CONFIG, reader->lines.number,
		                     "one column only: a label and a feature are needed, or "
		                     "another delimiter");
	if (columns > format->columns_max)
		return sentence_fail(reader, TRIB_ERR_CONFIG, reader->lines.number,
		                     "more columns than the limit allows");
	if (source->features && columns != source->features)
		return row_reader_fail(
			reader, "%u columns%s, but the model has %u features", columns,
			format->label == ROW_NO_LABEL ? "" : " beside the label", source->features);
	return TRIB_OK;
}

static trib_status csv_begin(struct row_reader *reader, const struct glm_source *source)
{
	const char *label = source->label;
	struct row_format *format = &reader->format;
	const char *line = reader->pending.text;
	bool header;
	trib_status status;

	format->delimiter = source->delimiter ? source->delimiter : delimiter_guess(line);
	format->fields = csv_fields_count(line, format->delimiter);
	format->missing = source->missing;
	header = source->header == GLM_HEADER_YES ||
	         (source->header == GLM_HEADER_AUTO && header_guess(line, format->delimiter));
	if (!label && source->features && format->fields == source->features)
		label = "none";
	if (header) {
		reader->header = strdup(line);
		if (!reader->header)
			return row_reader_fail(reader, "no memory for its header");
		reader->is_pending = false;
	}
	status = csv_label_find(label, reader->header, format->delimiter, format->fields,
	                        &format->label);
	if (status != TRIB_OK)
		return sentence_fail(reader, status, 0, trib_last_error());
	return csv_columns_check(reader, source);
}

/* Reads to the first line with data, and finds out what the file is. */
static trib_status reader_begin(struct row_reader *reader, const struct glm_source *source)
{
	const char *begin;
	bool more;
	trib_status status;

	do {
		if ((status = line_take(reader, &reader->pending, &more)) != TRIB_OK)
			return status;
		begin = more ? reader->pending.text + strspn(reader->pending.text, " \t") : "";
	} while (more && (!*begin || *begin == '#'));
	reader->is_pending = more;
	reader->kind = source->format;
	if (reader->kind == GLM_FORMAT_AUTO)
		reader->kind = more ? format_guess(reader->pending.text) : GLM_LIBSVM;
	return reader->kind == GLM_CSV && more ? csv_begin(reader, source) : TRIB_OK;
}

trib_status row_reader_open(struct row_reader **reader, const struct glm_source *source,
                            const struct glm_rules *rules, struct glm_problem *problem)
{
	struct row_reader *made = calloc(1, sizeof(*made));
	trib_status status;

	*reader = NULL;
	*problem = (struct glm_problem){ 0 };
	if (!made)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory to read it", source->path);
	made->name = strcmp(source->path, "-") ? source->path : "standard input";
	if (strlen(made->name) > NAME_MAX_SHOWN)
		made->name += strlen(made->name) - NAME_MAX_SHOWN;
	made->rules = *rules;
	made->problem = problem;
	made->format.base = source->base;
	made->format.columns_max = rules->columns_max ? rules->columns_max : GLM_COLUMNS_MAX;
	status = line_stream_open(&made->lines, source->path,
	                          rules->line_max ? rules->line_max : GLM_LINE_MAX);
	if (status != TRIB_OK) {
		snprintf(problem->sentence[0], GLM_SENTENCE, "%s", trib_last_error());
		problem->kept = 1;
	} else if (rules->twice && row_reader_is_once(made)) {
		status =
			row_reader_fail(made, "it can be read only once, and has to be read twice: "
		                              "write it to a file first");
	} else {
		status = reader_begin(made, source);
	}
	if (status == TRIB_OK)
		*reader = made;
	else
		row_reader_close(made);
	return status;
}

trib_status row_reader_next(struct row_reader *reader, struct glm_row **row)
{
	enum row_verdict verdict;
	struct line line;
	trib_status status;
	bool more;

	*row = NULL;
	for (;;) {
		if ((status = line_take(reader, &line, &more)) != TRIB_OK || !more)
			return status;
		if ((status = row_room_make(reader, line.length)) != TRIB_OK)
			return status;
		if (line.too_long)
			verdict = row_fail(&reader->row, "the line is longer than %zu bytes",
			                   reader->lines.limit);
		else if (reader->kind == GLM_LIBSVM)
			verdict =
				svm_row_read(&reader->row, &reader->format, line.text, line.length);
		else
			verdict =
				csv_row_read(&reader->row, &reader->format, line.text, line.length);
		if (verdict == ROW_GOOD) {
			*row = &reader->row;
			return TRIB_OK;
		}
		if (verdict == ROW_BAD && (status = bad_row(reader, reader->row.why)) != TRIB_OK)
			return status;
	}
}

trib_status row_reader_reject(struct row_reader *reader, const char *says, ...)
{
	char why[GLM_WHY];
	va_list args;

	va_start(args, says);
	vsnprintf(why, sizeof(why), says, args);
	va_end(args);
	return bad_row(reader, why);
}

trib_status row_reader_fail(struct row_reader *reader, const char *says, ...)
{
	char why[GLM_WHY];
	va_list args;

	va_start(args, says);
	vsnprintf(why, sizeof(why), says, args);
	va_end(args);
	return sentence_fail(reader, TRIB_ERR_CONFIG, 0, why);
}

enum glm_format row_reader_format(const struct row_reader *reader)
{
	return reader->kind;
}

bool row_reader_is_once(const struct row_reader *reader)
{
	return byte_stream_is_once(reader->lines.bytes);
}

uint32_t row_reader_columns(const struct row_reader *reader)
{
	const struct row_format *format = &reader->format;

	return format->fields ? format->fields - (format->label != ROW_NO_LABEL) : 0;
}

trib_status row_reader_names(struct row_reader *reader, char ***names)
{
	struct csv_field field = { .next = reader->header };
	size_t pointers = reader->format.fields * sizeof(**names);
	uint32_t i, column = 0;
	char *text;

	*names = NULL;
	if (!reader->header)
		return TRIB_OK;
	*names = calloc(1, pointers + strlen(reader->header) + reader->format.fields);
	if (!*names)
		return row_reader_fail(reader, "no memory for its header");
	text = (char *)*names + pointers;
	for (i = 0; csv_field_next(&field, reader->format.delimiter); i++) {
		if (i == reader->format.label)
			continue;
		(*names)[column++] = text;
		memcpy(text, field.text, field.length);
		text += field.length + 1;
	}
	return TRIB_OK;
}

void row_reader_close(struct row_reader *reader)
{
	if (!reader)
		return;
	line_stream_close(&reader->lines);
	free(reader->header);
	free(reader->row.column);
	free(reader->row.value);
	free(reader);
}
