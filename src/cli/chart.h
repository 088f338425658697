/* SPDX-License-Identifier: Apache-2.0 */
/* A chart as an SVG: lines, each labelled where it ends, or bars. Knows nothing of what it shows.
 */
#ifndef TRIB_CLI_CHART_H
#define TRIB_CLI_CHART_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define CHART_LINES_MAX 14u
#define CHART_POINTS_MAX 512u
#define CHART_DOTS_MAX 32u /* a line with more points is only a line */

struct chart_point {
	double x, y;
	double low, high; /* the spread, drawn where high is above low */
};

struct chart_line {
	const char *name;
	bool dashed;                                 /* a limit, or what would be ideal */
	struct chart_point points[CHART_POINTS_MAX]; /* from left to right */
	unsigned n;
};

struct chart {
	const char *title, *subtitle, *x_title, *y_title;
	const char *y_format; /* of the label's number, "%.1f" */
	bool x_log;           /* in steps of two, labelled at the points of the first line */
	void (*x_text)(double x, char *text, size_t size); /* NULL: as a number */
	bool y_log;
	bool bars; /* the first point of each line as a bar; x does not matter */
	struct chart_line lines[CHART_LINES_MAX];
	unsigned n;
};

trib_status chart_write(const struct chart *chart, const char *path);

#endif
