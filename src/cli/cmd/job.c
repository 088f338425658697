/* SPDX-License-Identifier: Apache-2.0 */
/* trib job: makes and ends the jobs of a controller. */
#include "cli/cmd/cmd.h"
#include "launch/host_lease_client.h"
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

static int job_new(struct client *client, const json_t *wish, bool json)
{
	json_t *job;

	if (client_call(client, "POST", "/v1/jobs", wish, PATIENCE_S, &job) != TRIB_OK)
		return remote_fail("trib job new");
	if (json)
		remote_dump(job);
	else
		print_settings(client, job);
	json_decref(job);
	return 0;
}

/* Writes a line for each rank, so that every launcher understands it. */
static int write_hostfile(const struct host_lease *lease, uint64_t per_host, const char *path)
{
	FILE *file = fopen(path, "w");
	bool good = file != NULL;

	for (unsigned i = 0; good && i < lease_count(lease); i++)
		for (uint64_t k = 0; k < per_host; k++)
			good = fprintf(file, "%s\n", lease_address(lease, i)) > 0;
	if (file)
		good = !fclose(file) && good;
	if (good)
		return 0;
	fprintf(stderr, "trib job new: cannot write %s: %s\n", path, strerror(errno));
	return EXIT_FAILURE;
}

/*
 * When the hosts are known, the job is handed over to its ranks. Before, this process ends it
 * on failure.
 */
static int job_new_leased(const struct lease_request *wish, const char *hostfile, bool json)
{
	struct host_lease *lease;

	if (lease_start(wish, &lease) != TRIB_OK)
		return remote_fail("trib job new");
	if (hostfile && write_hostfile(lease, wish->per_host, hostfile)) {
		lease_end(lease);
		return EXIT_FAILURE;
	}
	lease_hand_over(lease);
	if (json) {
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

static int make_job(int argc, char **argv, bool *json)
{
	const char *controller = NULL, *name = "job", *policy = "fail", *hostfile = NULL;
	uint64_t size = 0, min = 1, hosts = 0, per_host = 1;
	bool waits = false;
	const struct option_row rows[] = {
		{ "size", 'n', OPTION_COUNT, &size, "N",
		  "number of ranks (default: what the ranks say when they join)", "4" },
		{ "name", 0, OPTION_TEXT, &name, "NAME", "name of the job in lists (default: job)",
		  "resnet" },
		{ "policy", 'p', OPTION_TEXT, &policy, "WHAT",
		  "what happens when a rank is lost: fail (all ranks stop), shrink (the others go "
		  "on), or wait (for another rank in its place) (default: fail)",
		  "shrink" },
		{ "min", 0, OPTION_COUNT, &min, "N",
		  "with shrink: fail below this number of ranks (default 1)", "2" },
		{ "hosts", 0, OPTION_COUNT, &hosts, "N",
		  "lease N hosts that take jobs (tribd --rack); they are the job's until trib job "
		  "end, or until all its ranks have joined and left",
		  "4" },
		{ "per-host", 0, OPTION_COUNT, &per_host, "N",
		  "with --hosts: ranks on each host (default 1); sets the size", "2" },
		{ "wait", 0, OPTION_FLAG, &waits, NULL,
		  "with --hosts: wait until there are enough hosts, first come, first served "
		  "(default: fail, and say how many are free)",
		  NULL },
		{ "hostfile", 0, OPTION_TEXT, &hostfile, "FILE",
		  "with --hosts: write the hosts' addresses there, a line for each rank, for "
		  "mpirun",
		  "hosts" },
		REMOTE_ROW(&controller),
		{ "json", 'j', OPTION_JSON, json, "FILE", "print JSON, or write it to FILE", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib job new [OPTION]...",
		"Makes a job at a controller and prints the settings of its workers as shell\n"
		"commands; with --hosts also the hosts that it got, as TRIB_HOSTS.",
		"eval \"$(trib job new --size 4)\" && mpirun -n 4 -x TRIB_AGGREGATOR -x TRIB_JOB "
		"-x "
		"TRIB_COOKIE ./train\n"
		"  eval \"$(trib job new --hosts 4 --wait --hostfile hosts)\" && mpirun --hostfile "
		"hosts -n 4 -x TRIB_AGGREGATOR -x TRIB_JOB -x TRIB_COOKIE ./train; trib job end "
		"\"$TRIB_JOB\"",
		rows,
	};
	struct client *client;
	json_t *wish;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (!hosts && (hostfile || waits || per_host != 1))
		return options_fail(&options, "--per-host, --wait and --hostfile go with --hosts");
	if (hosts && size && size != hosts * per_host)
		return options_fail(&options,
		                    "--hosts times --per-host is the size: leave --size out");
	if (hosts) {
		const struct lease_request asked = { "trib job new", controller, name, policy,
			                             hosts,          per_host,   min,  waits };

		return job_new_leased(&asked, hostfile, *json);
	}
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib job new");
	wish = json_pack("{s:s, s:s, s:I, s:I}", "name", name, "policy", policy, "size",
	                 (json_int_t)size, "min", (json_int_t)min);
	code = job_new(client, wish, *json);
	json_decref(wish);
	client_free(client);
	return code;
}

/* If it fails, `eval "$(trib job new)"` has to fail too: the shell runs what is printed. */
static int cli_job_new(int argc, char **argv)
{
	bool json = false;
	int code = make_job(argc, argv, &json);

	if (code && !json && !isatty(STDOUT_FILENO))
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

int cli_job(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "new"))
		return cli_job_new(argc - 1, argv + 1);
	if (!strcmp(what, "end"))
		return cli_job_end(argc - 1, argv + 1);
	if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		printf("Usage: trib job new|end [OPTION]...\n\n"
		       "Makes and ends the jobs of a controller. `trib job new --help` and `trib "
		       "job "
		       "end --help` say more.\n\n"
		       "Example:\n  eval \"$(trib job new --size 4 --policy shrink)\"\n"
		       "  eval \"$(trib job new --hosts 4 --wait --hostfile hosts)\"\n"
		       "  trib job end \"$TRIB_JOB\"\n");
		return 0;
	}
	fprintf(stderr, "trib job: new or end?\nTry: trib job --help\n");
	return EXIT_USAGE;
}
