/* SPDX-License-Identifier: Apache-2.0 */
/* trib glm: its commands. */
#include "cli/glm/glm_command.h"

#include "cli/cmd/cmd.h"
#include "options/command_table.h"

static const struct command commands[] = {
	{ "train", glm_train_command, "train a model on a file, with one worker or many" },
	{ "predict", glm_predict_command, "predict the rows of a file with a model" },
	{ "inspect", glm_inspect_command, "say what a model is: weights, sparsity, training" },
	{ "make", glm_make_command, "make a file of random data" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib glm",
	.about = "Linear models on many workers: linear and logistic regression, SVM. The model\n"
		 "has the same bits for every number of workers and threads.",
	.example = "trib glm train a9a --test a9a.t --model m.bin -n 4\n"
		   "  trib glm predict m.bin a9a.t",
	.commands = commands,
};

int cli_glm(int argc, char **argv)
{
	return command_table_run(&table, argc, argv);
}
