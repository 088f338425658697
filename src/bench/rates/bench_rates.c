/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rates/bench_rates.h"
#include "bench/rates/rates_table.h"
#include "bench/report/progress.h"
#include "options/options.h"

#include <stdio.h>
#include <string.h>

struct rates_options {
	struct halve_options halve;
	uint64_t workers, window_ms, repeats, runs;
	const char *planes, *json, *plot;
	bool untold;
};

static struct rates_options asked = {
	.halve = { .link_bps = 400000000, .phase_s = 4, .bytes = 1 << 20 },
	.workers = 4,
	.window_ms = 50,
	.repeats = 50,
	.runs = 1,
	.planes = "udp,xdp,tcp",
};

static const struct option_row rows[] = {
	{ "hosts", 'n', OPTION_COUNT, &asked.workers, "N", "number of workers (default 4)", "8" },
	{ "link", 0, OPTION_RATE, &asked.halve.link_bps, "RATE",
	  "rate of every link (default 400mbit)", "1gbit" },
	{ "slow", 0, OPTION_RATE, &asked.halve.slow_bps, "RATE",
	  "rate of the aggregator's link while it is slow (default: half)", "100mbit" },
	{ "seconds", 0, OPTION_SECONDS, &asked.halve.phase_s, "S",
	  "duration of each phase: before, slow, restored (default 4)", "2" },
	{ "window", 0, OPTION_COUNT, &asked.window_ms, "MS",
	  "window in which sent bytes are counted (default 50)", "10" },
	{ "repeats", 0, OPTION_COUNT, &asked.repeats, "N",
	  "how often the agreement is timed (default 50; 0: not at all)", "200" },
	{ "runs", 0, OPTION_COUNT, &asked.runs, "N",
	  "how often the link becomes slow on each plane, planes in turn (default 1)", "8" },
	{ "size", 0, OPTION_BYTES, &asked.halve.bytes, "BYTES", "size of a vector (default 1M)",
	  "4M" },
	{ "plane", 0, OPTION_TEXT, &asked.planes, "LIST",
	  "udp, xdp, tcp (default: all three), or an empty list", "udp,tcp" },
	{ "untold", 0, OPTION_FLAG, &asked.untold, NULL,
	  "the aggregator does not know the rate of its link, so it gives no rates", NULL },
	{ "offload", 0, OPTION_FLAG, &asked.halve.whole, NULL,
	  "up to 64 KB cross links at once, instead of packet by packet", NULL },
	{ "json", 0, OPTION_JSON_FILE, &asked.json, "FILE",
	  "write the results to FILE as JSON (-: standard output)", NULL },
	{ "plot", 0, OPTION_TEXT, &asked.plot, "FILE", "draw the rates over time to FILE as SVG",
	  NULL },
	{ 0 },
};

static const struct options options = {
	"trib bench rates [OPTION]...",
	"Times how long workers and aggregators take to agree on rates. Then it does allreduces\n"
	"without pause over a virtual cluster (root), and makes the aggregator's link slow for a\n"
	"while: what workers send meanwhile, what is lost, and how soon rates settle. Every sum\n"
	"is checked.",
	"trib bench rates --link 400mbit --slow 200mbit --plot rates.svg\n"
	"  trib bench rates --repeats 0 --runs 8",
	rows,
};

static const char *options_wrong(struct rates_options *o)
{
	struct halve_options *h = &o->halve;

	h->workers = (unsigned)o->workers;
	h->told = !o->untold;
	h->window_s = (double)o->window_ms / 1e3;
	if (!h->slow_bps)
		h->slow_bps = h->link_bps / 2;
	if (o->repeats > AGREE_REPEATS_MAX)
		return "--repeats is 1000 at most";
	if (o->runs < 1 || o->runs > RATES_RUNS_MAX)
		return "--runs is 1 to 20";
	if (o->workers < 2 || o->workers > HALVE_WORKERS_MAX)
		return "--hosts is 2 to 16";
	if (h->link_bps < 1000000 || h->slow_bps < 1000000)
		return "--link and --slow are 1mbit at least";
	if (h->bytes < 4096 || h->bytes > 1u << 30 || h->bytes % 4)
		return "--size is 4K to 1G, in whole elements of 4 bytes";
	if (o->window_ms < 1 || h->phase_s * HALVE_PHASES > h->window_s * HALVE_WINDOWS_MAX)
		return "more than 480 windows: give a longer --window or fewer --seconds";
	if (h->phase_s < 8 * h->window_s)
		return "fewer than 8 windows in a phase: give a shorter --window or more --seconds";
	return NULL;
}

