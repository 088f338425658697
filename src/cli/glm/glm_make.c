/* SPDX-License-Identifier: Apache-2.0 */
/* trib glm make: a file of random data. */
#include "cli/glm/glm_command.h"
#include "glm/data/synthetic.h"

#include <string.h>

static struct {
	uint64_t rows, columns, classes, seed, skew;
	double density, noise;
	bool regression;
} given = { .rows = 10000, .columns = 1000, .classes = 2, .seed = 1, .density = 1, .noise = 0.05 };

static struct option_hook density_hook = { glm_number_take, &given.density };
static struct option_hook noise_hook = { glm_number_take, &given.noise };

static const struct option_row rows[] = {
	{ "rows", 'r', OPTION_COUNT, &given.rows, "N", "number of rows (default 10000)", "20242" },
	{ "columns", 'c', OPTION_COUNT, &given.columns, "N", "number of columns (default 1000)",
	  "47236" },
	{ "density", 'd', OPTION_HOOK, &density_hook, "X",
	  "share of values that are not 0 (default 1: dense)", "0.0016" },
	{ "skew", 0, OPTION_COUNT, &given.skew, "N",
	  "sparse: 2 to 4 make low columns likelier (default 0: all alike)", "3" },
	{ "classes", 0, OPTION_COUNT, &given.classes, "N", "kinds of labels (default 2)", "7" },
	{ "regression", 0, OPTION_FLAG, &given.regression, NULL, "labels are numbers", NULL },
	{ "noise", 0, OPTION_HOOK, &noise_hook, "X",
	  "share of random labels (default 0.05); of a regression, the deviation of the noise",
	  "0.1" },
	{ "seed", 0, OPTION_COUNT, &given.seed, "N",
	  "the same seed makes the same file (default 1)", "7" },
	{ 0 },
};

static const struct options options = {
	"trib glm make [OPTION]... FILE",
	"Makes a libsvm file of random data whose labels come from a hidden linear model. - is\n"
	"the standard output.",
	"trib glm make --rows 20242 --columns 47236 --density 0.0016 rcv1-like.svm",
	rows,
};

static trib_status file_make(const struct synthetic *synthetic, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	trib_status status;

	if (!file)
		return status_fail_errno("cannot write %s", path);
	status = synthetic_write(synthetic, file, path);
	if (file != stdout && fclose(file) && status == TRIB_OK)
		status = status_fail_errno("cannot write %s", path);
	return status;
}

int glm_make_command(int argc, char **argv)
{
	struct synthetic synthetic;
	const char *path;
	int code;

	if (!glm_options_parse(&options, argc, argv, &path, 1, &code))
		return code;
	if (given.rows > UINT32_MAX || given.columns > UINT32_MAX || given.classes > UINT32_MAX ||
	    given.skew > 4)
		return options_fail(&options, "a number is too large");
	synthetic = (struct synthetic){ .rows = (uint32_t)given.rows,
		                        .columns = (uint32_t)given.columns,
		                        .density = given.density,
		                        .skew = (uint32_t)given.skew,
		                        .classes = given.regression ? 0 : (uint32_t)given.classes,
		                        .noise = given.noise,
		                        .seed = given.seed };
	if (synthetic_check(&synthetic) == TRIB_OK && file_make(&synthetic, path) == TRIB_OK)
		return 0;
	fprintf(stderr, "trib glm make: %s\n", trib_last_error());
	return 1;
}
