/* SPDX-License-Identifier: Apache-2.0 */
/* trib sparse hot: which rows of a data set are hot, and what an aggregator saves by that. */
#include "options/json_writer.h"
#include "cli/sparse/hot_report.h"
#include "cli/sparse/sparse_command.h"
#include "sparse/data/update_text.h"
#include "sparse/layout/row_room.h"
#include "wire/sparse_packet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX 64u

struct percents {
	double shares[HOT_SAMPLES_MAX];
	unsigned n;
};

static struct {
	const char *format, *rows, *json, *plot;
	uint64_t width, payload, workers, batch, hot, registers, packet, step, seed;
	bool no_caches;
	struct percents samples;
	double growth;
} given = { .width = 16,
	    .payload = 1424,
	    .workers = 8,
	    .batch = 1000,
	    .registers = 32,
	    .packet = 16,
	    .step = 1000,
	    .seed = 1,
	    .growth = 1,
	    .samples = { { 0.01, 0.02, 0.04, 0.08 }, 4 } };

/* ---- options ---- */

static trib_status percents_take(void *context, const char *text)
{
	struct percents *percents = context;

	percents->n = 0;
	for (;;) {
		char *end;
		double value = strtod(text, &end);

		if (end == text || !isfinite(value) || value <= 0 || value > 100 ||
		    (*end && *end != ','))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "give percents above 0 and up to 100, with commas "
			                   "between them");
		if (percents->n == HOT_SAMPLES_MAX)
			return status_fail(TRIB_ERR_ARGUMENT, "at most %u samples",
			                   HOT_SAMPLES_MAX);
		percents->shares[percents->n++] = value / 100;
		if (!*end)
			return TRIB_OK;
		text = end + 1;
	}
}

static trib_status growth_take(void *context, const char *text)
{
	double *value = context;
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < 0 || *value > 100)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a number from 0 to 100", text);
	return TRIB_OK;
}

static struct option_hook samples_hook = { percents_take, &given.samples };
static struct option_hook growth_hook = { growth_take, &given.growth };

static const struct option_row option_rows[] = {
	{ "format", 0, OPTION_TEXT, &given.format, "FORMAT",
	  "lists (user item item ...), pairs (user item), text, counts (word count); default: by "
	  "content",
	  "pairs" },
	{ "rows", 0, OPTION_TEXT, &given.rows, "WHICH",
	  "of pairs: rows of items, users, or both (default)", "items" },
	{ "width", 'w', OPTION_COUNT, &given.width, "N", "floats in a row (default 16)", "64" },
	{ "workers", 'n', OPTION_COUNT, &given.workers, "N", "workers that push (default 8)",
	  "32" },
	{ "batch", 'b', OPTION_COUNT, &given.batch, "N",
	  "pairs or words that a worker takes for a push (default 1000)", "4096" },
	{ "sample", 0, OPTION_HOOK, &samples_hook, "PERCENT,...",
	  "samples in which hot rows are looked for (default 1,2,4,8)", "4" },
	{ "hot", 'k', OPTION_COUNT, &given.hot, "N",
	  "so many rows are hot (default: by --step and --growth)", "1000" },
	{ "step", 0, OPTION_COUNT, &given.step, "N",
	  "hot rows are added by so many floats (default 1000) ...", "100" },
	{ "growth", 0, OPTION_HOOK, &growth_hook, "PERCENT",
	  "... while they add this share of the updates (default 1)", "0.5" },
	{ "registers", 'm', OPTION_COUNT, &given.registers, "N",
	  "registers of the switch (default 32)", "48" },
	{ "packet", 0, OPTION_COUNT, &given.packet, "N",
	  "rows in a packet to the switch (default 16)", "32" },
	{ "payload", 0, OPTION_COUNT, &given.payload, "BYTES",
	  "payload of other aggregators' packets (default 1424)", "8192" },
	{ "no-caches", 0, OPTION_FLAG, &given.no_caches, NULL,
	  "the aggregator keeps no rows for workers that pull", NULL },
	{ "seed", 0, OPTION_COUNT, &given.seed, "N", "of random choices (default 1)", "7" },
	{ "json", 0, OPTION_JSON_FILE, &given.json, "FILE",
	  "write all figures as JSON; - is stdout", "hot.json" },
	{ "plot", 0, OPTION_TEXT, &given.plot, "FILE",
	  "draw them as SVG: FILE, FILE-sample and FILE-layout", "hot.svg" },
	{ 0 },
};

static const struct options options = {
	"trib sparse hot [OPTION]... FILE...",
	"Says which rows of a data set are hot: how many updates the hottest rows have, how\n"
	"many rows fit into an aggregator, what its server's link saves, how well a sample\n"
	"finds them, and how often packets go through a switch again. Files may be compressed\n"
	"with gzip or xz; - is standard input.",
	"trib sparse hot train.txt.xz\n"
	"  trib sparse hot --width 64 --workers 32 --json hot.json train.txt test.txt\n"
	"  trib sparse hot --format counts --plot hot.svg words.txt",
	option_rows,
};

static bool is_within(const char *name, uint64_t value, uint64_t least, uint64_t most, int *code)
{
	if (value >= least && value <= most)
		return true;
	*code = options_fail(&options, "--%s has to be from %llu to %llu", name,
	                     (unsigned long long)least, (unsigned long long)most);
	return false;
}

