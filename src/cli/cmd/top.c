/* SPDX-License-Identifier: Apache-2.0 */
/* trib top: what an aggregator does, once a second: rates, jobs, and which ranks come last. */
#include "base/clock.h"
#include "base/settings.h"
#include "cli/cmd/cmd.h"
#include "cli/cmd/top.h"
#include "cli/paths/path_commands.h"
#include "options/colour.h"
#include "options/options.h"
#include "query/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *aggregator, *controller;
	bool once, json, paths;
	double every;
} asked = { .every = 1 };

static const struct option_row rows[] = {
	{ "aggregator", 'a', OPTION_TEXT, &asked.aggregator, "HOST:PORT",
	  "the aggregator to watch (default: TRIB_AGGREGATOR)", "10.0.0.1:7700" },
	{ "controller", 'c', OPTION_TEXT, &asked.controller, "CONTROLLER",
	  "watch all aggregators of this controller (default without an aggregator: "
	  "TRIB_CONTROLLER)",
	  "10.0.0.1:7600#sha256//..." },
	{ "paths", 0, OPTION_FLAG, &asked.paths, NULL,
	  "watch the paths that processes of this host use", NULL },
	{ "every", 'e', OPTION_SECONDS, &asked.every, "S", "seconds between updates (default 1)",
	  "5" },
	{ "once", '1', OPTION_FLAG, &asked.once, NULL, "print once, then end", NULL },
	{ "json", 'j', OPTION_JSON, &asked.json, "FILE", "print once as JSON, one page per line",
	  NULL },
	{ 0 }
};

static const struct options usage = {
	.usage = "trib top [OPTION]...",
	.about = "Shows what an aggregator does: bits added, packets, CPU. For every rank: how\n"
		 "far it is, how often the others waited for it (LATE), and what its link lost.\n"
		 "For a controller: the same for all of its aggregators, the latest rank of each\n"
		 "communicator first. With --paths: the paths of ranks on this host.",
	.example = "TRIB_COOKIE=$(cat cookie) trib top --aggregator 10.0.0.1:7700",
	.rows = rows,
};

static void show_totals(const char *page, const char *before, double seconds)
{
	double rate = (page_number(page, "payload_bytes") - page_number(before, "payload_bytes")) *
	              8 / seconds;
	double packets = (page_number(page, "packets") - page_number(before, "packets")) / seconds;
	double cpu = (page_number(page, "cpu_s") - page_number(before, "cpu_s")) / seconds * 100;
	char plane[16];

	page_text(page, "plane", plane, sizeof(plane));
	printf("plane %s   up %.0f s   added %.3f Gb/s   %.0f packets/s   CPU %.0f %%   repeats "
	       "%.0f   corrupted %.0f   wrong cookie %.0f\n",
	       plane, page_number(page, "uptime_s"), rate / 1e9, packets, cpu,
	       page_number(page, "repeats"), page_number(page, "checksum"),
	       page_number(page, "cookie"));
}

/* The ranks below a child that is an aggregator; empty for a worker. */
static void show_covers(const char *child, char *out, size_t size)
{
	const char *end = strchr(child, '}'), *at = strstr(child, "\"covers\"");
	char ranks[48];

	*out = 0;
	if (!at || at > end)
		return;
	page_text(child, "covers", ranks, sizeof(ranks));
	snprintf(out, size, "aggregator of ranks %s", ranks);
}

/* Of a share of packets that were lost, in percent. */
static enum colour loss_colour(double lost)
{
	return lost >= 5 ? COLOUR_BAD : lost >= 1 ? COLOUR_WARN : COLOUR_NONE;
}

