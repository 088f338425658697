/* SPDX-License-Identifier: Apache-2.0 */
#include "options/json_writer.h"

#include "options/json.h"

#include <math.h>
#include <string.h>

static void line_begin(const struct json_writer *json)
{
	fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

/* What stands before a value: a comma, a blank or a new line, and the name. */
static void value_begin(struct json_writer *json, const char *name, bool is_object)
{
	unsigned level = json->depth - 1;
	bool in_list = json->brackets[level] == ']';

	if (json->filled[level])
		fputc(',', json->out);
	json->has_lines[level] |= in_list && is_object && !json->is_compact;
	if (json->has_lines[level])
		line_begin(json);
	else if ((json->filled[level] || !in_list) && !json->is_compact)
		fputc(' ', json->out);
	json->filled[level] = true;
	if (name) {
		json_print_text(json->out, name);
		fputs(json->is_compact ? ":" : ": ", json->out);
	}
}

static void bracket_open(struct json_writer *json, const char *name, char open, char close)
{
	if (json->depth)
		value_begin(json, name, open == '{');
	fputc(open, json->out);
	json->brackets[json->depth] = close;
	json->has_lines[json->depth] = open == '{' && (name || !json->depth) && !json->is_compact;
	json->filled[json->depth++] = false;
}

void json_open_object(struct json_writer *json, const char *name)
{
	bracket_open(json, name, '{', '}');
}

void json_open_list(struct json_writer *json, const char *name)
{
	bracket_open(json, name, '[', ']');
}

void json_close(struct json_writer *json)
{
	char bracket = json->brackets[--json->depth];

	if (json->has_lines[json->depth] && json->filled[json->depth])
		line_begin(json);
	else if (bracket == '}' && !json->is_compact)
		fputc(' ', json->out);
	fputc(bracket, json->out);
	if (!json->depth)
		fputc('\n', json->out);
}

void json_put_number(struct json_writer *json, const char *name, const char *format, double value)
{
	value_begin(json, name, false);
	if (isfinite(value))
		fprintf(json->out, format, value);
	else
		fputs("null", json->out);
}

void json_put_count(struct json_writer *json, const char *name, unsigned long long value)
{
	value_begin(json, name, false);
	fprintf(json->out, "%llu", value);
}

void json_put_bool(struct json_writer *json, const char *name, bool value)
{
	value_begin(json, name, false);
	fputs(value ? "true" : "false", json->out);
}

void json_put_text(struct json_writer *json, const char *name, const char *text)
{
	value_begin(json, name, false);
	json_print_text(json->out, text);
}

void json_put_numbers(struct json_writer *json, const char *name, const char *format,
                      const double *values, unsigned n)
{
	json_open_list(json, name);
	for (unsigned i = 0; i < n; i++)
		json_put_number(json, NULL, format, values[i]);
	json_close(json);
}

trib_status output_try(const char *path)
{
	bool is_file = path && strcmp(path, "-") != 0;
	FILE *file = is_file ? fopen(path, "a") : NULL;

	if (is_file && (!file || fclose(file) != 0))
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}

trib_status json_start(struct json_writer *json, const char *path)
{
	*json = (struct json_writer){ .out = strcmp(path, "-") ? fopen(path, "w") : stdout };
	if (!json->out)
		return status_fail_errno("cannot write %s", path);
	json_open_object(json, NULL);
	return TRIB_OK;
}

trib_status json_finish(struct json_writer *json, const char *path)
{
	bool is_output = json->out == stdout, failed;

	json_close(json);
	failed = fflush(json->out) != 0;
	if (!is_output)
		failed |= fclose(json->out) != 0;
	return failed ? status_fail_errno("cannot write %s", is_output ? "the output" : path)
	              : TRIB_OK;
}
