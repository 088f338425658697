/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse serve: a parameter server, or several on this machine. */
#include "cli/sparse/sparse_command.h"

#include "base/log.h"
#include "base/settings.h"
#include "sparse/server/sparse_server.h"
#include "sparse/wire/sparse_message.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_LEAST (64u << 10)

static struct {
	const char *listen, *dir, *shard, *sync, *aggregators, *status_file;
	uint64_t shards, snapshot, memory;
	double flush_s;
	bool keep_logs, repair;
} given = { .listen = "127.0.0.1",
	    .shard = "0/1",
	    .sync = "commit",
	    .snapshot = 256u << 20,
	    .memory = 1u << 20,
	    .flush_s = 0.02 };

static const struct option_row rows[] = {
	{ "dir", 'd', OPTION_TEXT, &given.dir, "DIR",
	  "folder of the log and the snapshots; a server that is started on it again goes on with "
	  "its rows (required)",
	  "/var/lib/tributary/shard0" },
	{ "listen", 'l', OPTION_TEXT, &given.listen, "HOST:PORT",
	  "address for workers; port 0: any (default 127.0.0.1:7800)", "10.0.0.9:7800" },
	{ "shard", 0, OPTION_TEXT, &given.shard, "I/N",
	  "this is shard I of N, counted from 0 (default 0/1)", "1/4" },
	{ "shards", 0, OPTION_COUNT, &given.shards, "N",
	  "in place of --shard: start all N shards on this machine, with folders DIR/0, DIR/1 ... "
	  "and ports one after the other",
	  "4" },
	{ "sync", 0, OPTION_TEXT, &given.sync, "WHEN",
	  "when the log is on the disk: commit (before a push is acknowledged), second (once a "
	  "second) or none (when the system likes; the death of the server alone loses nothing) "
	  "(default commit)",
	  "second" },
	{ "snapshot-every", 0, OPTION_BYTES, &given.snapshot, "SIZE",
	  "write a snapshot when the log has this size; 0: never (default 256M)", "1G" },
	{ "keep-logs", 0, OPTION_FLAG, &given.keep_logs, NULL,
	  "keep logs that a snapshot has replaced", NULL },
	{ "repair", 0, OPTION_FLAG, &given.repair, NULL,
	  "if the log is damaged, cut it there, and lose what is behind", NULL },
	{ "aggregators", 0, OPTION_TEXT, &given.aggregators, "HOST:PORT,...",
	  "aggregators that sum hot rows: the first one that works is used", "10.0.0.1:7700" },
	{ "memory", 0, OPTION_BYTES, &given.memory, "SIZE",
	  "memory for hot rows, asked for at the aggregator (default 1M)", "4M" },
	{ "flush", 0, OPTION_SECONDS, &given.flush_s, "S",
	  "seconds between two collections of hot rows (default 0.02)", "0.05" },
	{ "status-file", 0, OPTION_TEXT, &given.status_file, "FILE",
	  "write the status as JSON to this file, once a second", "/run/shard0.json" },
	{ 0 },
};

static const struct options options = {
	"trib sparse serve [OPTION]...",
	"Keeps rows of tables for workers that train them (a parameter server). Each pushed\n"
	"gradient is written to a log before it is acknowledged, and is applied exactly once.",
	"trib sparse serve --dir /var/lib/tributary/shard0 --listen :7800\n"
	"  trib sparse serve --dir /tmp/servers --shards 2",
	rows,
};

/* ---- one shard ---- */

static struct sparse_server *running;

static void on_signal(int number)
{
	(void)number;
	if (running)
		sparse_server_stop(running);
}