static void show_comm(const char *page)
{
	char state[16], host[32], parent[64], covers[72];

	page_text(page, "state", state, sizeof(state));
	if (page_number(page, "first") ==
	    0) { /* otherwise the page continues the ranks of the page before */
		printf("\njob %.0f, communicator %.0f: %s, %.0f ranks, %.0f lanes, pool %.1f MB, "
		       "%.0f hear multicast\n",
		       page_number(page, "job"), page_number(page, "comm"), state,
		       page_number(page, "size"), page_number(page, "lanes"),
		       page_number(page, "lanes") * page_number(page, "cells") *
		               page_number(page, "payload") / 1e6,
		       page_number(page, "multicast"));
		page_text(page, "parent", parent, sizeof(parent));
		if (*parent)
			printf("  tree %.0f: its sums go up to %s\n", page_number(page, "tree"),
			       parent);
		printf("  %4s  %-20s %12s %8s %10s %10s\n", "RANK", "HOST", "FRAGMENTS", "LATE",
		       "LOST UP", "LOST DOWN");
	}
	for (const char *child = strstr(page, "{\"rank\""); child;
	     child = strstr(child + 1, "{\"rank\"")) {
		double done = page_number(child, "done"), judged = page_number(child, "judged");
		double share = done > 0 ? 100 / done : 0, up, down;

		page_text(child, "host", host, sizeof(host));
		show_covers(child, covers, sizeof(covers));
		up = judged > 0 ? page_number(child, "missed") / judged * 100 : 0.0;
		down = page_number(child, "repeated") * share;
		printf("  %4.0f  %-20s %12.0f %6.1f %% %s%8.2f %%%s %s%8.2f %%%s  %s\n",
		       page_number(child, "rank"), host, done, page_number(child, "last") * share,
		       colour_on(loss_colour(up)), up, colour_off(), colour_on(loss_colour(down)),
		       down, colour_off(), covers);
	}
}

static int fail(void)
{
	fprintf(stderr, "trib top: %s\n", trib_last_error());
	return EXIT_FAILURE;
}

/* Prints the pages unchanged, one a line. */
static int print_json(void)
{
	char page[QUERY_PAGE];

	for (unsigned i = 0; i < QUERY_PAGES_MAX; i++) {
		if (query_page(asked.aggregator, i, 3, page, sizeof(page)) != TRIB_OK)
			return fail();
		if (!strcmp(page, "{}"))
			break;
		puts(page);
	}
	return EXIT_SUCCESS;
}

/* Prints one update. `before` is the totals' page of the update before; "{}": there was none. */
static trib_status show_update(char *before, uint64_t *then)
{
	char page[QUERY_PAGE];
	double seconds;
	uint64_t now;
	trib_status status = query_page(asked.aggregator, 0, 3, page, sizeof(page));

	if (status != TRIB_OK)
		return status;
	now = clock_now();
	seconds =
		!strcmp(before, "{}") ? page_number(page, "uptime_s") : (double)(now - *then) / 1e9;
	if (isatty(STDOUT_FILENO) && !asked.once)
		printf("\033[H\033[J");
	show_totals(page, before, seconds > 0 ? seconds : 1);
	*then = now;
	memcpy(before, page, sizeof(page));
	for (unsigned i = 1; i < QUERY_PAGES_MAX; i++) {
		status = query_page(asked.aggregator, i, 3, page, sizeof(page));
		if (status != TRIB_OK || !strcmp(page, "{}"))
			break;
		show_comm(page);
	}
	fflush(stdout);
	return status;
}

static int watch(void)
{
	char before[QUERY_PAGE] = "{}";
	uint64_t then = clock_now();

	for (;;) {
		if (show_update(before, &then) != TRIB_OK)
			return fail();
		if (asked.once)
			return EXIT_SUCCESS;
		usleep((useconds_t)(asked.every * 1e6));
	}
}

static int watch_controller(const char *controller)
{
	if (!top_controller)
		return cmd_left_out("top --controller");
	return top_controller(controller, asked.every, asked.once, asked.json);
}

int cli_top(int argc, char **argv)
{
	char page[QUERY_PAGE];
	int code;

	asked.aggregator = setting_text(SETTING_AGGREGATOR, NULL);
	if (options_parse(&usage, argc, argv, &code) < 0)
		return code;
	if (asked.paths)
		return top_paths(asked.every, asked.once, asked.json);
	if (asked.controller || (!asked.aggregator && top_has_controller && top_has_controller()))
		return watch_controller(asked.controller);
	if (!asked.aggregator)
		return options_fail(&usage, "no aggregator: give --aggregator, or set "
		                            "TRIB_AGGREGATOR; or TRIB_CONTROLLER");
	if (query_page(asked.aggregator, 0, 3, page, sizeof(page)) != TRIB_OK)
		return fail();
	if (page_is_controllers(page)) /* trib job new sets TRIB_AGGREGATOR to the controller */
		return watch_controller(NULL);
	return asked.json ? print_json() : watch();
}
