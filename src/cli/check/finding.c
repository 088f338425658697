/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/finding.h"

#include "options/colour.h"
#include "options/json.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const level_names[] = { "ok", "warn", "fail" };

void check_tell(struct check *check, enum check_level level, const char *name, const char *fix,
                const char *format, ...)
{
	static const enum colour colours[] = { COLOUR_GOOD, COLOUR_WARN, COLOUR_BAD };
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
	} else {
		printf("%s%-4s%s  %s: %s\n", colour_on(colours[level]), level_names[level],
		       colour_off(), name, sentence);
	}
	if (fix && !check->json)
		printf("      -> %s\n", fix);
	check->counts[level]++;
	fflush(stdout);
}
