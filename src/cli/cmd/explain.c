/* SPDX-License-Identifier: Apache-2.0 */
/* trib explain: where an aggregator sums, in the kernel or in user space, and why. */
#include "base/settings.h"
#include "cli/cmd/cmd.h"
#include "cli/cmd/explain.h"
#include "cli/paths/path_commands.h"
#include "options/options.h"
#include "query/query.h"
#include "plane/stats/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_S 3

static int fail(void)
{
	fprintf(stderr, "trib explain: %s\n", trib_last_error());
	return EXIT_FAILURE;
}

/* Calls `tell` with each page from `first` on, until a page is empty. */
static trib_status each_page(const char *aggregator, unsigned first,
                             void (*tell)(const char *page, unsigned index))
{
	char page[QUERY_PAGE];

	for (unsigned i = 0; i < QUERY_PAGES_MAX; i++) {
		trib_status status =
			query_page(aggregator, first + i, TIMEOUT_S, page, sizeof(page));

		if (status != TRIB_OK || !strcmp(page, "{}"))
			return status;
		tell(page, i);
	}
	return TRIB_OK;
}

/* ---- for people ---- */

static void tell_interface(const char *page)
{
	char name[32], mode[16], why[256];

	page_text(page, "name", name, sizeof(name));
	page_text(page, "mode", mode, sizeof(mode));
	page_text(page, "why", why, sizeof(why));
	if (!strcmp(mode, "driver"))
		printf("  %s: in the driver, before the network stack.\n", name);
	else if (!strcmp(mode, "tc"))
		printf("  %s.\n", name);
	else if (!strcmp(mode, "generic"))
		printf("  %s: in generic mode, which is slower: %s.\n", name, why);
	else
		printf("  %s: not any more: %s. Packets from there are summed in user space.\n",
		       name, why);
}

static void tell_plane(const char *page, unsigned index)
{
	char plane[16], why[512];

	page_text(page, "plane", plane, sizeof(plane));
	page_text(page, "why", why, sizeof(why));
	if (!index && !strcmp(plane, "xdp"))
		printf("It sums in the kernel, with XDP, on these interfaces:\n");
	else if (!index && !strcmp(plane, "tc"))
		printf("It sums vectors of one packet in the kernel, longer ones in user space, on "
		       "these interfaces:\n");
	else if (!index && !strcmp(plane, why))
		printf("It sums in user space (%s), as it was started; with --plane tc or xdp it "
		       "would sum in the kernel.\n",
		       plane);
	else if (!index)
		printf("It sums in user space (%s).\n", why);
	for (const char *at = strstr(page, "{\"name\""); at; at = strstr(at + 1, "{\"name\""))
		tell_interface(at);
}

/* How ranks wait for the sums of small vectors: "polling (2), sleeping (1)". */
static void tell_waits(const char *page)
{
	static const char *const ways[] = { "polling", "sleeping" };
	const char *between = "  Its ranks wait for sums ";

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char word[32];
		unsigned n = 0;

		snprintf(word, sizeof(word), "\"waits\":\"%s\"", ways[i]);
		for (const char *at = strstr(page, word); at; at = strstr(at + 1, word))
			n++;
		if (n)
			printf("%s%s (%u)", between, ways[i], n);
		between = n ? ", " : between;
	}
	if (*between == ',')
		printf(": they sleep where other programs compute on their cores.\n");
}

void explain_away(double times)
{
	if (times > 0)
		printf("  Its large vectors go among the ranks, which is up to %.1f times as "
		       "fast. A switch, or more aggregators, would be faster still; "
		       "TRIB_WAY=aggregator forbids this way.\n",
		       times);
}

/* How rows of sparse training are summed, and why so. */
static void tell_sums(const char *page)
{
	char sums[16];

	page_text(page, "sums", sums, sizeof(sums));
	if (!strcmp(sums, "fixed"))
		printf("  It sums rows in fixed point (block integers): the workers opened the "
		       "table with sums = \"fixed\", the default. Sums are exact, and rows with a "
		       "value above `largest` go to the servers.\n");
	else if (!strcmp(sums, "table"))
		printf("  It sums rows as floats, by table: the workers opened the table with sums "
		       "= \"table\". Values of any size are summed here, with small errors.\n");
}

static void tell_job(const char *page, unsigned index)
{
	double lanes = page_number(page, "lanes"), kernel = page_number(page, "kernel_lanes");
	char why[512], state[16], parent[64], ranks[64], engine[16];

	(void)index;
	if (page_number(page, "first") > 0)
		return; /* the page has more ranks of the communicator before */
	page_text(page, "state", state, sizeof(state));
	page_text(page, "why", why, sizeof(why));
	page_text(page, "engine", engine, sizeof(engine));
	printf("Job %.0f, communicator %.0f%s, %.0f ranks, %s: ", page_number(page, "job"),
	       page_number(page, "comm"),
	       !strcmp(engine, "slot")     ? " for small vectors (slots)"
	       : !strcmp(engine, "sparse") ? " for rows of sparse training"
	                                   : "",
	       page_number(page, "size"), state);
	page_text(page, "parent", parent, sizeof(parent));
	page_text(page, "ranks", ranks, sizeof(ranks));
	if (*parent)
		printf("ranks %s come together here, and their sums go up to %s; ", ranks, parent);
	if (!strcmp(state, "forming"))
		printf("waiting for ranks to join%s.\n", *parent ? ", or for that aggregator" : "");
	else if (kernel == lanes)
		printf("the kernel sums all of its %.0f lanes.\n", lanes);
	else if (kernel > 0)
		printf("the kernel sums %.0f of its %.0f lanes, the others are summed in user "
		       "space: %s.\n",
		       kernel, lanes, why);
	else
		printf("summed in user space%s%s.\n", *why ? ": " : "", why);
	if (strcmp(engine, "sparse") != 0)
		tell_waits(page);
	if (!*engine || !strcmp(engine, "dense"))
		if (strstr(page, "\"away\""))
			explain_away(page_number(strstr(page, "\"away\""), "away"));
	tell_sums(page);
}

