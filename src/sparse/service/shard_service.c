/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/service/shard_service.h"

#include "base/log.h"
#include "base/settings.h"
#include "options/access.h"
#include "sparse/server/sparse_server.h"
#include "sparse/wire/sparse_message.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_LEAST (64u << 10)

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

static void ready_print(const char *program, const struct sparse_server_options *o)
{
	struct sparse_log_stats stats;
	struct udp_address address = o->listen;
	char text[64];

	udp_set_port(&address, sparse_server_port(running));
	sparse_log_get_stats(sparse_server_log(running), &stats);
	printf("%s: shard %u of %u ready on %s", program, o->shard, o->shards,
	       udp_text(&address, text, sizeof(text)));
	if (stats.restored_rows || stats.replayed)
		printf(", restored %" PRIu64 " rows and %" PRIu64 " entries of the log",
		       stats.restored_rows, stats.replayed);
	printf("\n");
	fflush(stdout);
}

static int shard_run(const char *program, const struct sparse_server_options *o)
{
	trib_status status = sparse_server_open(o, &running);
	char name[32];

	snprintf(name, sizeof(name), "shard %u", o->shard);
	log_set_prefix(name);
	if (status == TRIB_OK) {
		signals_take();
		ready_print(program, o);
		status = sparse_server_run(running);
	}
	if (status != TRIB_OK)
		fprintf(stderr, "%s: shard %u: %s\n", program, o->shard, trib_last_error());
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

static int child_run(const char *program, struct sparse_server_options o, uint32_t shard)
{
	char folder[4096], status_file[4096];
	uint16_t port = udp_port(&o.listen);

	/* A child does not outlive the command. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	o.shard = shard;
	if (port)
		udp_set_port(&o.listen, (uint16_t)(port + shard));
	snprintf(folder, sizeof(folder), "%s/%u", o.folder, shard);
	snprintf(status_file, sizeof(status_file), "%s.%u", o.status_file ? o.status_file : "",
	         shard);
	o.folder = folder;
	o.status_file = o.status_file ? status_file : NULL;
	return shard_run(program, &o);
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

static int shards_run(const char *program, const struct sparse_server_options *o)
{
	struct sigaction action = { .sa_handler = on_end };

	(void)mkdir(o->folder, 0777); /* if that fails, a shard says so */
	fflush(stdout);
	for (uint32_t i = 0; i < o->shards; i++) {
		pid_t pid = fork();

		if (!pid)
			exit(child_run(program, *o, i));
		if (pid < 0) {
			fprintf(stderr, "%s: cannot start a process: %s\n", program,
			        strerror(errno));
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

static bool shard_parse(const char *text, uint32_t *shard, uint32_t *shards)
{
	char rest;

	return sscanf(text, "%u/%u%c", shard, shards, &rest) == 2 && *shards &&
	       *shards <= MESSAGE_SHARDS_MAX && *shard < *shards;
}

const char *service_fault(const struct service_options *options)
{
	uint32_t shard, shards;
	enum sparse_sync sync;

	if (!shard_parse(options->shard, &shard, &shards))
		return "--shard is I/N, with I from 0 to N - 1";
	if (options->shards != SERVICE_ONE &&
	    (!options->shards || options->shards > MESSAGE_SHARDS_MAX))
		return "--shards is from 1 to 1024";
	if (!sparse_sync_find(options->sync, &sync))
		return "--sync is commit, second or none";
	if (options->memory < MEMORY_LEAST)
		return "--memory is at least 64K";
	return NULL;
}

static const char *address_of(const struct service_options *options, uint64_t cookie)
{
	if (options->listen)
		return options->listen;
	return cookie || options->open ? ":7800" : "127.0.0.1:7800";
}

int service_run(const struct service_options *options)
{
	struct sparse_server_options o = {
		.folder = options->folder,
		.keep_logs = options->keep_logs,
		.repair = options->repair,
		.snapshot_bytes = options->snapshot,
		.aggregators = options->aggregators,
		.memory = options->memory,
		.flush_ns = (uint64_t)(options->flush_s * 1e9),
		.status_file = options->status_file,
	};

	shard_parse(options->shard, &o.shard, &o.shards);
	sparse_sync_find(options->sync, &o.sync);
	if (setting_count(SETTING_COOKIE, &o.cookie) != TRIB_OK ||
	    udp_resolve(address_of(options, o.cookie), SPARSE_SERVER_PORT, &o.listen) != TRIB_OK ||
	    access_check(&o.listen, o.cookie, options->open) != TRIB_OK) {
		fprintf(stderr, "%s: %s\n", options->program, trib_last_error());
		return 1;
	}
	if (!o.cookie)
		log_warn("TRIB_COOKIE is not set: anyone who reaches this port may read and change "
		         "rows");
	if (options->shards == SERVICE_ONE)
		return shard_run(options->program, &o);
	o.shards = (uint32_t)options->shards;
	return shards_run(options->program, &o);
}
