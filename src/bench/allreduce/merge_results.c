/* SPDX-License-Identifier: Apache-2.0 */
/* trib bench plot: one table and one plot of results that were saved with --json. */
#include "bench/allreduce/bench_allreduce.h"
#include "bench/allreduce/saved_results.h"
#include "options/options.h"
#include "options/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SAVED_ROWS_MAX == BENCH_SIZES_MAX * BENCH_SYSTEMS_MAX, "all rows of a report");

struct file {
	struct file *next; /* the file before this one */
	const char *path;
	char *text; /* `saved` points into it */
	struct bench_saved saved;
};

struct merge {
	struct bench_options options;
	struct bench_place place;
	struct bench_report report;
	struct bench_variant variants[SAVED_ROWS_MAX]; /* one a result */
	const char *paths[SAVED_ROWS_MAX];             /* the file of each result */
	const struct file *first;
	struct file *last;
};

/* Appends the text to a list that is separated by commas, unless it is there already. */
static void list_add(char *list, size_t room, const char *text)
{
	size_t used = strlen(list), length = strlen(text);

	for (const char *at = list; length && (at = strstr(at, text)); at += length)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ','))
			return;
	if (length)
		snprintf(list + used, room - used, "%s%s", used ? ", " : "", text);
}

/* NULL: the row does not fit into the table, and the error says why. */
static const struct bench_system *system_take(struct bench_report *report, const char *path,
                                              const struct saved_row *row)
{
	const struct bench_system *known =
		bench_system_find(row->system, strcspn(row->system, "@"));
	struct bench_system *chosen = &report->chosen[report->n_systems];

	for (unsigned i = 0; i < report->n_systems; i++) {
		const struct bench_system *other = report->systems[i];

		if (strcmp(other->name, row->system) != 0)
			continue;
		if (strcmp(other->plane, row->plane) == 0)
			return other;
		status_fail(TRIB_ERR_CONFIG,
		            "%s: %s is on plane %s, but on plane %s in a file before", path,
		            row->system, row->plane, other->plane);
		return NULL;
	}
	if (!known || report->n_systems == BENCH_SYSTEMS_MAX) {
		status_fail(TRIB_ERR_CONFIG,
		            known ? "%s: with %s there are more than %d systems"
		                  : "%s: %s is no system that is known here",
		            path, row->system, BENCH_SYSTEMS_MAX);
		return NULL;
	}
	*chosen = *known;
	chosen->name = strcpy(report->names[report->n_systems], row->system);
	chosen->plane = row->plane;
	return report->systems[report->n_systems++] = chosen;
}

/*
 * Every file has Tributary's rows. If several files have the same row, the first one is shown,
 * and a message says so.
 */
static bool is_there(const struct merge *merge, const char *path, const struct bench_system *system,
                     uint64_t bytes)
{
	const struct bench_report *report = &merge->report;

	for (unsigned i = 0; i < report->n; i++) {
		if (report->results[i].system != system || report->results[i].bytes != bytes)
			continue;
		fprintf(stderr,
		        "trib bench plot: %s with %llu bytes is in %s and in %s: the first is "
		        "shown\n",
		        system->name, (unsigned long long)bytes, merge->paths[i], path);
		return true;
	}
	return false;
}

static trib_status size_check(const struct bench_report *report, const char *path, uint64_t bytes)
{
	unsigned sizes = 1;

	for (unsigned i = 0; i < report->n; i++) {
		bool seen = report->results[i].bytes == bytes;

		for (unsigned k = 0; k < i && !seen; k++)
			seen = report->results[k].bytes == report->results[i].bytes;
		sizes += !seen;
	}
	return sizes <= BENCH_SIZES_MAX
	               ? TRIB_OK
	               : status_fail(TRIB_ERR_CONFIG,
	                             "%s: with %llu bytes there are more than %d sizes", path,
	                             (unsigned long long)bytes, BENCH_SIZES_MAX);
}

static struct bench_range range_of(const struct saved_row *row, double median, double least,
                                   double most)
{
	return (struct bench_range){ median > 0 ? (unsigned)row->repeats : 0, median, least, most };
}

static trib_status row_add(struct merge *merge, const char *path, const struct saved_row *row)
{
	struct bench_report *report = &merge->report;
	uint64_t bytes = (uint64_t)row->bytes;
	struct bench_result *result = &report->results[report->n];
	const struct bench_system *system = system_take(report, path, row);

	if (!system || size_check(report, path, bytes) != TRIB_OK)
		return TRIB_ERR_CONFIG;
	if (is_there(merge, path, system, bytes))
		return TRIB_OK;
	merge->variants[report->n].name = row->algorithm;
	merge->paths[report->n] = path;
	*result = (struct bench_result){
		.system = system,
		.variant = &merge->variants[report->n],
		.place = report->place,
		.bytes = bytes,
		.limit_s = row->limit_s,
		.stats = { .repeats = (unsigned)row->repeats,
		           .min = row->min_s,
		           .median = row->median_s,
		           .p99 = row->p99_s,
		           .spread = row->spread },
		.cpu_s = row->cpu_s,
		.added_gb = range_of(row, row->gb_per_cpu_s, row->gb_per_cpu_s_min,
		                     row->gb_per_cpu_s_max),
		/* The file has shares only, so the number of packets does not matter. */
		.packets = { .fragments = 1 + row->fragments_again,
		             .fragments_again = row->fragments_again,
		             .results_again = row->results_again /
		                              (merge->options.to_one ? merge->place.workers : 1) },
		.failed = (unsigned)row->failed,
		.runs = (unsigned)(row->repeats + row->failed),
	};
	/*
	 * The table compares CPU time with the first system's: other files may have another
	 * first system.
	 */
	if (strcmp(merge->last->saved.rows[0].system, report->systems[0]->name) == 0)
		result->cpu_times =
			range_of(row, row->cpu_times, row->cpu_times_min, row->cpu_times_max);
	snprintf(result->note, sizeof(result->note), "%s", row->note);
	report->n++;
	return TRIB_OK;
}

