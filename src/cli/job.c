/* SPDX-License-Identifier: Apache-2.0 */
/* trib job: makes and ends the jobs of a controller. */
#include "cli/cli.h"
#include "cli/hosted.h"
#include "cli/options.h"
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S 10.0

/* What the workers of a job need, for a shell to take up. */
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

/* A line for each rank, so that every launcher understands how many go where. */
static int write_hostfile(const struct hosted *hosted, uint64_t per_host, const char *path)
{
	FILE *file = fopen(path, "w");
	bool good = file != NULL;

	for (unsigned i = 0; good && i < hosted_count(hosted); i++)
		for (uint64_t k = 0; k < per_host; k++)
			good = fprintf(file, "%s\n", hosted_address(hosted, i)) > 0;
	if (file)
		good = !fclose(file) && good;
	if (good)
		return 0;
	fprintf(stderr, "trib job new: cannot write %s: %s\n", path, strerror(errno));
	return EXIT_FAILURE;
}

/* The job is its ranks' when its hosts are known; before, it is ours. */
static int job_new_hosted(const struct hosted_wish *wish, const char *hostfile, bool json)
{
	struct hosted *hosted;

	if (hosted_start(wish, &hosted) != TRIB_OK)
		return remote_fail("trib job new");
	if (hostfile && write_hostfile(hosted, wish->per_host, hostfile)) {
		hosted_end(hosted);
		return EXIT_FAILURE;
	}
	hosted_hand_over(hosted);
	if (json) {
		hosted_dump(hosted);
	} else {
		printf("export TRIB_AGGREGATOR=%s TRIB_JOB=%" PRIu64 " TRIB_COOKIE=%" PRIx64
		       " TRIB_HOSTS=",
		       hosted_controller(hosted), hosted_job(hosted), hosted_cookie(hosted));
		for (unsigned i = 0; i < hosted_count(hosted); i++)
			printf("%s%s", i ? "," : "", hosted_address(hosted, i));
		putchar('\n');
	}
	hosted_end(hosted);
	return 0;
}

static int cli_job_new(int argc, char **argv)
{
	const char *controller = NULL, *name = "job", *policy = "fail", *hostfile = NULL;
	uint64_t size = 0, min = 1, hosts = 0, per_host = 1;
	bool json = false, waits = false;
	const struct option_row rows[] = {
		{ "size", 'n', OPTION_COUNT, &size, "N",
		  "how many ranks it has (default: as many as they say)", "4" },
		{ "name", 0, OPTION_TEXT, &name, "NAME", "for lists (default: job)", "resnet" },
		{ "policy", 'p', OPTION_TEXT, &policy, "WHAT",
		  "when a rank is lost: fail (all stop), shrink (the others go on), or wait for "
		  "one "
		  "in its place (default: fail)",
		  "shrink" },
		{ "min", 0, OPTION_COUNT, &min, "N", "shrink: not below so many ranks (default 1)",
		  "2" },
		{ "hosts", 0, OPTION_COUNT, &hosts, "N",
		  "so many hosts of those that take jobs (tribd --rack), which nobody else gets "
		  "until trib job end, or until its ranks have come and are gone",
		  "4" },
		{ "per-host", 0, OPTION_COUNT, &per_host, "N",
		  "--hosts: ranks on each (default 1); the size follows", "2" },
		{ "wait", 0, OPTION_FLAG, &waits, NULL,
		  "--hosts: until there are enough, in the order in which jobs have come (default: "
		  "fail, and say how many are free)",
		  NULL },
		{ "hostfile", 0, OPTION_TEXT, &hostfile, "FILE",
		  "--hosts: write their addresses there, a line for each rank, for mpirun",
		  "hosts" },
		REMOTE_ROW(&controller),
		{ "json", 'j', OPTION_FLAG, &json, NULL, "for programs", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib job new [OPTION]...",
		"Makes a job at a controller and prints the settings that its workers need, as a "
		"line for\nthe shell; with --hosts also which hosts it has got, as TRIB_HOSTS.",
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
		                    "--hosts times --per-host is the size: it goes without "
		                    "--size");
	if (hosts) {
		const struct hosted_wish asked = { "trib job new", controller, name, policy,
			                           hosts,          per_host,   min,  waits };

		return job_new_hosted(&asked, hostfile, json);
	}
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib job new");
	wish = json_pack("{s:s, s:s, s:I, s:I}", "name", name, "policy", policy, "size",
	                 (json_int_t)size, "min", (json_int_t)min);
	code = job_new(client, wish, json);
	json_decref(wish);
	client_free(client);
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
		"Ends jobs at a controller: it forgets them, and gives their ranks no more plans. "
		"Workers that\nrun are not stopped.",
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
			return options_fail(&options, "\"%s\" is no job's number", argv[i]);
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
