/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_OPTIONS_TEXT_H
#define TRIB_OPTIONS_TEXT_H

#include "base/status.h"

/*
 * Reads all of a file, or of the standard input for "-", and adds a 0. A byte order mark is left
 * out. The caller frees the text, also after an error.
 */
trib_status text_read(const char *path, char **text);

/* Makes "PATH:LINE: what is wrong" of the last error "LINE: what is wrong". */
trib_status text_fail(trib_status status, const char *path);

#endif
