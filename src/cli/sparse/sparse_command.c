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

bool sparse_options_parse(const struct options *options, int argc, char **argv,
                          const char **operands, unsigned room, unsigned *n, const char *missing,
                          int *code)
{
	*n = 0;
	/* The parser stops at an operand; options may stand behind it. */
	for (int at = 0; at < argc;) {
		int first = options_parse(options, argc - at, argv + at, code);

		if (first < 0)
			return false;
		at += first;
		if (at >= argc)
			break;
		if (*n == room) {
			*code = options_fail(options, "%s: unexpected argument", argv[at]);
			return false;
		}
		operands[(*n)++] = argv[at];
	}
	if (!*n)
		*code = options_fail(options, "%s", missing);
	return *n > 0;
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
