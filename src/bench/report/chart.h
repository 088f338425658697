/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a chart as SVG: lines, each labelled at its end, or bars. */
#ifndef TRIB_BENCH_REPORT_CHART_H
#define TRIB_BENCH_REPORT_CHART_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define CHART_LINES_MAX 14u
#define CHART_POINTS_MAX 512u
#define CHART_DOTS_MAX 32u /* a line with more points has no dots */

struct chart_point {
	double x, y;
	double low, high; /* the spread, drawn if high is above low */
};

struct chart_line {
	const char *name;
	bool dashed;                                 /* for a limit, or for what would be ideal */
	struct chart_point points[CHART_POINTS_MAX]; /* from left to right */
	unsigned n;
};

struct chart {
	const char *title, *subtitle, *x_title, *y_title;
	const char *y_format; /* printf's for a label's number, "%.1f" */
	bool x_log;           /* in steps of two, labelled at the points of the first line */
	void (*x_text)(double x, char *text, size_t size); /* NULL: as a number */
	bool y_log;
	bool bars; /* draws the first point of each line as a bar; x is ignored */
	struct chart_line lines[CHART_LINES_MAX];
	unsigned n;
};

/* "load.svg" becomes "load-latency.svg", for benchmarks that draw several charts. */
void chart_path(char *out, size_t size, const char *path, const char *suffix);
trib_status chart_write(const struct chart *chart, const char *path);

#endif
