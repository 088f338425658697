/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_TEXT_H
#define TRIB_CLI_TEXT_H

#include "base/status.h"

/* All of a file, or of the standard input for "-", with a 0 behind it; to be freed, also after an
 * error. */
trib_status text_read(const char *path, char **text);

/* "PATH:LINE: what is wrong", out of "LINE: what is wrong" in the last error. */
trib_status text_fail(trib_status status, const char *path);

#endif
