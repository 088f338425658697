/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse: finds the command. */
#include "cli/sparse/sparse_command.h"

#include "cli/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*function)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "hot", sparse_hot_command, "say which rows of a data set are hot, and what that saves" },
	{ "serve", sparse_serve_command, "keep rows for workers: a parameter server" },
	{ "status", sparse_status_command, "ask parameter servers how they are" },
	{ "log", sparse_log_command, "print the log of a shard" },
	{ "audit", sparse_audit_command, "check that each gradient was applied exactly once" },
};

#define COMMANDS_N (sizeof(commands) / sizeof(*commands))

static void help_print(FILE *out)
{
	fprintf(out, "Usage: trib sparse COMMAND [ARGUMENT]...\n\n"
	             "Sparse training: many workers train a table of rows by key. An aggregator\n"
	             "sums the gradients of the hottest rows on their way to the servers.\n\n"
	             "Commands:\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n`trib sparse COMMAND --help` says more.\n\nExample:\n"
	             "  trib sparse hot train.txt.xz --workers 8\n"
	             "  trib sparse serve --dir /tmp/servers --shards 2\n");
}

int cli_sparse(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";

	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help_print(stdout);
		return argc > 1 ? 0 : EXIT_USAGE;
	}
	for (size_t i = 0; i < COMMANDS_N; i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].function(argc - 1, argv + 1);
	fprintf(stderr, "trib sparse: there is no command \"%s\"\nTry: trib sparse --help\n", name);
	return EXIT_USAGE;
}
