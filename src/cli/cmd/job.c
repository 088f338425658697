/* SPDX-License-Identifier: Apache-2.0 */
/* trib job: makes and ends the jobs of a controller. */
#include "cli/cmd/cmd.h"
#include "launch/host_lease_client.h"
#include "options/command_table.h"
#include "options/options.h"
#include "query/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_S 10.0

/* Prints what the workers of a job need, as shell commands. */
static void print_settings(const struct client *client, const json_t *job)
{
	const struct endpoint *endpoint = client_endpoint(client);
	bool six = strchr(endpoint->host, ':') != NULL;

	printf("export TRIB_AGGREGATOR=%s%s%s:%u TRIB_JOB=%.0f TRIB_COOKIE=%s\n", six ? "[" : "",
	       endpoint->host, six ? "]" : "", endpoint->port, remote_number(job, "id"),
	       remote_text(job, "cookie"));
}

/* What trib job new is asked for. */
static struct {
	const char *controller, *name, *policy, *hostfile;
	uint64_t size, min, hosts, per_host;
	bool waits, json;
} asked = { .name = "job", .policy = "fail", .min = 1, .per_host = 1 };

static const struct option_row new_rows[] = {
	{ "size", 'n', OPTION_COUNT, &asked.size, "N",
	  "number of ranks (default: what the ranks say when they join)", "4" },
	{ "name", 0, OPTION_TEXT, &asked.name, "NAME", "name of the job in lists (default: job)",
	  "resnet" },
	{ "policy", 'p', OPTION_TEXT, &asked.policy, "WHAT",
	  "what happens when a rank is lost: fail (all ranks stop), shrink (the others go on), or "
	  "wait (for another rank in its place) (default: fail)",
	  "shrink" },
	{ "min", 0, OPTION_COUNT, &asked.min, "N",
	  "with shrink: fail below this number of ranks (default 1)", "2" },
	{ "hosts", 0, OPTION_COUNT, &asked.hosts, "N",
	  "lease N hosts that take jobs (tribd --rack); they are the job's until trib job end, or "
	  "until all its ranks have joined and left",
	  "4" },
	{ "per-host", 0, OPTION_COUNT, &asked.per_host, "N",
	  "with --hosts: ranks on each host (default 1); sets the size", "2" },
	{ "wait", 0, OPTION_FLAG, &asked.waits, NULL,
	  "with --hosts: wait until there are enough hosts, first come, first served (default: "
	  "fail, and say how many are free)",
	  NULL },
	{ "hostfile", 0, OPTION_TEXT, &asked.hostfile, "FILE",
	  "with --hosts: write the hosts' addresses there, a line for each rank, for mpirun",
	  "hosts" },
	REMOTE_ROW(&asked.controller),
	{ "json", 'j', OPTION_JSON, &asked.json, "FILE", "print JSON, or write it to FILE", NULL },
	{ 0 },
};

static const struct options new_options = {
	"trib job new [OPTION]...",
	"Makes a job at a controller and prints the settings of its workers as shell\n"
	"commands; with --hosts also the hosts that it got, as TRIB_HOSTS.",
	"eval \"$(trib job new --size 4)\" && mpirun -n 4 -x TRIB_AGGREGATOR -x TRIB_JOB -x "
	"TRIB_COOKIE ./train\n"
	"  eval \"$(trib job new --hosts 4 --wait --hostfile hosts)\" && mpirun --hostfile hosts "
	"-n 4 -x TRIB_AGGREGATOR -x TRIB_JOB -x TRIB_COOKIE ./train; trib job end \"$TRIB_JOB\"",
	new_rows,
};

static int job_new(void)
{
	json_t *wish, *job = NULL;
	struct client *client;
	int code = 0;

	if (client_find(asked.controller, &client) != TRIB_OK)
		return remote_fail("trib job new");
	wish = json_pack("{s:s, s:s, s:I, s:I}", "name", asked.name, "policy", asked.policy, "size",
	                 (json_int_t)asked.size, "min", (json_int_t)asked.min);
	if (client_call(client, "POST", "/v1/jobs", wish, PATIENCE_S, &job) != TRIB_OK)
		code = remote_fail("trib job new");
	else if (asked.json)
		remote_dump(job);
	else
		print_settings(client, job);
	json_decref(job);
	json_decref(wish);
	client_free(client);
	return code;
}

