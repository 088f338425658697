/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse: its commands. */
#include "cli/sparse/sparse_command.h"

#include "cli/cmd/cmd.h"
#include "options/command_table.h"

static const struct command commands[] = {
	{ "hot", sparse_hot_command, "say which rows of a data set are hot, and what that saves" },
	{ "serve", sparse_serve_command, "keep rows for workers: a parameter server" },
	{ "status", sparse_status_command, "ask parameter servers how they are" },
	{ "log", sparse_log_command, "print the log of a shard" },
	{ "audit", sparse_audit_command, "check that each gradient was applied exactly once" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib sparse",
	.about = "Sparse training: many workers train a table of rows by key. An aggregator\n"
		 "sums the gradients of the hottest rows on their way to the servers.",
	.example = "trib sparse hot train.txt.xz --workers 8\n"
		   "  trib sparse serve --dir /tmp/servers --shards 2",
	.commands = commands,
};

int cli_sparse(int argc, char **argv)
{
	return command_table_run(&table, argc, argv);
}