static int explain(const char *aggregator)
{
	char page[QUERY_PAGE];
	double all, kernel;

	if (query_page(aggregator, 0, TIMEOUT_S, page, sizeof(page)) != TRIB_OK)
		return fail();
	printf("tribd at %s, up %.0f s.\n", aggregator, page_number(page, "uptime_s"));
	if (each_page(aggregator, DESCRIBE_PLANE, tell_plane) != TRIB_OK)
		return fail();
	all = page_number(page, "payload_bytes");
	kernel = page_number(page, "kernel_payload_bytes");
	if (strstr(page, "\"kernel_payload_bytes\"") && all > 0)
		printf("Of %.1f MB that were added so far, the kernel added %.1f MB (%.0f %%).\n",
		       all / 1e6, kernel / 1e6, kernel / all * 100);
	if (each_page(aggregator, 1, tell_job) != TRIB_OK)
		return fail();
	return EXIT_SUCCESS;
}

/* ---- for programs ---- */

static void print_page(const char *page, unsigned index)
{
	printf("%s%s", index ? ",\n" : "", page);
}

static int explain_json(const char *aggregator)
{
	char page[QUERY_PAGE];

	if (query_page(aggregator, 0, TIMEOUT_S, page, sizeof(page)) != TRIB_OK)
		return fail();
	printf("{\"tribd\":%s,\n\"planes\":[", page);
	if (each_page(aggregator, DESCRIBE_PLANE, print_page) != TRIB_OK)
		return fail();
	printf("],\n\"jobs\":[");
	if (each_page(aggregator, 1, print_page) != TRIB_OK)
		return fail();
	printf("]}\n");
	return EXIT_SUCCESS;
}

int cli_explain(int argc, char **argv)
{
	const char *aggregator = setting_text(SETTING_AGGREGATOR, NULL), *controller = NULL;
	char page[QUERY_PAGE];
	bool json = false, paths = false;
	int code, first;
	const struct option_row rows[] = {
		{ "aggregator", 'a', OPTION_TEXT, &aggregator, "HOST:PORT",
		  "the aggregator to ask (default: TRIB_AGGREGATOR)", "10.0.0.1:7700" },
		{ "controller", 'c', OPTION_TEXT, &controller, "CONTROLLER",
		  "with a JOB: its controller (default: TRIB_CONTROLLER)",
		  "10.0.0.1:7600#sha256//..." },
		{ "paths", 0, OPTION_FLAG, &paths, NULL,
		  "which paths processes of this host use, all or those of JOB, and why", NULL },
		{ "json", 'j', OPTION_JSON, &json, "FILE", "print JSON, or write it to FILE",
		  NULL },
		{ 0 }
	};
	const struct options usage = {
		.usage = "trib explain [OPTION]... [JOB]",
		.about = "Says where an aggregator sums, and why: in the kernel (on which "
			 "interfaces, in which\n"
			 "mode) or in user space. Says the same of each of its jobs. For a JOB of "
			 "a controller:\n"
			 "its trees, their rate, the bound, and what limits them.\n"
			 "With --paths: which paths the ranks on this host use.",
		.example = "TRIB_COOKIE=$(cat cookie) trib explain --aggregator 10.0.0.1:7700\n"
			   "  trib explain 7",
		.rows = rows,
	};

	first = options_parse(&usage, argc, argv, &code);
	if (first < 0)
		return code;
	if (first + 1 < argc)
		return options_fail(&usage, "%s: unexpected argument; give one job",
		                    argv[first + 1]);
	if (paths)
		return explain_paths(first < argc ? argv[first] : NULL, json);
	if (first < argc)
		return explain_job ? explain_job(argv[first], controller, json)
		                   : cmd_left_out("explain JOB");
	if (!aggregator)
		return options_fail(&usage, "no aggregator: give --aggregator, or set "
		                            "TRIB_AGGREGATOR; or name a JOB of a controller");
	if (query_page(aggregator, 0, TIMEOUT_S, page, sizeof(page)) != TRIB_OK)
		return fail();
	if (page_is_controllers(page)) /* trib job new sets both TRIB_AGGREGATOR and TRIB_JOB */
		return explain_job ? explain_job(setting_text(SETTING_JOB, NULL), controller, json)
		                   : cmd_left_out("explain JOB");
	return json ? explain_json(aggregator) : explain(aggregator);
}