/* Writes a line for each rank, so that every launcher understands it. */
static int write_hostfile(const struct host_lease *lease)
{
	FILE *file = fopen(asked.hostfile, "w");
	bool good = file != NULL;

	for (unsigned i = 0; good && i < lease_count(lease); i++)
		for (uint64_t k = 0; k < asked.per_host; k++)
			good = fprintf(file, "%s\n", lease_address(lease, i)) > 0;
	if (file)
		good = !fclose(file) && good;
	if (good)
		return 0;
	fprintf(stderr, "trib job new: cannot write %s: %s\n", asked.hostfile, strerror(errno));
	return EXIT_FAILURE;
}

/*
 * When the hosts are known, the job is handed over to its ranks. Before, this process ends it
 * on failure.
 */
static int job_new_leased(void)
{
	const struct lease_request wish = { "trib job new", asked.controller, asked.name,
		                            asked.policy,   asked.hosts,      asked.per_host,
		                            asked.min,      asked.waits };
	struct host_lease *lease;

	if (lease_start(&wish, &lease) != TRIB_OK)
		return remote_fail("trib job new");
	if (asked.hostfile && write_hostfile(lease)) {
		lease_end(lease);
		return EXIT_FAILURE;
	}
	lease_hand_over(lease);
	if (asked.json) {
		lease_dump(lease);
	} else {
		printf("export TRIB_AGGREGATOR=%s TRIB_JOB=%" PRIu64 " TRIB_COOKIE=%016" PRIx64
		       " TRIB_HOSTS=",
		       lease_controller(lease), lease_job(lease), lease_cookie(lease));
		for (unsigned i = 0; i < lease_count(lease); i++)
			printf("%s%s", i ? "," : "", lease_address(lease, i));
		putchar('\n');
	}
	lease_end(lease);
	return 0;
}

static int make_job(int argc, char **argv)
{
	int code;

	if (!options_parse_all(&new_options, argc, argv, &code))
		return code;
	if (!asked.hosts && (asked.hostfile || asked.waits || asked.per_host != 1))
		return options_fail(&new_options,
		                    "--per-host, --wait and --hostfile go with --hosts");
	if (asked.hosts && asked.size && asked.size != asked.hosts * asked.per_host)
		return options_fail(&new_options,
		                    "--hosts times --per-host is the size: leave --size out");
	return asked.hosts ? job_new_leased() : job_new();
}

/* If it fails, `eval "$(trib job new)"` has to fail too: the shell runs what is printed. */
static int cli_job_new(int argc, char **argv)
{
	int code = make_job(argc, argv);

	if (code && !asked.json && !isatty(STDOUT_FILENO))
		puts("false");
	return code;
}

static int cli_job_end(int argc, char **argv)
{
	const char *controller = NULL;
	const struct option_row rows[] = {
		REMOTE_ROW(&controller),
		{ 0 },
	};
	const struct options options = {
		"trib job end [OPTION]... JOB...",
		"Ends jobs at a controller: their ranks get no more plans. Workers that run are "
		"not\n"
		"stopped.",
		"trib job end 7",
		rows,
	};
	struct client *client;
	int code, first = options_parse(&options, argc, argv, &code);

	if (first < 0)
		return code;
	if (first == argc)
		return options_fail(&options, "which job? trib jobs lists them");
	for (int i = first; i < argc; i++)
		if (!*argv[i] || argv[i][strspn(argv[i], "0123456789")])
			return options_fail(&options, "\"%s\" is not the number of a job", argv[i]);
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib job end");
	for (code = 0; first < argc; first++) {
		char path[64];

		snprintf(path, sizeof(path), "/v1/jobs/%.40s", argv[first]);
		if (client_call(client, "DELETE", path, NULL, PATIENCE_S, NULL) != TRIB_OK)
			code = remote_fail("trib job end");
	}
	client_free(client);
	return code;
}

static const struct command commands[] = {
	{ "new", cli_job_new, "make a job, and print the settings of its workers" },
	{ "end", cli_job_end, "end jobs" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib job",
	.about = "Makes and ends the jobs of a controller.",
	.example = "eval \"$(trib job new --size 4 --policy shrink)\"\n"
		   "  eval \"$(trib job new --hosts 4 --wait --hostfile hosts)\"\n"
		   "  trib job end \"$TRIB_JOB\"",
	.commands = commands,
};

int cli_job(int argc, char **argv)
{
	return command_table_run(&table, argc, argv);
}
