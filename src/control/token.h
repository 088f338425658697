/* SPDX-License-Identifier: Apache-2.0 */
/* The token: a secret that whoever speaks to a controller has to show. */
#ifndef TRIB_CONTROL_TOKEN_H
#define TRIB_CONTROL_TOKEN_H

#include "base/status.h"

#define TOKEN_MAX 256

/* From TRIB_TOKEN, the file that TRIB_TOKEN_FILE names, or the state folder; empty: there is none.
 */
trib_status token_read(const char *folder, char out[TOKEN_MAX]);
/* The same, but one in the state folder that cannot be read or is no good is an error: for who
 * would do without a token where there is none. NULL: there is no such folder.
 */
trib_status token_find(const char *folder, char out[TOKEN_MAX]);
/* As token_read; where there is none, a random one is left in the state folder. */
trib_status token_make(const char *folder, char out[TOKEN_MAX]);

#endif
