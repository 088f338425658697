/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: store, key, token, and the address of the controller that uses it. */
#ifndef TRIB_CONTROL_TRANSPORT_STATE_DIR_H
#define TRIB_CONTROL_TRANSPORT_STATE_DIR_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

#define STATE_DIR_PATH_MAX 1024
#define STATE_DIR_TOKEN "token"
#define STATE_DIR_ADDRESS "address" /* value of TRIB_CONTROLLER for this machine */

/* Its path: `given`, TRIB_STATE, systemd's STATE_DIRECTORY, or the default. */
trib_status state_dir_find(const char *given, char out[STATE_DIR_PATH_MAX]);
/* As state_dir_find; also makes it, accessible to the owner only. */
trib_status state_dir_make(const char *given, char out[STATE_DIR_PATH_MAX]);

/* Reads a file, at most size - 1 bytes. TRIB_ERR_CONFIG: no such file. */
trib_status state_dir_read(const char *state_dir, const char *name, char *out, size_t size);
/* Writes a file atomically: a reader sees the old text or the new one. */
trib_status state_dir_write(const char *state_dir, const char *name, const char *text, mode_t mode);

#endif
