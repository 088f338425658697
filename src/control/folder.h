/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: the store, the key, the token, and how to reach the controller that has it. */
#ifndef TRIB_CONTROL_FOLDER_H
#define TRIB_CONTROL_FOLDER_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

#define FOLDER_PATH_MAX 1024
#define FOLDER_TOKEN "token"
#define FOLDER_ADDRESS "address" /* what TRIB_CONTROLLER would be on this machine */

/* Where it is: `given`, TRIB_STATE, what systemd says, or the default. */
trib_status folder_find(const char *given, char out[FOLDER_PATH_MAX]);
/* The same, and makes it, for its owner alone. */
trib_status folder_make(const char *given, char out[FOLDER_PATH_MAX]);

/* The text of a file, at most size - 1 bytes of it. TRIB_ERR_CONFIG: there is none. */
trib_status folder_read(const char *folder, const char *name, char *out, size_t size);
/* In one step: a reader sees the old text or the new one, whatever happens. */
trib_status folder_write(const char *folder, const char *name, const char *text, mode_t mode);

#endif
