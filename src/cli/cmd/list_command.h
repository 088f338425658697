/* SPDX-License-Identifier: Apache-2.0 */
/* A command that asks a controller for one list, and prints it as a table or as JSON. */
#ifndef TRIB_CLI_CMD_LIST_COMMAND_H
#define TRIB_CLI_CMD_LIST_COMMAND_H

#include <jansson.h>

struct list_command {
	const char *name; /* "trib jobs" */
	const char *usage, *about, *example;
	const char *path;  /* of the controller's answer */
	const char *field; /* of the answer: the list */
	const char *none;  /* the line for an empty list */
	void (*print_head)(void);
	void (*print_row)(const json_t *row);
};

/* Reads the options, asks and prints; returns an exit code. */
int list_command_run(const struct list_command *command, int argc, char **argv);

#endif
