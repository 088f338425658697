/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/csv_guess.h"
#include "glm/text/number_text.h"
#include "glm/text/row_text.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

enum glm_format format_guess(const char *line)
{
	const char *at = line, *end;
	float ignored;

	while (is_blank(*at))
		at++;
	if (number_text_read(at, &end, &ignored) == NUMBER_NONE || (*end && !is_blank(*end)))
		return GLM_CSV;
	while (is_blank(*end))
		end++;
	if (!*end || *end == '#' || !strncmp(end, "qid:", 4))
		return GLM_LIBSVM;
	return end[strcspn(end, ": \t,;|")] == ':' ? GLM_LIBSVM : GLM_CSV;
}

char delimiter_guess(const char *line)
{
	static const char tries[] = ",\t;|";
	unsigned counts[sizeof(tries) - 1] = { 0 }, best = 0, i;
	bool quoted = false;

	for (; *line; line++) {
		const char *which = strchr(tries, *line);

		quoted ^= *line == '"';
		if (which && !quoted)
			counts[which - tries]++;
	}
	for (i = 1; i < sizeof(counts) / sizeof(*counts); i++)
		if (counts[i] > counts[best])
			best = i;
	return counts[best] ? tries[best] : ' ';
}

bool csv_field_next(struct csv_field *field, char delimiter)
{
	const char *at = field->next, *end;
	bool quoted;

	if (!at)
		return false;
	while (*at == ' ' || (delimiter == ' ' && *at == '\t'))
		at++;
	if (!*at && delimiter == ' ')
		return false;
	quoted = *at == '"';
	at += quoted;
	end = at + strcspn(at, quoted ? "\"" : delimiter == ' ' ? " \t" : (char[]){ delimiter, 0 });
	field->text = at;
	field->next = end;
	if (quoted && *end)
		field->next += strcspn(end, (char[]){ delimiter, 0 });
	field->next = *field->next ? field->next + 1 : NULL;
	while (end > at && is_blank(end[-1]))
		end--;
	field->length = (uint32_t)(end - at);
	return true;
}

uint32_t csv_fields_count(const char *line, char delimiter)
{
	struct csv_field field = { .next = line };
	uint32_t n = 0;

	while (csv_field_next(&field, delimiter))
		n++;
	return n;
}

bool header_guess(const char *line, char delimiter)
{
	static const char *const missing[] = { "NA", "null", "?", "" };
	struct csv_field field = { .next = line };
	const char *end;
	float ignored;

	while (csv_field_next(&field, delimiter)) {
		bool number = number_text_read(field.text, &end, &ignored) != NUMBER_NONE &&
		              end == field.text + field.length;
		unsigned i;

		for (i = 0; i < sizeof(missing) / sizeof(*missing) && !number; i++)
			number = strlen(missing[i]) == field.length &&
			         !memcmp(missing[i], field.text, field.length);
		if (!number)
			return true;
	}
	return false;
}

static bool label_by_name(const char *label, const char *header, char delimiter, uint32_t *found)
{
	struct csv_field field = { .next = header };

	for (*found = 0; csv_field_next(&field, delimiter); ++*found)
		if (strlen(label) == field.length && !memcmp(label, field.text, field.length))
			return true;
	return false;
}

trib_status csv_label_find(const char *label, const char *header, char delimiter, uint32_t fields,
                           uint32_t *found)
{
	char *end;
	long number;

	*found = 0;
	if (!label)
		return TRIB_OK;
	if (!strcmp(label, "none")) {
		*found = ROW_NO_LABEL;
		return TRIB_OK;
	}
	number = strtol(label, &end, 10);
	if (*label && !*end) {
		if (!number || number > (long)fields || -number > (long)fields)
			return status_fail(
				TRIB_ERR_CONFIG,
				"the label is said to be column %s, but there are %u columns",
				label, fields);
		*found = number > 0 ? (uint32_t)number - 1 : fields - (uint32_t)-number;
		return TRIB_OK;
	}
	if (!header)
		return status_fail(
			TRIB_ERR_CONFIG,
			"the label is said to be column '%s', but the file has no header "
			"with names",
			label);
	if (!label_by_name(label, header, delimiter, found))
		return status_fail(TRIB_ERR_CONFIG, "the header has no column '%s' for the label",
		                   label);
	return TRIB_OK;
}
