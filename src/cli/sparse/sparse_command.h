/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse: the command trib sparse. It reads options and prints; src/sparse does the work. A command
 * of its own has a file here, and a line in the table of sparse_command.c. It must not touch rows,
 * logs or sockets itself.
 */
#ifndef TRIB_CLI_SPARSE_COMMAND_H
#define TRIB_CLI_SPARSE_COMMAND_H

#include "options/options.h"

int sparse_hot_command(int argc, char **argv);
int sparse_serve_command(int argc, char **argv);
int sparse_status_command(int argc, char **argv);
int sparse_log_command(int argc, char **argv);
int sparse_audit_command(int argc, char **argv);

#endif
