/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse: the command trib sparse. It reads options and prints; src/sparse does the work. A command
 * of its own has a file here, and a line in the table of sparse_command.c.
 */
#ifndef TRIB_CLI_SPARSE_COMMAND_H
#define TRIB_CLI_SPARSE_COMMAND_H

#include "base/status.h"
#include "options/options.h"

#include <stdbool.h>

int sparse_hot_command(int argc, char **argv);
int sparse_serve_command(int argc, char **argv);
int sparse_status_command(int argc, char **argv);

/*
 * Parses options before and behind the operands. There have to be at least 1 and at most `room`
 * operands; *n says how many. `missing` is the sentence if there is none. False: the command has to
 * end and return *code.
 */
bool sparse_options_parse(const struct options *options, int argc, char **argv,
                          const char **operands, unsigned room, unsigned *n, const char *missing,
                          int *code);

#endif
