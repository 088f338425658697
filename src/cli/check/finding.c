/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/finding.h"

#include "options/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const level_names[] = { "ok", "warn", "fail" };

void check_tell(struct check *check, enum check_level level, const char *name, const char *fix,
                const char *format, ...)
{
	static const int colours[] = { 32, 33, 31 };
	const char *no_colour = getenv("NO_COLOR");
	char sentence[512];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (check->json) {
		printf("%s\n{\"level\":\"%s\",\"name\":\"%s\",\"sentence\":",
		       check->counts[0] + check->counts[1] + check->counts[2] ? "," : "",
		       level_names[level], name);
		json_print_text(stdout, sentence);
		printf(",\"fix\":");
		json_print_text(stdout, fix);
		printf("}");
	} else if (isatty(STDOUT_FILENO) && !(no_colour && *no_colour)) {
		printf("\033[%dm%-4s\033[0m  %s: %s\n", colours[level], level_names[level], name,
		       sentence);
	} else {
		printf("%-4s  %s: %s\n", level_names[level], name, sentence);
	}
	if (fix && !check->json)
		printf("      -> %s\n", fix);
	check->counts[level]++;
	fflush(stdout);
}