static void signals_take(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static void ready_print(const struct sparse_server_options *o)
{
	struct sparse_log_stats stats;
	struct udp_address address = o->listen;
	char text[64];

	udp_set_port(&address, sparse_server_port(running));
	sparse_log_get_stats(sparse_server_log(running), &stats);
	printf("trib sparse serve: shard %u of %u ready on %s", o->shard, o->shards,
	       udp_text(&address, text, sizeof(text)));
	if (stats.restored_rows || stats.replayed)
		printf(", restored %" PRIu64 " rows and %" PRIu64 " entries of the log",
		       stats.restored_rows, stats.replayed);
	printf("\n");
	fflush(stdout);
}

static int shard_run(const struct sparse_server_options *o)
{
	trib_status status = sparse_server_open(o, &running);
	char name[32];

	snprintf(name, sizeof(name), "shard %u", o->shard);
	log_set_prefix(name);
	if (status == TRIB_OK) {
		signals_take();
		ready_print(o);
		status = sparse_server_run(running);
	}
	if (status != TRIB_OK)
		fprintf(stderr, "trib sparse serve: shard %u: %s\n", o->shard, trib_last_error());
	if (running)
		sparse_server_close(running);
	return status == TRIB_OK ? 0 : 1;
}

/* ---- several shards ---- */

static pid_t children[MESSAGE_SHARDS_MAX];
static uint32_t n_children;

static void on_end(int number)
{
	for (uint32_t i = 0; i < n_children; i++)
		if (children[i] > 0)
			kill(children[i], number);
}

static int child_run(struct sparse_server_options o, uint32_t shard)
{
	char folder[4096], status_file[4096];
	uint16_t port = udp_port(&o.listen);

	/* A child does not outlive the command. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	o.shard = shard;
	if (port)
		udp_set_port(&o.listen, (uint16_t)(port + shard));
	snprintf(folder, sizeof(folder), "%s/%u", given.dir, shard);
	snprintf(status_file, sizeof(status_file), "%s.%u",
	         given.status_file ? given.status_file : "", shard);
	o.folder = folder;
	o.status_file = given.status_file ? status_file : NULL;
	return shard_run(&o);
}

/* If one ends, the others end too: workers need all of them. */
static int children_wait(void)
{
	int code = 0, state;
	pid_t pid;

	for (uint32_t left = n_children; left;) {
		pid = waitpid(-1, &state, 0);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		left--;
		for (uint32_t i = 0; i < n_children; i++)
			if (children[i] == pid)
				children[i] = 0;
		if (!WIFEXITED(state) || WEXITSTATUS(state))
			code = 1;
		on_end(SIGTERM);
	}
	return code;
}

static int shards_run(const struct sparse_server_options *o)
{
	struct sigaction action = { .sa_handler = on_end };

	fflush(stdout);
	for (uint32_t i = 0; i < o->shards; i++) {
		pid_t pid = fork();

		if (!pid)
			exit(child_run(*o, i));
		if (pid < 0) {
			perror("trib sparse serve: cannot start a process");
			on_end(SIGTERM);
			return 1;
		}
		children[n_children++] = pid;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	return children_wait();
}

/* ---- options ---- */

static const char *numbers_wrong(struct sparse_server_options *o)
{
	unsigned shard, shards;
	char rest;

	if (sscanf(given.shard, "%u/%u%c", &shard, &shards, &rest) != 2 || !shards ||
	    shards > MESSAGE_SHARDS_MAX || shard >= shards)
		return "--shard is I/N, with I from 0 to N - 1";
	if (given.shards > MESSAGE_SHARDS_MAX)
		return "--shards is at most 1024";
	if (!sparse_sync_find(given.sync, &o->sync))
		return "--sync is commit, second or none";
	if (given.memory < MEMORY_LEAST)
		return "--memory is at least 64K";
	o->shard = shard;
	o->shards = given.shards ? (uint32_t)given.shards : shards;
	return NULL;
}

int sparse_serve_command(int argc, char **argv)
{
	struct sparse_server_options o = { 0 };
	const char *wrong;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (!given.dir)
		return options_fail(&options, "say in which folder the rows are kept: --dir");
	wrong = numbers_wrong(&o);
	if (wrong)
		return options_fail(&options, "%s", wrong);
	if (udp_resolve(given.listen, SPARSE_SERVER_PORT, &o.listen) != TRIB_OK ||
	    setting_count(SETTING_COOKIE, &o.cookie) != TRIB_OK) {
		fprintf(stderr, "trib sparse serve: %s\n", trib_last_error());
		return 1;
	}
	o.folder = given.dir;
	o.keep_logs = given.keep_logs;
	o.repair = given.repair;
	o.snapshot_bytes = given.snapshot;
	o.aggregators = given.aggregators;
	o.memory = given.memory;
	o.flush_ns = (uint64_t)(given.flush_s * 1e9);
	o.status_file = given.status_file;
	return given.shards ? shards_run(&o) : shard_run(&o);
}
