/* SPDX-License-Identifier: Apache-2.0 */
/* trib jobs: the jobs of a controller. */
#include "cli/cmd/cmd.h"
#include "cli/cmd/list_command.h"
#include "options/colour.h"
#include "plan/tree/ring_seats.h"
#include "query/remote.h"

#include <stdio.h>
#include <string.h>

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
	       ring_seats_are(plan) ? "among the ranks, without an aggregator: " : "", plan);
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

/* "42 s", "7 min", "3 h", "2 d" */
static void print_age(double seconds, char *out, size_t size)
{
	if (seconds < 120)
		snprintf(out, size, "%.0f s", seconds);
	else if (seconds < 7200)
		snprintf(out, size, "%.0f min", seconds / 60);
	else if (seconds < 172800)
		snprintf(out, size, "%.0f h", seconds / 3600);
	else
		snprintf(out, size, "%.0f d", seconds / 86400);
}

/* What all ranks of the job sum together. */
static double job_rate(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!strcmp(remote_text(json_array_get(list, i), "key"), "0"))
			return remote_number(json_array_get(list, i), "runs_bps");
	return 0;
}

static enum colour state_colour(const char *state)
{
	return !strcmp(state, "running")  ? COLOUR_GOOD
	       : !strcmp(state, "silent") ? COLOUR_BAD
	       : !strcmp(state, "ended")  ? COLOUR_DIM
	                                  : COLOUR_WARN;
}

static void print_job(const json_t *job)
{
	const json_t *list = json_object_get(job, "communicators");
	const char *state = remote_text(job, "state");
	double size = remote_number(job, "size"), bps = job_rate(list);
	bool ended = !strcmp(state, "ended");
	char ranks[16], age[16], rate[24] = "-";

	snprintf(ranks, sizeof(ranks), size > 0 ? "%.0f" : "any", size);
	print_age(remote_number(job, "age_s"), age, sizeof(age));
	if (bps > 0 && !ended)
		remote_rate(bps, rate, sizeof(rate));
	printf("%5.0f  %-24s %s%-8s%s %8s %5s %10s  %s\n", remote_number(job, "id"),
	       remote_text(job, "name"), colour_on(state_colour(state)), state, colour_off(), age,
	       ranks, rate, remote_text(job, "policy"));
	if (ended)
		return;
	print_hosts(job);
	for (size_t i = 0; i < json_array_size(list); i++)
		print_communicator(json_array_get(list, i));
}

static void print_head(void)
{
	printf("%5s  %-24s %-8s %8s %5s %10s  %s\n", "JOB", "NAME", "STATE", "AGE", "RANKS", "RATE",
	       "POLICY");
}

static const char about[] =
	"Lists the jobs of a controller: their state, age and rate, their hosts, their plans, or\n"
	"why they wait, and which ranks wait for the next plan. STATE is queued (it waits for\n"
	"hosts), new (no rank has come), starting, running, silent (no sign of life of its ranks\n"
	"for a minute) or ended. An ended job is removed after TRIB_KEEP_ENDED seconds.";

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
