/* SPDX-License-Identifier: Apache-2.0 */
/* trib jobs: the jobs of a controller. */
#include "cli/cmd/cmd.h"
#include "cli/cmd/list_command.h"
#include "plan/tree/ring_seats.h"
#include "query/remote.h"

#include <stdio.h>

static void print_communicator(const json_t *it)
{
	const char *key = remote_text(it, "key"), *plan = remote_text(it, "plan");
	char members[128], waiting[128];

	remote_ranks(json_object_get(it, "members"), members, sizeof(members));
	remote_ranks(json_object_get(it, "waiting"), waiting, sizeof(waiting));
	printf("  %s%s plan %.0f%s%s%s%s%s%s%s\n",
	       key[0] == '0' && !key[1] ? "all ranks:" : "split ",
	       key[0] == '0' && !key[1] ? "" : key, remote_number(it, "generation"),
	       *members ? ", ranks " : "", members, *waiting ? ", waiting: " : "", waiting,
	       *plan ? "\n    " : "",
	       ring_seats_are(plan) ? "around a ring, without an aggregator: " : "", plan);
}

/* The hosts of a job that asked for some, or why it waits. */
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

static void print_head(void)
{
	printf("%5s  %-24s %5s  %s\n", "JOB", "NAME", "RANKS", "POLICY");
}

static const char about[] =
	"Lists the jobs of a controller: their hosts, their plans, or why they wait, and which\n"
	"ranks wait for the next plan.";

int cli_jobs(int argc, char **argv)
{
	static const struct list_command command = {
		.name = "trib jobs",
		.usage = "trib jobs [OPTION]...",
		.about = about,
		.example = "trib jobs",
		.path = "/v1/jobs",
		.field = "jobs",
		.none = "no jobs; make one with: trib job new",
		.print_head = print_head,
		.print_row = print_job,
	};

	return list_command_run(&command, argc, argv);
}
