/* SPDX-License-Identifier: Apache-2.0 */
#include "options/command_table.h"

#include "options/options.h"

#include <string.h>

const struct command *command_find(const struct command *commands, const char *name)
{
	for (; commands->name; commands++)
		if (strcmp(commands->name, name) == 0)
			return commands;
	return NULL;
}

void commands_print(const struct command *commands, FILE *out)
{
	int width = 0;

	for (const struct command *command = commands; command->name; command++)
		if ((int)strlen(command->name) > width)
			width = (int)strlen(command->name);
	for (; commands->name; commands++)
		fprintf(out, "  %-*s  %s\n", width, commands->name, commands->help);
}

static void help_print(const struct command_table *table, FILE *out)
{
	fprintf(out, "Usage: %s COMMAND [ARGUMENT]...\n\n%s\n\nCommands:\n", table->name,
	        table->about);
	commands_print(table->commands, out);
	fprintf(out, "\n`%s COMMAND --help` says more.\n\nExample:\n  %s\n", table->name,
	        table->example);
}

int command_table_run(const struct command_table *table, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct command *command = command_find(table->commands, name);

	if (command)
		return command->run(argc - 1, argv + 1);
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help_print(table, argc > 1 ? stdout : stderr);
		return argc > 1 ? 0 : EXIT_USAGE;
	}
	fprintf(stderr, "%s: there is no command \"%s\"\nTry: %s --help\n", table->name, name,
	        table->name);
	return EXIT_USAGE;
}
