/* SPDX-License-Identifier: Apache-2.0 */
/* update_text: which rows a line of a data set updates. */
#ifndef TRIB_SPARSE_UPDATE_TEXT_H
#define TRIB_SPARSE_UPDATE_TEXT_H

#include "sparse/data/update_data.h"

/* Takes a line of data->format. The text ends with a 0, which is not counted in `length`. */
trib_status update_line_take(struct update_data *data, const char *text, size_t length);

/* The format of a file that begins with these lines. */
enum update_format update_format_guess(const char *const *lines, unsigned n);

/* NULL: there is no such format. The names are those of --format. */
const char *update_format_name(enum update_format format);
bool update_format_find(const char *name, enum update_format *format);

#endif
