/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse audit: was each gradient applied exactly once? */
#include "cli/sparse/sparse_command.h"
#include "options/json.h"
#include "sparse/audit/sparse_audit.h"

#include <inttypes.h>

#define FOLDERS_MAX 256u

static bool json;

static const struct option_row rows[] = {
	{ "json", 0, OPTION_JSON, &json, "FILE", "print a JSON object for each folder", NULL },
	{ 0 },
};

static const struct options options = {
	"trib sparse audit [OPTION]... DIR...",
	"Checks the folders of shards whose servers have ended: applies all entries of the logs\n"
	"again with a simple program, and compares the rows bit for bit. It also checks that no\n"
	"push and no packet was applied twice. The servers need `--keep-logs`. The exit code is 1\n"
	"if there is a fault.",
	"trib sparse audit /var/lib/shard-0 /var/lib/shard-1",
	rows,
};

static void result_print(const char *folder, const struct sparse_audit *audit)
{
	if (json) {
		printf("{\"folder\":");
		json_print_text(stdout, folder);
		printf(",\"entries\":%" PRIu64 ",\"pushes\":%" PRIu64 ",\"flushes\":%" PRIu64
		       ",\"packets\":%" PRIu64 ",\"repeats\":%" PRIu64 ",\"rows\":%" PRIu64
		       ",\"faults\":%" PRIu64 "}\n",
		       audit->entries, audit->pushes, audit->flushes, audit->packets,
		       audit->repeats, audit->rows, audit->faults);
		return;
	}
	printf("%s: %" PRIu64 " entries, %" PRIu64 " pushes, %" PRIu64 " flushes with %" PRIu64
	       " packets, %" PRIu64 " repeats that were not applied; %" PRIu64 " rows, %" PRIu64
	       " faults\n",
	       folder, audit->entries, audit->pushes, audit->flushes, audit->packets,
	       audit->repeats, audit->rows, audit->faults);
}

int sparse_audit_command(int argc, char **argv)
{
	const char *folders[FOLDERS_MAX];
	int code, n = options_parse_mixed(&options, argc, argv, folders, FOLDERS_MAX, &code);

	if (n < 0)
		return code;
	if (n == 0)
		return options_fail(&options, "say which folders, e.g. /var/lib/shard-0");
	code = 0;
	for (int i = 0; i < n; i++) {
		struct sparse_audit audit;

		if (sparse_audit(folders[i], json ? stderr : stdout, &audit) != TRIB_OK) {
			fprintf(stderr, "trib sparse audit: %s: %s\n", folders[i],
			        trib_last_error());
			code = 1;
			continue;
		}
		result_print(folders[i], &audit);
		code |= audit.faults > 0;
	}
	return code;
}
