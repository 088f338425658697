/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse log: the entries of a shard's log. */
#include "cli/sparse/sparse_command.h"
#include "sparse/log/sparse_log.h"

#include <inttypes.h>

static bool json;

static const struct option_row rows[] = {
	{ "json", 0, OPTION_JSON, &json, "FILE", "print a JSON object a line", NULL },
	{ 0 },
};

static const struct options options = {
	"trib sparse log [OPTION]... DIR",
	"Prints the entries of the log of a shard, whose folder is DIR, in their order. It "
	"changes\n"
	"nothing.",
	"trib sparse log /var/lib/shard-0\n"
	"  trib sparse log /var/lib/shard-0 --json | grep '\"kind\":\"flush\"'",
	rows,
};

static trib_status entry_show(void *context, const struct sparse_log_visit *visit)
{
	(void)context;
	sparse_log_print(stdout, visit, json);
	return ferror(stdout) ? status_fail_errno("cannot write") : TRIB_OK;
}

int sparse_log_command(int argc, char **argv)
{
	const char *folder;
	uint64_t torn;
	int code, n = options_parse_mixed(&options, argc, argv, &folder, 1, &code);

	if (n < 0)
		return code;
	if (n == 0)
		return options_fail(&options, "say which folder, e.g. /var/lib/shard-0");
	if (sparse_log_visit(folder, entry_show, NULL, &torn) != TRIB_OK) {
		fprintf(stderr, "trib sparse log: %s\n", trib_last_error());
		return 1;
	}
	if (torn != UINT64_MAX)
		fprintf(stderr,
		        "trib sparse log: the last write of the last file was not completed; it "
		        "ends at %" PRIu64 "\n",
		        torn);
	return 0;
}
