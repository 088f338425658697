/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse audit: was each gradient applied exactly once? */
#include "cli/sparse/sparse_command.h"
#include "options/json_writer.h"
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

/* A line. */
static void result_json(const char *folder, const struct sparse_audit *audit)
{
	struct json_writer writer = { .out = stdout, .is_compact = true };

	json_open_object(&writer, NULL);
	json_put_text(&writer, "folder", folder);
	json_put_count(&writer, "entries", audit->entries);
	json_put_count(&writer, "pushes", audit->pushes);
	json_put_count(&writer, "flushes", audit->flushes);
	json_put_count(&writer, "packets", audit->packets);
	json_put_count(&writer, "repeats", audit->repeats);
	json_put_count(&writer, "rows", audit->rows);
	json_put_count(&writer, "faults", audit->faults);
	json_close(&writer);
}

static void result_print(const char *folder, const struct sparse_audit *audit)
{
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
		(json ? result_json : result_print)(folders[i], &audit);
		code |= audit.faults > 0;
	}
	return code;
}
