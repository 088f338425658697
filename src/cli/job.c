/* SPDX-License-Identifier: Apache-2.0 */
/* trib job: makes and ends the jobs of a controller. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/remote.h"

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

static int cli_job_new(int argc, char **argv)
{
	const char *controller = NULL, *name = "job", *policy = "fail";
	uint64_t size = 0, min = 1;
	bool json = false;
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
		REMOTE_ROW(&controller),
		{ "json", 'j', OPTION_FLAG, &json, NULL, "for programs", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib job new [OPTION]...",
		"Makes a job at a controller and prints the settings that its workers need, as a "
		"line for\nthe shell.",
		"eval \"$(trib job new --size 4)\" && mpirun -n 4 -x TRIB_AGGREGATOR -x TRIB_JOB "
		"-x "
		"TRIB_COOKIE ./train",
		rows,
	};
	struct client *client;
	json_t *wish;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
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
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib job end");
	for (code = 0; first < argc; first++) {
		char path[64];

		snprintf(path, sizeof(path), "/v1/jobs/%lu", strtoul(argv[first], NULL, 10));
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
		       "  trib job end \"$TRIB_JOB\"\n");
		return 0;
	}
	fprintf(stderr, "trib job: new or end?\nTry: trib job --help\n");
	return EXIT_USAGE;
}
