/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sparse/sparse_command.h"

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