static bool rows_find(enum update_rows *rows)
{
	static const char *const names[] = {
		[UPDATES_BOTH] = "both", [UPDATES_ITEMS] = "items", [UPDATES_USERS] = "users"
	};

	*rows = UPDATES_BOTH;
	for (unsigned i = 0; given.rows && i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(given.rows, names[i])) {
			*rows = (enum update_rows)i;
			return true;
		}
	}
	return !given.rows;
}

static bool options_check(struct update_data *data, int *code)
{
	if (given.format && !update_format_find(given.format, &data->format)) {
		*code = options_fail(&options,
		                     "--format %s: there are auto, lists, pairs, text, counts",
		                     given.format);
		return false;
	}
	if (!rows_find(&data->rows)) {
		*code = options_fail(&options, "--rows %s: there are items, users, both",
		                     given.rows);
		return false;
	}
	return is_within("width", given.width, 1, 4096, code) &&
	       is_within("workers", given.workers, 1, 65535, code) &&
	       is_within("batch", given.batch, 1, 10000000, code) &&
	       is_within("registers", given.registers, 1, 65536, code) &&
	       is_within("packet", given.packet, 1, 65536, code) &&
	       is_within("step", given.step, 1, UINT32_MAX, code) &&
	       is_within("payload", given.payload, 64, 65536, code);
}

/* ---- the study ---- */

static void report_prepare(struct hot_report *report)
{
	struct hot_link *link = &report->link;

	report->width = (uint32_t)given.width;
	report->payload = (uint32_t)given.payload;
	report->has_caches = !given.no_caches;
	report->limits = HEAT_LIMITS_PAPER;
	/* Libra adds 1000 parameters at once, and a row has `width` of them. */
	report->limits.step = given.step < given.width ? 1 : given.step / given.width;
	report->limits.growth = given.growth / 100;
	if (given.hot) {
		report->limits.rows_max = given.hot;
		report->limits.growth = 0;
	}
	link->workers = (unsigned)given.workers;
	link->batch = (uint32_t)given.batch;
	link->n = HOT_MEMORIES;
	for (unsigned i = 0; i < HOT_MEMORIES; i++)
		link->rows[i] =
			layout_rows_fit(HOT_MEMORY_LEAST << i, report->payload, report->width,
		                        SPARSE_ONE_BANK | (report->has_caches ? SPARSE_VALUES : 0));
	report->samples_n = given.samples.n;
	for (unsigned i = 0; i < report->samples_n; i++) {
		report->samples[i].share = given.samples.shares[i];
		report->samples[i].limits = report->limits;
		report->group_samples[i] = report->samples[i];
		report->group_samples[i].by_group = true;
	}
	report->layout.layout.registers = (uint32_t)given.registers;
	report->layout.layout.room = (uint32_t)given.packet;
	report->layout.batch = (uint32_t)given.batch;
}

static trib_status report_fill(struct hot_report *report, const struct update_data *data)
{
	const struct hot_study *study = &report->study;
	trib_status status = hot_study_open(&report->study, data, given.seed);

	if (status != TRIB_OK)
		return status;
	report->pick = heat_pick(study->ranked, study->n, data->total, &report->limits);
	report->layout.rows = (uint32_t)report->pick.n;
	for (unsigned i = 0; status == TRIB_OK && i < report->samples_n; i++) {
		status = hot_study_sample(study, &report->samples[i]);
		if (status == TRIB_OK)
			status = hot_study_sample(study, &report->group_samples[i]);
	}
	if (status == TRIB_OK)
		status = hot_study_link(study, &report->link);
	if (status == TRIB_OK)
		status = hot_study_layout(study, &report->layout);
	return status;
}

static trib_status report_show(const struct hot_report *report)
{
	trib_status status = TRIB_OK;

	if (!given.json || strcmp(given.json, "-") != 0)
		hot_report_print(report);
	if (given.json)
		status = hot_report_json(report, given.json);
	if (status == TRIB_OK && given.plot)
		status = hot_report_plot(report, given.plot);
	return status;
}

static trib_status data_read(struct update_data *data, const char *const *files, unsigned n)
{
	trib_status status = output_try(given.json);

	if (status == TRIB_OK)
		status = output_try(given.plot);
	for (unsigned i = 0; status == TRIB_OK && i < n; i++)
		status = update_data_read(data, files[i]);
	if (status == TRIB_OK && !data->total)
		status = status_fail(TRIB_ERR_CONFIG, "%s has no updates", files[0]);
	return status;
}

int sparse_hot_command(int argc, char **argv)
{
	static struct hot_report report;
	struct update_data data = { 0 };
	const char *files[FILES_MAX];
	trib_status status;
	int code, n = options_parse_mixed(&options, argc, argv, files, FILES_MAX, &code);

	if (n == 0)
		return options_fail(&options, "say which file");
	if (n < 0 || !options_check(&data, &code))
		return code;
	report.source = files[0];
	report_prepare(&report);
	status = data_read(&data, files, (unsigned)n);
	if (status == TRIB_OK)
		status = report_fill(&report, &data);
	if (status == TRIB_OK)
		status = report_show(&report);
	if (status != TRIB_OK)
		fprintf(stderr, "trib sparse hot: %s\n", trib_last_error());
	hot_study_close(&report.study);
	update_data_free(&data);
	return status == TRIB_OK ? 0 : 1;
}
