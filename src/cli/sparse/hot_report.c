/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sparse/hot_report.h"

#include "options/json_writer.h"
#include "sparse/data/update_text.h"

#include <inttypes.h>
#include <stdio.h>

#define BAR_WIDTH 50u

/* The words for a record and for its group. */
static bool is_pairs(const struct hot_report *report)
{
	enum update_format format = report->study.data->format;

	return format == UPDATES_LISTS || format == UPDATES_PAIRS;
}

static bool has_groups(const struct hot_report *report)
{
	return report->study.data->format != UPDATES_COUNTS;
}

/* ---- text ---- */

static void skew_line(const struct hot_report *report, size_t n)
{
	double share = hot_study_share(&report->study, n);
	unsigned full = (unsigned)(share * BAR_WIDTH + 0.5);

	printf("  %10zu  %6.2f %%  |", n, 100 * share);
	for (unsigned i = 0; i < BAR_WIDTH; i++)
		putchar(i < full ? '#' : ' ');
	printf("|\n");
}

static void skew_print(const struct hot_report *report)
{
	size_t n = report->study.n;

	printf("\nShare of the updates that the hottest rows have:\n");
	for (size_t k = 1; k < n; k *= 10) {
		skew_line(report, k);
		if (3 * k < n)
			skew_line(report, 3 * k);
	}
	skew_line(report, n);
}

static const char *reason_text(enum heat_reason reason)
{
	static const char *const texts[] = {
		[HEAT_ALL_KEYS] = "all rows",
		[HEAT_ENOUGH] = "enough for the share",
		[HEAT_TRADE_OFF] = "a further step adds too little: --step, --growth",
		[HEAT_NO_ROOM] = "as --hot says",
	};

	return texts[reason];
}

static void memory_print(const struct hot_report *report)
{
	const struct hot_link *link = &report->link;

	printf("\nWhat fits into an aggregator, and what its server's link saves with %u workers "
	       "and "
	       "batches of %u %s:\n",
	       link->workers, link->batch, is_pairs(report) ? "pairs" : "words");
	printf("  %10s  %10s  %14s  %14s\n", "memory", "hot rows", "their updates", "link saves");
	for (unsigned i = 0; i < link->n; i++)
		printf("  %6llu KiB  %10u  %12.2f %%  %12.2f %%\n", (HOT_MEMORY_LEAST << i) >> 10,
		       link->rows[i], 100 * hot_study_share(&report->study, link->rows[i]),
		       100 * (1 - hot_link_share(link, i)));
}

static void sample_print(const struct hot_sample *sample)
{
	const struct hot_found *found = &sample->found, *sure = &sample->sure;

	printf("  %6.4g %%  %10.0f  %8.2f %%  %8.2f %%  %10.0f  %8.2f %%  %8.2f %%\n",
	       100 * sample->share, found->n, 100 * hot_precision(sample), 100 * hot_updates(found),
	       sure->n, 100 * hot_right(sure), 100 * hot_updates(sure));
}

static void samples_print(const struct hot_report *report)
{
	const char *record = is_pairs(report) ? "pairs" : "words";
	const char *group = is_pairs(report) ? "users" : "lines";

	if (!report->samples_n)
		return;
	printf("\nHot rows found in a sample, means of %u samples. Precision is Libra's: of the "
	       "%zu\n"
	       "rows that are hot by all data, how many were found. Sure are rows whose count is\n"
	       "clearly above the last one's: how many of them are hot. Updates: those of the "
	       "best\n"
	       "list of the same length are 100 %%.\n",
	       HOT_DRAWS, report->samples[0].hot);
	printf("  %8s  %10s  %10s  %10s  %10s  %10s  %10s\n", record, "found", "precision",
	       "updates", "sure", "precision", "updates");
	for (unsigned i = 0; i < report->samples_n; i++)
		sample_print(&report->samples[i]);
	if (!has_groups(report))
		return;
	printf("  %8s\n", group);
	for (unsigned i = 0; i < report->samples_n; i++)
		sample_print(&report->group_samples[i]);
}

static void layout_print(const struct hot_report *report)
{
	const struct hot_layout *l = &report->layout;

	printf("\nRecirculations a packet at a switch with %u registers, %u rows a packet, %u hot "
	       "rows:\n",
	       l->layout.registers, l->layout.room, l->rows);
	printf("  %-14s  %14s  %14s\n", "registers", "by Algorithm 1", "rows in order");
	printf("  %-14s  %14.3f  %14.3f\n", "by heat", hot_per_packet(&l->heat),
	       hot_per_packet(&l->heat_in_order));
	printf("  %-14s  %14.3f  %14.3f\n", "random", hot_per_packet(&l->random),
	       hot_per_packet(&l->random_in_order));
}