/* What the table says of all rows; all files must agree. */
static trib_status settings_take(struct merge *merge, const struct file *file)
{
	struct bench_report *report = &merge->report;
	const struct bench_saved *saved = &file->saved;
	const char *unlike = merge->first ? saved_unlike(&merge->first->saved, saved) : NULL;
	char times[sizeof(report->times)];

	if (unlike)
		return status_fail(
			TRIB_ERR_CONFIG,
			"%s: \"%s\" is not the same as in %s, so they cannot share a table",
			file->path, unlike, merge->first->path);
	snprintf(times, sizeof(times), "%.0f x %.0f", saved->repeats, saved->iterations);
	list_add(report->times, sizeof(report->times), times);
	list_add(report->left_out, sizeof(report->left_out), saved->left_out);
	if (merge->first)
		return TRIB_OK;
	merge->first = file;
	snprintf(report->where, sizeof(report->where), "%s", saved->place);
	merge->options.to_one = strcmp(saved->collective, "reduce") == 0;
	while (merge->options.collective < BENCH_COLLECTIVES &&
	       strcmp(saved->collective, bench_collective_name(merge->options.collective)) != 0)
		merge->options.collective++;
	merge->options.collective %= BENCH_COLLECTIVES;
	merge->options.type = saved->type[0] ? saved->type : "f32";
	merge->options.net.faults[FAULT_LOSS] = saved->loss;
	merge->options.net.faults[FAULT_DUP] = saved->dup;
	merge->options.net.faults[FAULT_REORDER] = saved->reorder;
	merge->options.net.faults[FAULT_CORRUPT] = saved->corrupt;
	merge->options.n_cores = saved->own_cores.bytes > 0;
	merge->options.busy = saved->busy;
	merge->options.nic = saved->nic.bytes && *saved->nic.at == 't';
	merge->place.workers = (unsigned)saved->hosts;
	merge->place.cluster.is_switch = saved->is_switch.bytes && *saved->is_switch.at == 't';
	return TRIB_OK;
}

static trib_status file_add(struct merge *merge, const char *path)
{
	struct file *file = calloc(1, sizeof(*file));
	trib_status status;

	if (!file)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for it", path);
	file->next = merge->last;
	file->path = path;
	merge->last = file; /* the file stays open: the report points into its text */
	if ((status = text_read(path, &file->text)) != TRIB_OK)
		return status;
	if ((status = saved_read(&file->saved, file->text)) != TRIB_OK)
		return text_fail(status, path);
	status = settings_take(merge, file);
	for (unsigned i = 0; status == TRIB_OK && i < file->saved.n; i++)
		status = row_add(merge, path, &file->saved.rows[i]);
	return status;
}

static void files_free(struct merge *merge)
{
	while (merge->last) {
		struct file *file = merge->last;

		merge->last = file->next;
		free(file->text);
		free(file);
	}
}

/* Orders by size, then by system as they came. */
static int result_compare(const void *a, const void *b)
{
	const struct bench_result *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->system > y->system) - (x->system < y->system);
}

int bench_merge_run(int argc, char **argv)
{
	static struct merge merge;
	const struct option_row rows[] = {
		{ "plot", 0, OPTION_TEXT, &merge.options.plot, "FILE",
		  "draw the results to FILE as SVG", "all.svg" },
		{ 0 },
	};
	const struct options options = {
		"trib bench plot [OPTION]... FILE...",
		"Prints one table, and draws one plot, of files that trib bench allreduce --json "
		"has\n"
		"written (-: standard input). All files must be of the same hosts and links. "
		"Other\n"
		"systems are compared with the first system of the first file. If several files "
		"have the\n"
		"same row, the first one is shown.",
		"trib bench plot --plot all.svg small.json large.json",
		rows,
	};
	int code, first = options_parse(&options, argc, argv, &code);
	trib_status status = TRIB_OK;

	if (first < 0)
		return code;
	if (first == argc)
		return options_fail(&options, "at least one file is needed");
	merge.report.options = &merge.options;
	merge.report.place = &merge.place;
	for (int i = first; i < argc && status == TRIB_OK; i++)
		status = file_add(&merge, argv[i]);
	if (status == TRIB_OK) {
		qsort(merge.report.results, merge.report.n, sizeof(merge.report.results[0]),
		      result_compare);
		bench_table_print(&merge.report);
		if (merge.options.plot)
			status = bench_plot_write(&merge.report, merge.options.plot);
	}
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench plot: %s\n", trib_last_error());
	files_free(&merge);
	return status == TRIB_OK ? 0 : 1;
}
