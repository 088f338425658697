/* SPDX-License-Identifier: Apache-2.0 */
/* trib glm: finds the command. */
#include "cli/glm/glm_command.h"

#include "cli/cmd/cmd.h"

#include <string.h>

static const struct {
	const char *name;
	int (*function)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "train", glm_train_command, "train a model on a file, with one worker or many" },
	{ "predict", glm_predict_command, "predict the rows of a file with a model" },
	{ "inspect", glm_inspect_command, "say what a model is: weights, sparsity, training" },
	{ "make", glm_make_command, "make a file of random data" },
};

#define COMMANDS_N (sizeof(commands) / sizeof(*commands))

static void help_print(FILE *out)
{
	fprintf(out,
	        "Usage: trib glm COMMAND [ARGUMENT]...\n\n"
	        "Linear models on many workers: linear and logistic regression, SVM. The model\n"
	        "has the same bits for every number of workers and threads.\n\nCommands:\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n`trib glm COMMAND --help` says more.\n\nExample:\n"
	             "  trib glm train a9a --test a9a.t --model m.bin -n 4\n"
	             "  trib glm predict m.bin a9a.t\n");
}

int cli_glm(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";

	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help_print(stdout);
		return argc > 1 ? 0 : EXIT_USAGE;
	}
	for (size_t i = 0; i < COMMANDS_N; i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].function(argc - 1, argv + 1);
	fprintf(stderr, "trib glm: there is no command \"%s\"\nTry: trib glm --help\n", name);
	return EXIT_USAGE;
}
