/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of each mode. */
#include "bench/plane/bench_plane.h"
#include "bench/report/chart.h"

#include <stdio.h>
#include <string.h>

struct picture {
	const char *suffix; /* added to the file's name, if a mode has several charts */
	const char *title, *y_title, *y_format;
	size_t value; /* offset of a plane_value in a row */
	double factor;
	bool y_log;
};

#define VALUE(name) offsetof(struct plane_row, name)

static const struct picture load_pictures[] = {
	{ "", "Use of the aggregator's core", "% of a core", "%.0f", VALUE(busy), 100, false },
	{ "-latency", "From a fragment's last packet to its sum: median", "microseconds", "%.0f",
	  VALUE(latency_50), 1e6, true },
	{ "-p99", "From a fragment's last packet to its sum: 99 of 100", "microseconds", "%.0f",
	  VALUE(latency_99), 1e6, true },
	{ "-loss", "Fragments that got no sum", "%", "%.3f", VALUE(lost), 100, false },
};
static const struct picture cores_picture = {
	"", "What an aggregator takes", "Gb/s", "%.1f", VALUE(gbps), 1, false
};
static const struct picture cost_picture = {
	"", "What a CPU-second adds", "Gb a CPU-second", "%.1f", VALUE(cost), 1, false
};

static const struct plane_value *value_at(const struct plane_row *row,
                                          const struct picture *picture)
{
	return (const void *)((const char *)row + picture->value);
}

static void point_add(struct chart_line *line, const struct picture *picture,
                      const struct plane_row *row, double x)
{
	const struct plane_value *value = value_at(row, picture);

	if (line->n < CHART_POINTS_MAX)
		line->points[line->n++] = (struct chart_point){ x, value->median * picture->factor,
			                                        value->low * picture->factor,
			                                        value->high * picture->factor };
}

/* Ideal scaling: the first plane's rate on one core, times the number of cores. */
static void ideal_add(struct chart *chart)
{
	const struct chart_line *one = &chart->lines[0];
	struct chart_line *ideal = &chart->lines[chart->n];

	if (!one->n || one->n < 2)
		return;
	*ideal = (struct chart_line){ .name = "linear", .dashed = true };
	for (unsigned i = 0; i < one->n; i++)
		ideal->points[ideal->n++] =
			(struct chart_point){ .x = one->points[i].x,
			                      .y = one->points[0].y * one->points[i].x /
			                           one->points[0].x };
	chart->n++;
}

static trib_status draw(const struct plane_report *report, const struct picture *picture,
                        const char *path)
{
	const struct plane_options *o = report->options;
	bool is_load = o->mode == PLANE_LOAD;
	bool bars = o->mode == PLANE_THROUGHPUT && o->n_cores == 1;
	static struct chart chart;
	char about[200];

	snprintf(about, sizeof(about), "%u children, %u f32 a packet, %s", (unsigned)o->children,
	         (unsigned)o->elements,
	         o->offload ? "offloads on"
	         : o->gro   ? "packets cross singly, receiver joins them"
	                    : "packets cross singly");
	chart = (struct chart){ .title = picture->title,
		                .subtitle = about,
		                .x_title = is_load ? "payload offered, Gb/s"
		                                   : "cores of the aggregator",
		                .y_title = picture->y_title,
		                .y_format = picture->y_format,
		                .x_log = !is_load,
		                .bars = bars,
		                .y_log = picture->y_log };
	for (unsigned p = 0; p < o->n_planes; p++) {
		struct chart_line *line = &chart.lines[chart.n++];

		line->name = o->planes[p];
		for (unsigned i = 0; i < report->n; i++) {
			const struct plane_row *row = &report->rows[i];
			double gbps = row->offered * (double)(o->children * o->elements) * 32e-9;

			if (!row->n || strcmp(row->plane, line->name) != 0)
				continue;
			if (!is_load)
				point_add(line, picture, row, row->cores);
			else if (row->share > 0 ||
			         (row->share == 0 && picture->value == VALUE(busy)))
				point_add(line, picture, row, row->share > 0 ? gbps : 0);
		}
	}
	if (o->mode == PLANE_CORES)
		ideal_add(&chart);
	return chart_write(&chart, path);
}

trib_status bench_plane_plot(const struct plane_report *report, const char *path)
{
	trib_status status = TRIB_OK;
	char one[4096];

	if (report->options->mode == PLANE_CORES)
		return draw(report, &cores_picture, path);
	if (report->options->mode == PLANE_THROUGHPUT)
		return draw(report, &cost_picture, path);
	for (size_t i = 0; i < sizeof(load_pictures) / sizeof(*load_pictures) && status == TRIB_OK;
	     i++) {
		chart_path(one, sizeof(one), path, load_pictures[i].suffix);
		status = draw(report, &load_pictures[i], one);
	}
	return status;
}
