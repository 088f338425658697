/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse serve: a parameter server, or several on this machine. */
#include "cli/sparse/sparse_command.h"
#include "options/access.h"
#include "sparse/service/shard_service.h"

static struct service_options given = { SERVICE_DEFAULTS("trib sparse serve", "127.0.0.1") };

static const struct option_row rows[] = {
	{ "dir", 'd', OPTION_TEXT, &given.folder, "DIR",
	  "folder of the log and the snapshots; a server that is started on it again goes on with "
	  "its rows (required)",
	  "/var/lib/tributary/shard0" },
	{ "listen", 'l', OPTION_TEXT, &given.listen, "HOST:PORT",
	  "address for workers; port 0: any (default 127.0.0.1:7800)", "10.0.0.9:7800" },
	{ "memory", 0, OPTION_BYTES, &given.memory, "SIZE",
	  "memory for hot rows, asked for at the aggregator (default 1M)", "4M" },
	{ "open", 0, OPTION_FLAG, &given.open, NULL, ACCESS_HELP, NULL },
	SERVICE_ROWS(given),
	{ 0 },
};

static const struct options options = {
	"trib sparse serve [OPTION]...",
	"Keeps rows of tables for workers that train them (a parameter server). Each pushed\n"
	"gradient is written to a log before it is acknowledged, and is applied exactly once.",
	"TRIB_COOKIE=$(cat cookie) trib sparse serve --dir /var/lib/tributary/shard0 --listen "
	":7800\n"
	"  trib sparse serve --dir /tmp/servers --shards 2",
	rows,
};

int sparse_serve_command(int argc, char **argv)
{
	const char *fault;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (!given.folder)
		return options_fail(&options, "say in which folder the rows are kept: --dir");
	fault = service_fault(&given);
	return fault ? options_fail(&options, "%s", fault) : service_run(&given);
}
