/* SPDX-License-Identifier: Apache-2.0 */
/* trib jobs: what a controller has been asked to run. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/remote.h"

#include <stdio.h>

static void print_communicator(const json_t *it)
{
	const char *key = remote_text(it, "key");
	char members[128], waiting[128];

	remote_ranks(json_object_get(it, "members"), members, sizeof(members));
	remote_ranks(json_object_get(it, "waiting"), waiting, sizeof(waiting));
	printf("  %s%s plan %.0f%s%s%s%s%s%s\n", key[0] == '0' && !key[1] ? "all ranks:" : "split ",
	       key[0] == '0' && !key[1] ? "" : key, remote_number(it, "generation"),
	       *members ? ", ranks " : "", members, *waiting ? ", waiting: " : "", waiting,
	       *remote_text(it, "plan") ? "\n    " : "", remote_text(it, "plan"));
}

/* Of a job that has asked for some: which, or why it has none. */
static void print_hosts(const json_t *job)
{
	const json_t *list = json_object_get(job, "placed");
	char text[400];

	if (!list)
		return;
	remote_plain(job, "why", text, sizeof(text));
	if (!json_array_size(list)) {
		printf("  waits: %s\n", text);
		return;
	}
	printf("  hosts:");
	for (size_t i = 0; i < json_array_size(list); i++) {
		remote_plain(json_array_get(list, i), "name", text, sizeof(text));
		printf("%s %s", i ? "," : "", text);
		remote_plain(json_array_get(list, i), "rack", text, sizeof(text));
		printf(" (%s)", text);
	}
	putchar('\n');
}

static void print_job(const json_t *job)
{
	const json_t *list = json_object_get(job, "communicators");
	double size = remote_number(job, "size");
	char ranks[16];

	snprintf(ranks, sizeof(ranks), size > 0 ? "%.0f" : "any", size);
	printf("%5.0f  %-24s %5s  %s\n", remote_number(job, "id"), remote_text(job, "name"), ranks,
	       remote_text(job, "policy"));
	print_hosts(job);
	for (size_t i = 0; i < json_array_size(list); i++)
		print_communicator(json_array_get(list, i));
}

static int print_jobs(struct client *client, bool json)
{
	json_t *answer, *list;

	if (remote_get(client, "/v1/jobs", &answer) != TRIB_OK)
		return remote_fail("trib jobs");
	list = json_object_get(answer, "jobs");
	if (json)
		remote_dump(answer);
	else if (!json_array_size(list))
		printf("no jobs: trib job new makes one\n");
	else
		printf("%5s  %-24s %5s  %s\n", "JOB", "NAME", "RANKS", "POLICY");
	if (!json)
		for (size_t i = 0; i < json_array_size(list); i++)
			print_job(json_array_get(list, i));
	json_decref(answer);
	return 0;
}

int cli_jobs(int argc, char **argv)
{
	const char *controller = NULL;
	bool json = false;
	const struct option_row rows[] = {
		REMOTE_ROW(&controller),
		{ "json", 'j', OPTION_FLAG, &json, NULL, "for programs", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib jobs [OPTION]...",
		"Lists the jobs of a controller, the hosts and the plan that each has or why it "
		"waits, and which\nranks wait for the next plan.",
		"trib jobs",
		rows,
	};
	struct client *client;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib jobs");
	code = print_jobs(client, json);
	client_free(client);
	return code;
}
