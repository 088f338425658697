/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse hot: which rows of a data set are hot, and what an aggregator saves by that. */
#include "cli/sparse/sparse_command.h"

#include <stdio.h>

int sparse_hot_command(int argc, char **argv)
{
	static const struct option_row rows[] = { { 0 } };
	static const struct options options = {
		"trib sparse hot [OPTION]... FILE...",
		"Says which rows of a data set are hot, and what an aggregator saves by that.",
		"trib sparse hot train.txt.xz",
		rows,
	};
	const char *files[16];
	unsigned n;
	int code;

	if (!sparse_options_parse(&options, argc, argv, files, 16, &n, "say which file", &code))
		return code;
	fprintf(stderr, "trib sparse hot: %s: not done yet\n", files[0]);
	return 1;
}
