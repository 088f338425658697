/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_reader: the good rows of a file, one after the other. Bad rows end the reading with an error,
 * or are skipped and counted, as the rules say. An error of the file itself, such as a cut archive,
 * always ends the reading.
 *
 *     while ((status = row_reader_next(reader, &row)) == TRIB_OK && row)
 *             ...
 */
#ifndef TRIB_GLM_ROW_READER_H
#define TRIB_GLM_ROW_READER_H

#include "glm/text/row_text.h"

struct row_reader;

/* Clears the problem. `source` and `problem` must stay until the reader is closed. */
trib_status row_reader_open(struct row_reader **reader, const struct glm_source *source,
                            const struct glm_rules *rules, struct glm_problem *problem);

/* NULL: no more rows. A row stays until the next call. */
trib_status row_reader_next(struct row_reader *reader, struct glm_row **row);

/* The caller found the last row to be bad. TRIB_OK: it is to be skipped. */
trib_status row_reader_reject(struct row_reader *reader, const char *says, ...)
	__attribute__((format(printf, 2, 3)));

/* An error about the file as a whole: "FILE: ..." */
trib_status row_reader_fail(struct row_reader *reader, const char *says, ...)
	__attribute__((format(printf, 2, 3)));

enum glm_format row_reader_format(const struct row_reader *reader);
/* Standard input and pipes can be read once only. */
bool row_reader_is_once(const struct row_reader *reader);
/* CSV: the features of each row, also of those that are 0 in all rows; libsvm: 0. */
uint32_t row_reader_columns(const struct row_reader *reader);
/*
 * The names of the features in the header of a CSV file, in one block that the caller frees. NULL:
 * there are none.
 */
trib_status row_reader_names(struct row_reader *reader, char ***names);

void row_reader_close(struct row_reader *reader);

#endif