static unsigned planes_count(const char *list)
{
	unsigned n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* Measures each plane of the list in turn. */
static trib_status halve_planes(const struct rates_options *o, struct rates_report *report)
{
	trib_status status = TRIB_OK;
	unsigned n = 0;

	for (const char *at = o->planes; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		struct halve_options halve = o->halve;
		char plane[8];

		snprintf(plane, sizeof(plane), "%.*s", (int)length, at);
		at += length;
		if (strcmp(plane, "udp") && strcmp(plane, "xdp") && strcmp(plane, "tcp"))
			return status_fail(TRIB_ERR_ARGUMENT, "there is no plane \"%s\"", plane);
		report->planes = ++n;
		if (n > RATES_PLANES_MAX)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u planes",
			                   RATES_PLANES_MAX);
		halve.told &= strcmp(plane, "tcp") != 0; /* with tcp, the kernel finds the rates */
		progress_tell(report->n, (unsigned)o->runs * planes_count(o->planes), "%s", plane);
		if (halve_run(&halve, plane, &report->results[report->n++]) != TRIB_OK)
			status = status_fail(TRIB_ERR_PEER, "%s: %s", plane,
			                     report->results[report->n - 1].why);
		else if (report->results[report->n - 1].wrong)
			status = status_fail(TRIB_ERR_PEER, "%s: wrong sums", plane);
	}
	return status;
}

static trib_status halve_all(const struct rates_options *o, struct rates_report *report)
{
	trib_status status = TRIB_OK;

	for (unsigned run = 0; run < o->runs && status == TRIB_OK; run++)
		status = halve_planes(o, report);
	progress_clear();
	return status;
}

/* Once in a star, once in a tree of two levels. */
static trib_status agree_all(const struct rates_options *o, struct rates_report *report)
{
	trib_status status = TRIB_OK;

	for (unsigned levels = 1; levels <= 2 && o->repeats && status == TRIB_OK; levels++) {
		if (levels == 2 && o->workers < 4)
			break; /* an aggregator needs two children at least */
		status = agree_run((unsigned)o->workers, o->halve.link_bps, levels,
		                   (unsigned)o->repeats, &report->agreed[report->n_agreed]);
		report->n_agreed += status == TRIB_OK;
	}
	return status;
}

/* Prints and writes what was measured, also if a part of it failed. */
static trib_status show(const struct rates_options *o, const struct rates_report *report,
                        trib_status status)
{
	if (!o->json || strcmp(o->json, "-") != 0)
		rates_print(report);
	if (o->json && status != TRIB_ERR_ARGUMENT && rates_json(report, o->json) != TRIB_OK)
		status = TRIB_ERR_SYSTEM;
	if (o->plot && status != TRIB_ERR_ARGUMENT && rates_plot(report, o->plot) != TRIB_OK)
		status = TRIB_ERR_SYSTEM;
	return status;
}

int bench_rates_run(int argc, char **argv)
{
	static struct rates_report report;
	const char *wrong;
	trib_status status;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	wrong = options_wrong(&asked);
	if (wrong)
		return options_fail(&options, "%s", wrong);
	report.halve = asked.halve;
	status = agree_all(&asked, &report);
	if (status == TRIB_OK)
		status = halve_all(&asked, &report);
	status = show(&asked, &report, status);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench rates: %s\n", trib_last_error());
	return status == TRIB_OK ? 0 : status == TRIB_ERR_ARGUMENT ? EXIT_USAGE : 1;
}