void hot_report_print(const struct hot_report *report)
{
	const struct update_data *data = report->study.data;

	printf("%s (%s): %" PRIu64 " lines, ", report->source, update_format_name(data->format),
	       data->lines);
	if (data->records)
		printf("%zu %s, ", data->records, is_pairs(report) ? "pairs" : "words");
	printf("%zu rows, %" PRIu64 " updates\n", report->study.n, data->total);
	skew_print(report);
	printf("\nHot: %zu rows with %.2f %% of the updates (%s)\n", report->pick.n,
	       100 * report->pick.share, reason_text(report->pick.reason));
	memory_print(report);
	samples_print(report);
	layout_print(report);
}

/* ---- JSON ---- */

static void skew_put(struct json_writer *json, const struct hot_report *report)
{
	json_open_list(json, "skew");
	for (size_t k = 1;; k *= 2) {
		size_t n = k < report->study.n ? k : report->study.n;

		json_open_object(json, NULL);
		json_put_count(json, "rows", n);
		json_put_number(json, "share", "%.6f", hot_study_share(&report->study, n));
		json_close(json);
		if (n == report->study.n)
			break;
	}
	json_close(json);
}

static void memory_put(struct json_writer *json, const struct hot_report *report)
{
	const struct hot_link *link = &report->link;

	json_open_list(json, "memory");
	for (unsigned i = 0; i < link->n; i++) {
		json_open_object(json, NULL);
		json_put_count(json, "bytes", HOT_MEMORY_LEAST << i);
		json_put_count(json, "rows", link->rows[i]);
		json_put_number(json, "share", "%.6f",
		                hot_study_share(&report->study, link->rows[i]));
		json_put_number(json, "link_saves", "%.6f", 1 - hot_link_share(link, i));
		json_close(json);
	}
	json_close(json);
}

static void found_put(struct json_writer *json, const char *name, const struct hot_found *found)
{
	json_open_object(json, name);
	json_put_number(json, "rows", "%.1f", found->n);
	json_put_number(json, "right", "%.1f", found->right);
	json_put_number(json, "share", "%.6f", found->share);
	json_put_number(json, "best_share", "%.6f", found->best);
	json_close(json);
}

static void sample_put(struct json_writer *json, const struct hot_sample *sample)
{
	json_open_object(json, NULL);
	json_put_number(json, "sample", "%.6g", sample->share);
	json_put_text(json, "by", sample->by_group ? "group" : "record");
	json_put_count(json, "hot", sample->hot);
	json_put_number(json, "precision", "%.6f", hot_precision(sample));
	json_put_number(json, "sure_precision", "%.6f", hot_right(&sample->sure));
	found_put(json, "found", &sample->found);
	found_put(json, "sure", &sample->sure);
	json_close(json);
}

static void packing_put(struct json_writer *json, const char *registers, const char *packing,
                        const struct hot_packing *result)
{
	json_open_object(json, NULL);
	json_put_text(json, "registers", registers);
	json_put_text(json, "packing", packing);
	json_put_count(json, "packets", result->packets);
	json_put_count(json, "recirculations", result->recirculations);
	json_put_number(json, "per_packet", "%.6f", hot_per_packet(result));
	json_close(json);
}

static void layout_put(struct json_writer *json, const struct hot_layout *layout)
{
	json_open_object(json, "layout");
	json_put_count(json, "registers", layout->layout.registers);
	json_put_count(json, "packet", layout->layout.room);
	json_put_count(json, "rows", layout->rows);
	json_put_count(json, "batch", layout->batch);
	json_open_list(json, "recirculations");
	packing_put(json, "heat", "algorithm 1", &layout->heat);
	packing_put(json, "heat", "in order", &layout->heat_in_order);
	packing_put(json, "random", "algorithm 1", &layout->random);
	packing_put(json, "random", "in order", &layout->random_in_order);
	json_close(json);
	json_close(json);
}

trib_status hot_report_json(const struct hot_report *report, const char *path)
{
	const struct update_data *data = report->study.data;
	struct json_writer json;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "file", report->source);
	json_put_text(&json, "format", update_format_name(data->format));
	json_put_count(&json, "lines", data->lines);
	json_put_count(&json, "records", data->records);
	json_put_count(&json, "rows", report->study.n);
	json_put_count(&json, "updates", data->total);
	json_put_count(&json, "width", report->width);
	json_put_count(&json, "payload", report->payload);
	json_put_bool(&json, "caches", report->has_caches);
	json_put_count(&json, "workers", report->link.workers);
	json_put_count(&json, "batch", report->link.batch);
	json_put_count(&json, "hot_rows", report->pick.n);
	json_put_number(&json, "hot_share", "%.6f", report->pick.share);
	skew_put(&json, report);
	memory_put(&json, report);
	json_open_list(&json, "samples");
	for (unsigned i = 0; i < report->samples_n; i++) {
		sample_put(&json, &report->samples[i]);
		if (has_groups(report))
			sample_put(&json, &report->group_samples[i]);
	}
	json_close(&json);
	layout_put(&json, &report->layout);
	return json_finish(&json, path);
}
