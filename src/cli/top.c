/* SPDX-License-Identifier: Apache-2.0 */
/* trib top: what an aggregator does, once a second: rates, jobs, and who comes last. */
#include "base/clock.h"
#include "base/settings.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define PAGES_MAX 64

/* The number behind "name": in a page that our own aggregator wrote; 0 where it is not. */
static double field(const char *page, const char *name)
{
	char key[40];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(page, key);
	return at ? strtod(at + strlen(key), NULL) : 0;
}

static void text_field(const char *page, const char *name, char *out, size_t size)
{
	char key[40];
	const char *at, *end;

	out[0] = 0;
	snprintf(key, sizeof(key), "\"%s\":\"", name);
	at = strstr(page, key);
	if (at && (end = strchr(at + strlen(key), '"')))
		snprintf(out, size, "%.*s", (int)(end - at - (long)strlen(key)), at + strlen(key));
}

static void show_totals(const char *page, const char *before, double seconds)
{
	double rate = (field(page, "payload_bytes") - field(before, "payload_bytes")) * 8 / seconds;
	double packets = (field(page, "packets") - field(before, "packets")) / seconds;
	double cpu = (field(page, "cpu_s") - field(before, "cpu_s")) / seconds * 100;
	char plane[16];

	text_field(page, "plane", plane, sizeof(plane));
	printf("plane %s   up %.0f s   added %.3f Gb/s   %.0f packets/s   CPU %.0f %%   repeats "
	       "%.0f   "
	       "corrupted %.0f   wrong cookie %.0f\n",
	       plane, field(page, "uptime_s"), rate / 1e9, packets, cpu, field(page, "repeats"),
	       field(page, "checksum"), field(page, "cookie"));
}

static void show_comm(const char *page)
{
	char state[16], host[32];

	text_field(page, "state", state, sizeof(state));
	if (field(page, "first") == 0) { /* else it goes on with the ranks of the page before */
		printf("\njob %.0f, communicator %.0f: %s, %.0f ranks, %.0f lanes, pool %.1f MB, "
		       "%.0f "
		       "hear multicast\n",
		       field(page, "job"), field(page, "comm"), state, field(page, "size"),
		       field(page, "lanes"),
		       field(page, "lanes") * field(page, "cells") * field(page, "payload") / 1e6,
		       field(page, "multicast"));
		printf("  %4s  %-20s  %12s  %s\n", "RANK", "HOST", "FRAGMENTS", "CAME LAST");
	}
	for (const char *child = strstr(page, "{\"rank\""); child;
	     child = strstr(child + 1, "{\"rank\"")) {
		double done = field(child, "done");

		text_field(child, "host", host, sizeof(host));
		printf("  %4.0f  %-20s  %12.0f  %4.0f %%\n", field(child, "rank"), host, done,
		       done > 0 ? field(child, "last") / done * 100 : 0);
	}
}

static int fail(void)
{
	fprintf(stderr, "trib top: %s\n", trib_last_error());
	return EXIT_FAILURE;
}

/* Pages as they are, one a line. */
static int print_json(const char *aggregator)
{
	char page[PAGE_BYTES];

	for (unsigned i = 0; i < PAGES_MAX; i++) {
		if (query_page(aggregator, i, 3, page, sizeof(page)) != TRIB_OK)
			return fail();
		if (!strcmp(page, "{}"))
			break;
		puts(page);
	}
	return EXIT_SUCCESS;
}

int cli_top(int argc, char **argv)
{
	const char *aggregator = setting_text(SETTING_AGGREGATOR, NULL);
	bool once = false, json = false;
	double every = 1;
	int code;
	const struct option_row rows[] = {
		{ "aggregator", 'a', OPTION_TEXT, &aggregator, "HOST:PORT",
		  "the aggregator to look at (default: TRIB_AGGREGATOR)", "10.0.0.1:7700" },
		{ "every", 'e', OPTION_SECONDS, &every, "S", "seconds between looks (default 1)",
		  "5" },
		{ "once", '1', OPTION_FLAG, &once, NULL, "one look, then end", NULL },
		{ "json", 'j', OPTION_FLAG, &json, NULL, "one look as JSON, a line a page", NULL },
		{ 0 }
	};
	const struct options usage = {
		.usage = "trib top [OPTION]...",
		.about = "Shows what an aggregator does: bits added, packets, CPU, and for every "
			 "rank how far it is and how often it was the one that others waited for.",
		.example = "TRIB_COOKIE=5eed trib top --aggregator 10.0.0.1:7700",
		.rows = rows,
	};
	char before[PAGE_BYTES] = "{}", page[PAGE_BYTES];
	uint64_t then = clock_now();

	if (options_parse(&usage, argc, argv, &code) < 0)
		return code;
	if (!aggregator)
		return options_fail(&usage, "no aggregator: give --aggregator, or set "
		                            "TRIB_AGGREGATOR");
	if (json)
		return print_json(aggregator);
	for (;;) {
		uint64_t now;
		double seconds;

		if (query_page(aggregator, 0, 3, page, sizeof(page)) != TRIB_OK)
			return fail();
		now = clock_now();
		seconds = !strcmp(before, "{}") ? field(page, "uptime_s")
		                                : (double)(now - then) / 1e9;
		if (isatty(STDOUT_FILENO) && !once)
			printf("\033[H\033[J");
		show_totals(page, before, seconds > 0 ? seconds : 1);
		then = now;
		memcpy(before, page, sizeof(before));
		for (unsigned i = 1; i < PAGES_MAX; i++) {
			if (query_page(aggregator, i, 3, page, sizeof(page)) != TRIB_OK)
				return fail();
			if (!strcmp(page, "{}"))
				break;
			show_comm(page);
		}
		fflush(stdout);
		if (once)
			return EXIT_SUCCESS;
		usleep((useconds_t)(every * 1e6));
	}
}
