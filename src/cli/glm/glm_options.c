/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/glm/glm_command.h"

#include <math.h>
#include <stdlib.h>

bool glm_options_parse(const struct options *options, int argc, char **argv, const char **operands,
                       unsigned n, int *code)
{
	unsigned found = 0;

	/* The parser stops at an operand; options may stand behind it. */
	for (int at = 0; at < argc;) {
		int first = options_parse(options, argc - at, argv + at, code);

		if (first < 0)
			return false;
		at += first;
		if (at >= argc)
			break;
		if (found == n) {
			*code = options_fail(options, "%s: unexpected argument", argv[at]);
			return false;
		}
		operands[found++] = argv[at];
	}
	if (found < n)
		*code = options_fail(options,
		                     n == 1 ? "say which file" : "say which model and which file");
	return found == n;
}

trib_status glm_number_take(void *context, const char *text)
{
	double *value = context;
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < 0)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a number of 0 or above", text);
	return TRIB_OK;
}
