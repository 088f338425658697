/* SPDX-License-Identifier: Apache-2.0 */
#include "options/colour.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_wanted(void)
{
	const char *no_colour = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
}

const char *colour_on(enum colour colour)
{
	static const char *const codes[] = { [COLOUR_NONE] = "",
		                             [COLOUR_DIM] = "\033[2m",
		                             [COLOUR_BAD] = "\033[31m",
		                             [COLOUR_GOOD] = "\033[32m",
		                             [COLOUR_WARN] = "\033[33m" };

	return is_wanted() ? codes[colour] : "";
}

const char *colour_off(void)
{
	return is_wanted() ? "\033[0m" : "";
}
