/* SPDX-License-Identifier: Apache-2.0 */
/* A field is a number, also in double quotes, with spaces around it. */
#include "glm/text/number_text.h"
#include "glm/text/row_text.h"

#include <math.h>
#include <string.h>

static const char *const missing_words[] = { "NA", "NaN", "nan", "null", "?" };

/* The end of a field: a delimiter or the end of the line. */
static inline bool is_end(char c, char delimiter)
{
	return c == delimiter || c == 0 || (delimiter == ' ' && c == '\t');
}

static const char *spaces_skip(const char *at)
{
	while (*at == ' ')
		at++;
	return at;
}

/* All delimiters that count as one: of blanks, any number. */
static const char *delimiter_skip(const char *at, char delimiter)
{
	if (delimiter != ' ')
		return at + 1;
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static const char *field_end(const char *at, char delimiter)
{
	bool quoted = *at == '"';

	for (at += quoted; *at && (quoted || !is_end(*at, delimiter)); at++)
		if (quoted && *at == '"')
			quoted = false;
	return at;
}

static bool field_is_missing(const char *at, const char *end)
{
	unsigned i;

	while (at < end && (*at == ' ' || *at == '"'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '"'))
		end--;
	for (i = 0; i < sizeof(missing_words) / sizeof(*missing_words); i++)
		if ((size_t)(end - at) == strlen(missing_words[i]) &&
		    !memcmp(at, missing_words[i], (size_t)(end - at)))
			return true;
	return at == end;
}

/* Reads a field that is a number and nothing else. `end` is where it ends. */
static enum number_text field_read(const char *at, char delimiter, const char **end, float *value)
{
	enum number_text kind;
	bool quoted;

	/* One digit, the most frequent value, needs no more. */
	if ((unsigned char)(*at - '0') <= 9 && is_end(at[1], delimiter)) {
		*value = (float)(*at - '0');
		*end = at + 1;
		return NUMBER_OK;
	}
	at = delimiter == ' ' ? at : spaces_skip(at);
	quoted = *at == '"';
	at += quoted;
	kind = number_text_read(at, end, value);
	at = *end;
	if (quoted) {
		at = spaces_skip(at);
		if (*at++ != '"')
			return NUMBER_NONE;
	}
	at = delimiter == ' ' ? at : spaces_skip(at);
	if (!is_end(*at, delimiter))
		return NUMBER_NONE;
	*end = at;
	return kind;
}

/* A field without a number: missing, or bad. */
static enum row_verdict field_fail(struct glm_row *row, const struct row_format *format,
                                   const char *at, uint32_t field, enum number_text kind)
{
	const char *end = field_end(at, format->delimiter);
	bool missing = field_is_missing(at, end);

	if (field == format->label) {
		if (missing)
			return row_fail(row, "field %u: the label is missing", field + 1);
		return row_fail(row, "field %u: the label '%s' %s", field + 1,
		                row_quote(at, end).text, row_number_fault((int)kind));
	}
	if (missing && format->missing == GLM_MISSING_ZERO)
		return ROW_NONE;
	if (missing)
		return row_fail(row, "field %u is missing (--missing zero takes it for 0)",
		                field + 1);
	return row_fail(row, "field %u: '%s' %s", field + 1, row_quote(at, end).text,
	                row_number_fault((int)kind));
}

enum row_verdict csv_row_read(struct glm_row *row, const struct row_format *format,
                              const char *text, size_t length)
{
	const char delimiter = format->delimiter;
	const char *at = delimiter == ' ' ? delimiter_skip(text, ' ') : text, *end;
	uint32_t field, n = 0, column = 0;

	row->n = 0;
	row->has_zero = false;
	row->label = NAN;
	if (*at == '#' || *spaces_skip(at) == 0)
		if (*at == '#' || spaces_skip(at) == text + length)
			return ROW_NONE;
	for (field = 0;; field++) {
		enum number_text kind = field_read(at, delimiter, &end, &row->value[n]);

		if (kind != NUMBER_OK) {
			if (field_fail(row, format, at, field, kind) == ROW_BAD)
				return ROW_BAD;
			row->value[n] = 0;
			end = field_end(at, delimiter);
		}
		if (field == format->label) {
			row->label = row->value[n];
		} else {
			row->column[n] = column++;
			n += row->value[n] != 0;
		}
		if (!*end)
			break;
		at = delimiter_skip(end, delimiter);
		/* Blanks at the end of a line are no field. */
		if (!*at && delimiter == ' ') {
			end = at;
			break;
		}
		if (field + 1 == format->fields)
			return row_fail(row, "more than %u fields, unlike the first line",
			                format->fields);
	}
	if (end != text + length)
		return row_fail(row, "a byte 0: this is not text");
	if (field + 1 != format->fields)
		return row_fail(row, "%u fields, but the first line has %u", field + 1,
		                format->fields);
	row->n = n;
	row->columns = column;
	return ROW_GOOD;
}
