/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check.h"
#include "base/settings.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/options.h"

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

int cli_check(int argc, char **argv)
{
	const char *aggregator = NULL;
	struct check check = { 0 };
	const struct option_row rows[] = {
		{ "aggregator", 0, OPTION_TEXT, &aggregator, "HOST:PORT",
		  "try the way to this one too (default: TRIB_AGGREGATOR)", "10.0.0.9:7700" },
		{ "json", 0, OPTION_FLAG, &check.json, NULL, "for programs", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib check [OPTION]...",
		"Tries what Tributary needs, and says what to fix. The exit code is 1 where "
		"something\n"
		"fails; a warning only says what will be slower or left out.",
		"trib check --aggregator 10.0.0.9:7700",
		rows,
	};
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (!aggregator)
		aggregator = setting_text(SETTING_AGGREGATOR, NULL);
	if (check.json)
		printf("{\"version\":\"" TRIB_VERSION "\",\"findings\":[");
	check_machine(&check);
	check_xdp(&check);
	if (aggregator)
		check_route(&check, aggregator);
	if (check.json)
		printf("\n],\"ok\":%u,\"warn\":%u,\"fail\":%u}\n", check.counts[CHECK_OK],
		       check.counts[CHECK_WARN], check.counts[CHECK_FAIL]);
	else
		printf("%u ok, %u warnings, %u failures\n", check.counts[CHECK_OK],
		       check.counts[CHECK_WARN], check.counts[CHECK_FAIL]);
	return check.counts[CHECK_FAIL] ? 1 : 0;
}
