/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/service owns a parameter server as a program: its options, its signals, the line that says
 * it is ready, and several shards on one machine. `trib sparse serve` and `tribd --serve-rows` are
 * both this.
 *
 * What a server does belongs to sparse/server. The commands have the help and the names of options.
 */
#ifndef TRIB_SPARSE_SERVICE_SHARD_SERVICE_H
#define TRIB_SPARSE_SERVICE_SHARD_SERVICE_H

#include "options/options.h"

#define SERVICE_ONE UINT64_MAX /* of `shards`: only the shard that --shard names */

struct service_options {
	const char *program; /* in messages */
	const char *listen;  /* NULL: port 7800, without a cookie on loopback alone */
	const char *folder, *shard, *sync, *aggregators, *status_file;
	uint64_t shards, snapshot, memory;
	double flush_s;
	bool keep_logs, repair;
	bool open; /* without a cookie, serve other machines too */
};

/* clang-format off */
#define SERVICE_DEFAULTS(name, address) \
	.program = (name), .listen = (address), .shard = "0/1", .sync = "commit", \
	.shards = SERVICE_ONE, .snapshot = 256u << 20, .memory = 1u << 20, .flush_s = 0.02

/* The rows of options that both commands have, for a struct service_options. */
#define SERVICE_ROWS(o) \
	{ "shard", 0, OPTION_TEXT, &(o).shard, "I/N", \
	  "this is shard I of N, counted from 0 (default 0/1)", "1/4" }, \
	{ "shards", 0, OPTION_COUNT, &(o).shards, "N", \
	  "in place of --shard: start all N shards on this machine, with folders DIR/0, DIR/1 ... " \
	  "and ports one after the other", "4" }, \
	{ "sync", 0, OPTION_TEXT, &(o).sync, "WHEN", \
	  "when the log is on the disk: commit (before a push is acknowledged), second (once a " \
	  "second) or none (when the system likes; the death of the server alone loses nothing) " \
	  "(default commit)", "second" }, \
	{ "snapshot-every", 0, OPTION_BYTES, &(o).snapshot, "SIZE", \
	  "write a snapshot when the log has this size; 0: never (default 256M)", "1G" }, \
	{ "keep-logs", 0, OPTION_FLAG, &(o).keep_logs, NULL, \
	  "keep logs that a snapshot has replaced", NULL }, \
	{ "repair", 0, OPTION_FLAG, &(o).repair, NULL, \
	  "if the log is damaged, cut it at the damage, and lose what follows", NULL }, \
	{ "aggregators", 0, OPTION_TEXT, &(o).aggregators, "HOST:PORT,...", \
	  "aggregators that sum hot rows: the first one that works is used", "10.0.0.1:7700" }, \
	{ "flush", 0, OPTION_SECONDS, &(o).flush_s, "S", \
	  "seconds between two collections of hot rows (default 0.02)", "0.05" }, \
	{ "status-file", 0, OPTION_TEXT, &(o).status_file, "FILE", \
	  "write the status as JSON to this file, once a second", "/run/shard0.json" }
/* clang-format on */

/* What is wrong with the options; NULL: nothing. */
const char *service_fault(const struct service_options *options);
/* Serves until SIGTERM or SIGINT. Returns the exit code; an error is on stderr. */
int service_run(const struct service_options *options);

#endif
