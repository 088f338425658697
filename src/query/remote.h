/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a controller, and reads fields of its JSON. */
#ifndef TRIB_QUERY_REMOTE_H
#define TRIB_QUERY_REMOTE_H

#include "control/transport/client.h"

#define REMOTE_ROW(target)                                                                 \
	{                                                                                  \
		"controller", 'c', OPTION_TEXT, target, "CONTROLLER",                      \
			"the controller to ask (default: TRIB_CONTROLLER, or one on this " \
			"machine)",                                                        \
			"10.0.0.1:7600#sha256//..."                                        \
	}

trib_status remote_get(struct client *client, const char *path, json_t **answer);
/* "COMMAND: the last error"; returns EXIT_FAILURE. */
int remote_fail(const char *command);
void remote_dump(const json_t *json);

/* These return an empty text, or 0, if a field is missing. */
const char *remote_text(const json_t *json, const char *name);
double remote_number(const json_t *json, const char *name);
/* The text, with a dot for every character that could upset a terminal. */
void remote_plain(const json_t *json, const char *name, char *out, size_t size);
/* "2.5 Gb/s" */
void remote_rate(double bits, char *out, size_t size);
/* "0-2,5" */
void remote_ranks(const json_t *list, char *out, size_t size);

#endif
