/* SPDX-License-Identifier: Apache-2.0 */
/* trib cookie: draws the secret that workers and aggregators share. */
#include "base/settings.h"
#include "cli/cmd/cmd.h"
#include "options/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

int cli_cookie(int argc, char **argv)
{
	const struct option_row rows[] = { { 0 } };
	const struct options options = {
		"trib cookie",
		"Draws a cookie and prints it. Workers and their aggregator share it as "
		"TRIB_COOKIE;\n"
		"processes that do not have it cannot join. Jobs of a controller have one already.",
		"export TRIB_COOKIE=$(trib cookie)",
		rows,
	};
	uint64_t cookie = 0;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	while (!cookie) { /* 0 means: none */
		if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie)) {
			perror("trib cookie: cannot draw a random number");
			return EXIT_FAILURE;
		}
	}
	printf("%0*" PRIx64 "\n", COOKIE_DIGITS, cookie);
	return 0;
}
