/* SPDX-License-Identifier: Apache-2.0 */
/* The token: a secret that every client of a controller has to show. */
#ifndef TRIB_CONTROL_TRANSPORT_TOKEN_H
#define TRIB_CONTROL_TRANSPORT_TOKEN_H

#include "base/status.h"

#define TOKEN_MAX 256

/* Reads TRIB_TOKEN, the file of TRIB_TOKEN_FILE, or the state folder; empty: there is none. */
trib_status token_read(const char *state_dir, char out[TOKEN_MAX]);
/*
 * As token_read, but an unreadable or malformed token in the state folder is an error: the caller
 * would do without a token otherwise. NULL: there is no state folder.
 */
trib_status token_find(const char *state_dir, char out[TOKEN_MAX]);
/* As token_read; if there is none, makes a random one in the state folder. */
trib_status token_make(const char *state_dir, char out[TOKEN_MAX]);

#endif
