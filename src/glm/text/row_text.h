/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_text: a row from one line of libsvm or CSV text. Pure: the caller provides the memory.
 * A bad line gets a reason that stands behind "FILE:LINE: ".
 */
#ifndef TRIB_GLM_ROW_TEXT_H
#define TRIB_GLM_ROW_TEXT_H

#include "glm/text/source.h"

#include <stddef.h>

#define GLM_WHY 200u

struct glm_row {
	float label;      /* NaN: the file has none */
	bool has_zero;    /* libsvm: index 0 occurred */
	uint32_t columns; /* 1 and the highest column that is written, also with a value of 0 */
	uint32_t n;
	uint32_t *column; /* ascending, from 0 */
	float *value;     /* finite, and never 0: a written zero is left out */
	char why[GLM_WHY];
};

/* The entries for which a line of this length needs memory in `column` and `value`. */
static inline size_t row_room(size_t length)
{
	return length / 2 + 1;
}

#define ROW_NO_LABEL UINT32_MAX

/* What a format needs to know beyond the line. */
struct row_format {
	enum glm_base base;   /* libsvm; auto: columns are the indices of the file */
	uint32_t columns_max; /* columns 0 .. columns_max - 1 */
	char delimiter;       /* CSV; ' ': any number of blanks */
	uint32_t fields;      /* CSV: of each line */
	uint32_t label;       /* CSV: the field of the label, from 0, or ROW_NO_LABEL */
	enum glm_missing missing;
};

enum row_verdict { ROW_GOOD, ROW_BAD, ROW_NONE /* blank, or a comment */ };

/* text[length] is 0. */
enum row_verdict svm_row_read(struct glm_row *row, const struct row_format *format,
                              const char *text, size_t length);
enum row_verdict csv_row_read(struct glm_row *row, const struct row_format *format,
                              const char *text, size_t length);

/* Sets the row's reason. */
enum row_verdict row_fail(struct glm_row *row, const char *says, ...)
	__attribute__((format(printf, 2, 3), cold));

/* A piece of the line for a sentence: up to `end`, shortened, without control characters. */
struct row_quote {
	char text[28];
};
struct row_quote row_quote(const char *from, const char *end);

/* What is wrong with a number (enum number_text), e.g. "is not a number". */
const char *row_number_fault(int number_text);

#endif
