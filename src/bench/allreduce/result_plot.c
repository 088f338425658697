/* SPDX-License-Identifier: Apache-2.0 */
/* Draws bandwidth over size: a line for each system, and the limit of the links. */
#include "bench/allreduce/bench_allreduce.h"
#include "bench/report/chart.h"
#include "bench/bed/size_list.h"

#include <stdio.h>
#include <string.h>

_Static_assert(BENCH_SYSTEMS_MAX + 2 <= CHART_LINES_MAX && BENCH_SIZES_MAX <= CHART_POINTS_MAX,
               "all systems and the limits are in one chart");

#define SUBTITLE_MAX 110u /* longer names would leave the picture */

static double limit_gbps(const struct bench_result *result)
{
	return result->limit_s > 0 ? (double)result->bytes * 8 / result->limit_s / 1e9 : 0;
}

static struct chart_line *line_new(struct chart *chart, const char *name, bool dashed)
{
	struct chart_line *line = &chart->lines[chart->n];

	*line = (struct chart_line){ .name = name, .dashed = dashed };
	return line;
}

static void point_add(struct chart_line *line, const struct bench_result *result, double gbps)
{
	line->points[line->n++] = (struct chart_point){ .x = (double)result->bytes, .y = gbps };
}

static void system_add(struct chart *chart, const struct bench_report *report, unsigned system)
{
	struct chart_line *line = line_new(chart, report->systems[system]->name, false);

	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (r->system == report->systems[system] && r->stats.repeats)
			point_add(line, r, bench_gbps(r));
	}
	chart->n += line->n > 0;
}

/* All systems of a kind have the same limit: the limit of the first is drawn. */
static void limit_add(struct chart *chart, const struct bench_report *report, bool aggregates,
                      const char *name)
{
	struct chart_line *line = line_new(chart, name, true);
	const struct bench_system *system = NULL;

	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (r->system->aggregates != aggregates || limit_gbps(r) == 0 ||
		    (system && r->system != system))
			continue;
		system = r->system;
		point_add(line, r, limit_gbps(r));
	}
	chart->n += line->n > 0;
}

trib_status bench_plot_write(const void *context, const char *path)
{
	const struct bench_report *report = context;
	static struct chart chart;
	char place[256];
	static const char *const titles[] = { [BENCH_ALLREDUCE] = "Allreduce bandwidth",
		                              [BENCH_REDUCE_SCATTER] = "Reduce-scatter bandwidth",
		                              [BENCH_ALLGATHER] = "Allgather bandwidth" };

	snprintf(place, sizeof(place), "%s", report->where);
	if (strlen(place) > SUBTITLE_MAX) /* the table has the reason */
		place[strcspn(place, ":")] = '\0';
	chart = (struct chart){ .title = titles[report->options->collective],
		                .subtitle = place,
		                .x_title = "bytes of the vector",
		                .y_title = "Gb/s (size / median time)",
		                .y_format = "%.3g",
		                .x_log = true,
		                .x_text = bench_bytes_label };
	for (unsigned system = 0; system < report->n_systems; system++)
		system_add(&chart, report, system);
	limit_add(&chart, report, true, "limit of aggregation");
	limit_add(&chart, report, false, "limit of a ring");
	return chart_write(&chart, path);
}
