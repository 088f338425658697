/* SPDX-License-Identifier: Apache-2.0 */
/* csv_guess: what the first line tells about a file. Pure. */
#ifndef TRIB_GLM_CSV_GUESS_H
#define TRIB_GLM_CSV_GUESS_H

#include "glm/text/source.h"

/* A number alone, or a number and INDEX:VALUE, is libsvm. */
enum glm_format format_guess(const char *line);

/* The most frequent of comma, tab, semicolon and bar outside of quotes; ' ' if there is none. */
char delimiter_guess(const char *line);

/* Whether a field is neither a number nor missing. */
bool header_guess(const char *line, char delimiter);

/* Gives the fields one after the other, without quotes and spaces around them; false: no more. */
struct csv_field {
	const char *next; /* set to the line at the beginning; NULL: the line is done */
	const char *text;
	uint32_t length;
};
bool csv_field_next(struct csv_field *field, char delimiter);

uint32_t csv_fields_count(const char *line, char delimiter);

/*
 * The field of the label, from 0, or ROW_NO_LABEL: see glm_source.label. `header` is the line of
 * names, or NULL. The error is a reason without a file name.
 */
trib_status csv_label_find(const char *label, const char *header, char delimiter, uint32_t fields,
                           uint32_t *found);

#endif
