/* SPDX-License-Identifier: Apache-2.0 */
/* A command that is a table of commands, as `trib glm` and `trib net` are. */
#ifndef TRIB_OPTIONS_COMMAND_TABLE_H
#define TRIB_OPTIONS_COMMAND_TABLE_H

#include <stdio.h>

struct command {
	const char *name; /* NULL ends the table */
	/* argv[0] is the command's own name. Returns an exit code. */
	int (*run)(int argc, char **argv);
	const char *help;
};

/* NULL: there is none of that name. */
const struct command *command_find(const struct command *commands, const char *name);
/* A line for each command: its name, and its help. */
void commands_print(const struct command *commands, FILE *out);

struct command_table {
	const char *name;  /* "trib glm" */
	const char *about; /* a sentence or two */
	const char *example;
	const struct command *commands;
};

/* Runs the command that argv[1] names, or prints the help; returns an exit code. */
int command_table_run(const struct command_table *table, int argc, char **argv);

#endif
