/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

trib_status json_fail(const struct json_reader *reader, const char *what)
{
	return status_fail(TRIB_ERR_CONFIG, "%u: %s", reader->line, what);
}

char json_peek(struct json_reader *reader)
{
	for (;; reader->at++) {
		if (*reader->at == '\n')
			reader->line++;
		else if (*reader->at != ' ' && *reader->at != '\t' && *reader->at != '\r')
			return *reader->at;
	}
}

trib_status json_take(struct json_reader *reader, char wanted, const char *what)
{
	if (json_peek(reader) != wanted)
		return json_fail(reader, what);
	reader->at++;
	return TRIB_OK;
}

/* The four digits after \u. Anything else is an error, so the end is never passed. */
static trib_status code_take(struct json_reader *reader, char *out)
{
	static const char digits[] = "0123456789abcdef";
	unsigned code = 0;

	for (unsigned i = 0; i < 4; i++) {
		char c = *reader->at;
		const char *digit = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

		if (!digit)
			return json_fail(reader, "\\u has no four digits");
		code = code * 16 + (unsigned)(digit - digits);
		reader->at++;
	}
	*out = code < 0x20 || code == 0x7f ? ' ' : code > 0xff ? '?' : (char)code;
	return TRIB_OK;
}

/* After a backslash. */
static trib_status escape_take(struct json_reader *reader, char *out)
{
	char c = *reader->at;

	if (!c || !strchr("\"\\/bfnrtu", c))
		return json_fail(reader, "a text has an escape that there is not");
	reader->at++;
	if (c == 'u')
		return code_take(reader, out);
	*out = strchr("bfnrt", c) ? ' ' : c;
	return TRIB_OK;
}

/* After the opening quote. */
static trib_status text_take(struct json_reader *reader, char *text, size_t room)
{
	size_t n = 0;

	while (*reader->at != '"') {
		char c = *reader->at++;

		if ((unsigned char)c < 0x20) {
			reader->at--;
			return json_fail(reader, "a text has no end on its line");
		}
		if (c == '\\' && escape_take(reader, &c) != TRIB_OK)
			return TRIB_ERR_CONFIG;
		if (n + 1 < room)
			text[n] = c;
		n++;
	}
	reader->at++;
	if (room)
		text[n < room ? n : 0] = 0;
	return TRIB_OK;
}

trib_status json_text(struct json_reader *reader, char *text, size_t room)
{
	trib_status status = json_take(reader, '"', "expected a text in quotes");

	return status == TRIB_OK ? text_take(reader, text, room) : status;
}

trib_status json_name(struct json_reader *reader, char *name, size_t room)
{
	trib_status status = json_take(reader, '"', "expected a member's name in quotes");

	if (status == TRIB_OK)
		status = text_take(reader, name, room);
	if (status == TRIB_OK)
		status = json_take(reader, ':', "expected a colon behind a member's name");
	return status;
}

trib_status json_number(struct json_reader *reader, double *value)
{
	char *end, first = json_peek(reader);

	/* strtod would accept "nan", "inf" and blanks. */
	if (first != '-' && (first < '0' || first > '9'))
		return json_fail(reader, "expected a number");
	*value = strtod(reader->at, &end);
	if (end == reader->at || !isfinite(*value))
		return json_fail(reader, "expected a number");
	reader->at = end;
	return TRIB_OK;
}

trib_status json_more(struct json_reader *reader, char close, bool *first, bool *more)
{
	char c = json_peek(reader);

	*more = c != close;
	if (c == close) {
		reader->at++;
		return TRIB_OK;
	}
	if (!*first && c != ',')
		return json_fail(reader, "expected a comma");
	reader->at += !*first;
	*first = false;
	return TRIB_OK;
}

static trib_status elements_skip(struct json_reader *reader, char close)
{
	bool first = true, more;
	trib_status status;

	if (++reader->depth > JSON_DEPTH_MAX)
		return json_fail(reader, "nested too deeply");
	reader->at++;
	while ((status = json_more(reader, close, &first, &more)) == TRIB_OK && more) {
		if (close == '}')
			status = json_name(reader, NULL, 0);
		if (status == TRIB_OK)
			status = json_skip(reader);
		if (status != TRIB_OK)
			return status;
	}
	reader->depth--;
	return status;
}

trib_status json_skip(struct json_reader *reader)
{
	static const char *const words[] = { "true", "false", "null" };
	double number;
	char c = json_peek(reader);

	if (c == '{' || c == '[')
		return elements_skip(reader, c == '{' ? '}' : ']');
	if (c == '"') {
		reader->at++;
		return text_take(reader, NULL, 0);
	}
	for (unsigned i = 0; i < 3; i++)
		if (!strncmp(reader->at, words[i], strlen(words[i]))) {
			reader->at += strlen(words[i]);
			return TRIB_OK;
		}
	return json_number(reader, &number);
}
