/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"
#include "cli/check/finding.h"
#include "cli/cmd/cmd.h"
#include "options/options.h"

#include <stdio.h>

int cli_check(int argc, char **argv)
{
	const char *aggregator = NULL;
	struct check check = { 0 };
	bool nccl = false;
	const struct option_row rows[] = {
		{ "aggregator", 0, OPTION_TEXT, &aggregator, "HOST:PORT",
		  "also check the path to this aggregator (default: TRIB_AGGREGATOR)",
		  "10.0.0.9:7700" },
		{ "nccl", 0, OPTION_FLAG, &nccl, NULL,
		  "also check the plugin for NCCL: does it load, and where would NCCL sum?", NULL },
		{ "json", 0, OPTION_JSON, &check.json, "FILE", "print JSON, or write it to FILE",
		  NULL },
		{ 0 },
	};
	const struct options options = {
		"trib check [OPTION]...",
		"Checks what Tributary needs on this machine, and says what to fix. The exit code "
		"is 1\n"
		"if a check fails. A warning says what will be slower or left out.",
		"trib check --aggregator 10.0.0.9:7700",
		rows,
	};
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (nccl && !check_nccl)
		return options_fail(&options, "--nccl: this is a static program, which cannot "
		                              "load the plugin");
	if (!aggregator)
		aggregator = setting_text(SETTING_AGGREGATOR, NULL);
	if (check.json)
		printf("{\"version\":\"" TRIB_VERSION "\",\"findings\":[");
	check_machine(&check);
	check_xdp(&check);
	check_launcher(&check);
	if (aggregator)
		check_route(&check, aggregator);
	if (nccl)
		check_nccl(&check);
	if (check.json)
		printf("\n],\"ok\":%u,\"warn\":%u,\"fail\":%u}\n", check.counts[CHECK_OK],
		       check.counts[CHECK_WARN], check.counts[CHECK_FAIL]);
	else
		printf("checks: %u ok, %u with a warning, %u failed\n", check.counts[CHECK_OK],
		       check.counts[CHECK_WARN], check.counts[CHECK_FAIL]);
	return check.counts[CHECK_FAIL] ? 1 : 0;
}
