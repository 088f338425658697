/* SPDX-License-Identifier: Apache-2.0 */
/* Draws updates a second over workers, over loss, or over time: a line for each system. */
#include "bench/report/chart.h"
#include "bench/sparse/push_bench.h"

#include <math.h>
#include <stdio.h>

_Static_assert(PUSH_SYSTEMS_MAX <= CHART_LINES_MAX && PUSH_ITERATIONS_MAX <= CHART_POINTS_MAX,
               "all systems are in one chart");

enum axis { BY_WORKERS, BY_LOSS, BY_TIME };

static const char *const axis_titles[] = { "workers", "lost packets, %", "seconds" };

static enum axis axis_choose(const struct push_options *o)
{
	return o->drift ? BY_TIME : o->n_losses > 1 ? BY_LOSS : BY_WORKERS;
}

static void curve_add(struct chart_line *line, const struct push_report *report, unsigned row)
{
	const struct push_curve *curve = &report->told[row].curve;
	double updates = push_updates(report, row), at = 0;

	for (unsigned i = 0; i < curve->n; i++) {
		at += curve->seconds[i];
		line->points[line->n++] =
			(struct chart_point){ .x = at, .y = updates / curve->seconds[i] };
	}
}

/* `place`: with these workers; along the workers themselves, NULL. */
static void system_add(struct chart *chart, const struct push_report *report, unsigned system,
                       unsigned workers, enum axis axis)
{
	static char labels[PUSH_SYSTEMS_MAX][48];
	struct chart_line *line = &chart->lines[chart->n];

	snprintf(labels[system], sizeof(labels[system]), "%s %s", report->systems[system].name,
	         report->systems[system].plane);
	*line = (struct chart_line){ .name = labels[system] };
	for (unsigned i = 0; i < report->n; i++) {
		const struct push_case *row = &report->cases[i];
		double rate = push_rate(report, i);

		if (row->of != &report->systems[system] || isnan(rate) ||
		    (axis != BY_WORKERS && row->place->workers != workers))
			continue;
		if (axis == BY_TIME)
			curve_add(line, report, i);
		else
			line->points[line->n++] = (struct chart_point){
				.x = axis == BY_LOSS ? 100 * row->loss : row->place->workers,
				.y = rate,
			};
	}
	chart->n += line->n > 0;
}

static trib_status chart_make(const struct push_report *report, unsigned workers, enum axis axis,
                              const char *path)
{
	static struct chart chart;
	char where[256], subtitle[320];

	bench_place_describe(&report->beds[0], where, sizeof(where));
	if (axis == BY_WORKERS)
		snprintf(subtitle, sizeof(subtitle), "up to %s", where);
	else
		snprintf(subtitle, sizeof(subtitle), "%u of %s", workers, where);
	chart = (struct chart){ .title = "Updates of rows a second",
		                .subtitle = subtitle,
		                .x_title = axis_titles[axis],
		                .y_title = "updates a second, all workers",
		                .y_format = "%.3g",
		                .x_log = axis == BY_WORKERS };
	for (unsigned system = 0; system < report->n_systems; system++)
		system_add(&chart, report, system, workers, axis);
	return chart_write(&chart, path);
}

trib_status push_plot_write(const void *context, const char *path)
{
	const struct push_report *report = context;
	const struct push_options *o = report->options;
	enum axis axis = axis_choose(o);
	trib_status status = TRIB_OK;
	char own[4096], suffix[32];

	if (axis == BY_WORKERS)
		return chart_make(report, 0, axis, path);
	for (unsigned w = 0; w < o->n_workers && status == TRIB_OK; w++) {
		snprintf(suffix, sizeof(suffix), "-%u", (unsigned)o->workers[w]);
		chart_path(own, sizeof(own), path, o->n_workers > 1 ? suffix : "");
		status = chart_make(report, (unsigned)o->workers[w], axis, own);
	}
	return status;
}
