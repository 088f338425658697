/* SPDX-License-Identifier: Apache-2.0 */
/* Draws latency over the size or over the number of hosts: a line for each system. */
#include "bench/latency/bench_latency.h"
#include "bench/bed/size_list.h"
#include "bench/report/chart.h"

#include <stdio.h>

_Static_assert(LATENCY_SYSTEMS_MAX <= CHART_LINES_MAX && BENCH_SIZES_MAX <= CHART_POINTS_MAX,
               "all systems are in one chart");

/* `place`: results of this number of hosts, over the size; NULL: all, over the hosts. */
static void system_add(struct chart *chart, const struct latency_report *report, unsigned system,
                       const struct bench_place *place)
{
	struct chart_line *line = &chart->lines[chart->n];

	*line = (struct chart_line){ .name = report->systems[system].name,
		                     .dashed = report->systems[system].alone };
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];
		const struct bench_quantiles *figures = &r->stats.of_runs;

		if (r->system->name != line->name || !r->stats.repeats ||
		    (place && r->place != place))
			continue;
		line->points[line->n++] =
			(struct chart_point){ .x = place ? (double)r->bytes : r->place->workers,
			                      .y = figures->median * 1e6,
			                      .low = figures->p1 * 1e6,
			                      .high = figures->p99 * 1e6 };
	}
	chart->n += line->n > 0;
}

static trib_status chart_make(const struct latency_report *report, const struct bench_place *place,
                              const char *path)
{
	const struct bench_options *o = &report->options->bench;
	static struct chart chart;
	char where[256], subtitle[320], size[24];

	bench_place_describe(place ? place : &report->bed, where, sizeof(where));
	if (place)
		snprintf(subtitle, sizeof(subtitle), "%s", where);
	else
		snprintf(subtitle, sizeof(subtitle), "%s bytes; up to %s",
		         bench_bytes_text(o->sizes[0], size), where);
	chart = (struct chart){ .title = o->many > 1 ? "Allreduce latency, many at once"
		                                     : "Allreduce latency",
		                .subtitle = subtitle,
		                .x_title = place ? "bytes of the vector" : "hosts",
		                .y_title = "microseconds (median; bars: p1 to p99)",
		                .y_format = "%.3g",
		                .x_log = true,
		                .y_log = true,
		                .x_text = place ? bench_bytes_label : NULL };
	for (unsigned system = 0; system < report->n_systems; system++)
		system_add(&chart, report, system, place);
	return chart_write(&chart, path);
}

trib_status latency_plot_write(const void *context, const char *path)
{
	const struct latency_report *report = context;
	unsigned n = report->options->n_hosts;
	trib_status status = TRIB_OK;
	char own[4096], suffix[32];

	if (report->options->bench.n_sizes == 1)
		return chart_make(report, n == 1 ? &report->places[0] : NULL, path);
	for (unsigned h = 0; h < n && status == TRIB_OK; h++) {
		snprintf(suffix, sizeof(suffix), "-%u", report->places[h].workers);
		chart_path(own, sizeof(own), path, n > 1 ? suffix : "");
		status = chart_make(report, &report->places[h], own);
	}
	return status;
}
