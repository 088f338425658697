/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* False: the field is too long. */
static bool field_copy(char *field, const char *from, const char *to)
{
	size_t n;

	while (from < to && is_blank(*from))
		from++;
	while (from < to && is_blank(to[-1]))
		to--;
	n = (size_t)(to - from);
	if (n >= FIELD_ROOM)
		n = FIELD_ROOM - 1;
	memcpy(field, from, n);
	field[n] = 0;
	return n == (size_t)(to - from);
}

static trib_status line_split(struct fields *fields, const char *from, const char *to,
                              char separator, bool loose)
{
	for (bool last = false; !last;) {
		const char *end = memchr(from, separator, (size_t)(to - from));

		last = !end;
		if (last)
			end = to;
		if (fields->n == FIELDS_MAX && !loose)
			return fields_fail(fields, "too many fields");
		if (fields->n == FIELDS_MAX)
			return TRIB_OK;
		if (!field_copy(fields->at[fields->n++], from, end) && !loose)
			return fields_fail(fields, "a field is too long");
		from = end + 1;
	}
	return TRIB_OK;
}

trib_status fields_next(struct fields *fields, const char **text, char separator, bool loose)
{
	fields->n = 0;
	while (*text) {
		const char *from = *text, *newline = strchr(from, '\n');
		const char *to = newline ? newline : from + strlen(from), *at = from;

		*text = newline ? newline + 1 : NULL;
		fields->line++;
		while (at < to && is_blank(*at))
			at++;
		if (at < to && *at != '#')
			return line_split(fields, from, to, separator, loose);
	}
	return TRIB_OK;
}

trib_status fields_fail(const struct fields *fields, const char *what)
{
	return status_fail(TRIB_ERR_CONFIG, "%u: %s", fields->line, what);
}

trib_status field_number(const struct fields *fields, unsigned i, const char *what, double most,
                         double *value)
{
	char *end = NULL;

	if (i < fields->n && isdigit((unsigned char)*fields->at[i]))
		*value = strtod(fields->at[i], &end);
	if (!end || *end || !(*value <= most))
		return status_fail(TRIB_ERR_CONFIG, "%u: \"%.32s\" is no %s (0 to %g)",
		                   fields->line, i < fields->n ? fields->at[i] : "", what, most);
	return TRIB_OK;
}

trib_status field_count(const struct fields *fields, unsigned i, const char *what, uint32_t least,
                        uint32_t most, uint32_t *value)
{
	char *end = NULL;
	unsigned long long number = 0;

	if (i < fields->n && isdigit((unsigned char)*fields->at[i]))
		number = strtoull(fields->at[i], &end, 10);
	if (!end || *end || number < least || number > most)
		return status_fail(TRIB_ERR_CONFIG, "%u: \"%.32s\" is no %s (%u to %u)",
		                   fields->line, i < fields->n ? fields->at[i] : "", what, least,
		                   most);
	*value = (uint32_t)number;
	return TRIB_OK;
}
