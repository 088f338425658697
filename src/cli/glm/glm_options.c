/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/glm/glm_command.h"

#include <math.h>
#include <stdlib.h>

bool glm_options_parse(const struct options *options, int argc, char **argv, const char **operands,
                       int n, int *code)
{
	int found = options_parse_mixed(options, argc, argv, operands, n, code);

	if (found >= 0 && found < n)
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
