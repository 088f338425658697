/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/chart.h"
#include "cli/sparse/hot_report.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_ROOM 4096

static struct chart_line *line_add(struct chart *chart, const char *name)
{
	struct chart_line *line = &chart->lines[chart->n++];

	line->name = name;
	return line;
}

static void point_add(struct chart_line *line, double x, double y)
{
	if (line->n < CHART_POINTS_MAX)
		line->points[line->n++] = (struct chart_point){ x, y, y, y };
}

static void rows_text(double x, char *text, size_t size)
{
	if (x >= 1 << 20)
		snprintf(text, size, "%.0fM", x / (1 << 20));
	else if (x >= 1 << 10)
		snprintf(text, size, "%.0fK", x / (1 << 10));
	else
		snprintf(text, size, "%.0f", x);
}

static void skew_fill(struct chart *chart, const struct hot_report *report)
{
	struct chart_line *line = line_add(chart, "share");
	size_t k;

	chart->title = "Share of updates of the hottest rows";
	chart->x_title = "hottest rows";
	chart->y_title = "share of all updates, %";
	chart->y_format = "%.0f";
	chart->x_log = true;
	chart->x_text = rows_text;
	for (k = 1; k < report->study.n; k *= 2)
		point_add(line, (double)k, 100 * hot_study_share(&report->study, k));
	point_add(line, (double)k, 100);
}

static void samples_fill(struct chart *chart, const struct hot_report *report)
{
	struct chart_line *precision = line_add(chart, "hot rows that were found");
	struct chart_line *sure = line_add(chart, "sure rows that are hot");
	struct chart_line *updates = line_add(chart, "updates, of the best");
	struct chart_line *whole = NULL;

	chart->title = "Hot rows that a sample finds";
	chart->x_title = "sample, % of the data";
	chart->y_title = "%";
	chart->y_format = "%.0f";
	if (report->study.data->format != UPDATES_COUNTS)
		whole = line_add(chart, "found in whole lines or users");
	for (unsigned i = 0; i < report->samples_n; i++) {
		const struct hot_sample *sample = &report->samples[i];
		double x = 100 * sample->share;

		point_add(precision, x, 100 * hot_precision(sample));
		point_add(sure, x, 100 * hot_right(&sample->sure));
		point_add(updates, x, 100 * hot_updates(&sample->found));
		if (whole)
			point_add(whole, x, 100 * hot_precision(&report->group_samples[i]));
	}
}

static void layout_fill(struct chart *chart, const struct hot_report *report)
{
	const struct hot_layout *layout = &report->layout;

	chart->title = "Recirculations a packet";
	chart->x_title = "place of a row, and how packets are filled";
	chart->y_title = "recirculations";
	chart->y_format = "%.2f";
	chart->bars = true;
	point_add(line_add(chart, "heat, Alg. 1"), 0, hot_per_packet(&layout->heat));
	point_add(line_add(chart, "heat, in order"), 0, hot_per_packet(&layout->heat_in_order));
	point_add(line_add(chart, "random, Alg. 1"), 0, hot_per_packet(&layout->random));
	point_add(line_add(chart, "random, in order"), 0, hot_per_packet(&layout->random_in_order));
}

static trib_status chart_draw(const struct hot_report *report, const char *path,
                              void (*fill)(struct chart *, const struct hot_report *))
{
	struct chart *chart = calloc(1, sizeof(*chart));
	trib_status status;

	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	chart->subtitle = report->source;
	fill(chart, report);
	status = chart_write(chart, path);
	free(chart);
	return status;
}

trib_status hot_report_plot(const struct hot_report *report, const char *path)
{
	char other[PATH_ROOM];
	trib_status status = chart_draw(report, path, skew_fill);

	chart_path(other, sizeof(other), path, "-sample");
	if (status == TRIB_OK && report->samples_n)
		status = chart_draw(report, other, samples_fill);
	chart_path(other, sizeof(other), path, "-layout");
	return status == TRIB_OK ? chart_draw(report, other, layout_fill) : status;
}
