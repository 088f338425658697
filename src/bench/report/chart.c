/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1000
#define HEIGHT 540
#define LEFT 84
#define RIGHT 770 /* labels stand to the right of it */
#define TOP 92
#define BOTTOM 476
#define MARGIN 20
#define LABEL_GAP 19
#define TEXT_ROOM 400
#define MARK_GAP 50 /* distance on an axis in steps of two below which points share a label */

/* The palette of Okabe and Ito, for colour-blind readers; black is for the axes. */
static const char *const colours[CHART_LINES_MAX] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f",
	"#8c6d31", "#5e3c99", "#b2182b", "#1b7837", "#999933", "#542788", "#35978f",
};

struct plot {
	FILE *out;
	const struct chart *chart;
	double first, last;       /* of the x axis, or their logarithms */
	double bottom, top, step; /* ends of the y axis; logarithms if the axis is logarithmic */
};

static double x_of(const struct plot *plot, double x)
{
	double at = plot->chart->x_log ? log2(x) : x;

	if (plot->last <= plot->first)
		return (LEFT + RIGHT) / 2.0;
	return LEFT + MARGIN +
	       (at - plot->first) / (plot->last - plot->first) * (RIGHT - LEFT - 2 * MARGIN);
}

static double y_of(const struct plot *plot, double y)
{
	double at = plot->chart->y_log ? log10(fmax(y, 1e-300)) : y;

	at = fmax(at, plot->bottom);
	return BOTTOM - (at - plot->bottom) / (plot->top - plot->bottom) * (BOTTOM - TOP);
}

/* A round step that gives four to ten grid lines. */
static double step_choose(double most)
{
	double power = pow(10, floor(log10(most)));

	return most / power < 2 ? power / 5 : most / power < 5 ? power / 2 : power;
}

static void scale_choose(struct plot *plot)
{
	double most = 0, least = INFINITY;

	plot->first = INFINITY;
	plot->last = -INFINITY;
	for (unsigned i = 0; i < plot->chart->n; i++)
		for (unsigned k = 0; k < plot->chart->lines[i].n; k++) {
			const struct chart_point *p = &plot->chart->lines[i].points[k];
			double x = plot->chart->x_log ? log2(p->x) : p->x;

			most = fmax(most, fmax(p->y, p->high));
			if (p->y > 0)
				least = fmin(least, p->y);
			plot->first = fmin(plot->first, x);
			plot->last = fmax(plot->last, x);
		}
	if (!plot->chart->x_log)
		plot->first = fmin(plot->first, 0);
	if (!(most > 0))
		most = least = 1;
	if (plot->chart->y_log) {
		plot->bottom = floor(log10(least));
		plot->top = fmax(ceil(log10(most)), plot->bottom + 1);
		return;
	}
	most *= 1.05;
	plot->step = step_choose(most);
	plot->top = ceil(most / plot->step) * plot->step;
}

static void y_line(const struct plot *plot, double value, bool labelled)
{
	double y = y_of(plot, value);

	fprintf(plot->out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
	        LEFT, RIGHT, y, y, y < BOTTOM - 0.5 ? labelled ? "#e0e0e0" : "#f2f2f2" : "#222");
	if (labelled)
		fprintf(plot->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
		        LEFT - 10, y + 5, round(value * 1e9) / 1e9);
}

static void y_axis_draw(const struct plot *plot)
{
	if (!plot->chart->y_log) {
		for (double y = 0; y < plot->top + plot->step / 2; y += plot->step)
			y_line(plot, y, true);
		return;
	}
	for (double power = plot->bottom; power <= plot->top; power++)
		for (int digit = 1; digit < (power < plot->top ? 10 : 2); digit++)
			y_line(plot, digit * pow(10, power), digit == 1);
}

static void x_mark(const struct plot *plot, double x, bool labelled)
{
	char text[32] = "";

	if (labelled && plot->chart->x_text)
		plot->chart->x_text(x, text, sizeof(text));
	else if (labelled)
		snprintf(text, sizeof(text), "%g", round(x * 1e9) / 1e9);
	fprintf(plot->out,
	        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#222\"/>\n"
	        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
	        x_of(plot, x), x_of(plot, x), BOTTOM, BOTTOM + 6, x_of(plot, x), BOTTOM + 24, text);
}

static void x_axis_draw(const struct plot *plot)
{
	const struct chart_line *line = &plot->chart->lines[0];
	double step = plot->last > 0 ? step_choose(plot->last) : 1, labelled = -INFINITY;

	for (unsigned k = 0; plot->chart->x_log && k < line->n; k++) {
		double x = x_of(plot, line->points[k].x);
		bool room = x - labelled >= MARK_GAP;

		x_mark(plot, line->points[k].x, room);
		labelled = room ? x : labelled;
	}
	for (double x = plot->first; !plot->chart->x_log && x <= plot->last + step / 1000;
	     x += step)
		x_mark(plot, x, true);
}

/* Escapes names, which come from command lines and files. */
static const char *svg_text(const char *text, char out[TEXT_ROOM])
{
	size_t n = 0;

	for (; *text && n + 6 < TEXT_ROOM; text++) {
		const char *word = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : NULL;

		n += (size_t)snprintf(out + n, TEXT_ROOM - n, word ? "%s" : "%.1s",
		                      word ? word : text);
	}
	out[n] = '\0';
	return out;
}

static void frame_draw(const struct plot *plot)
{
	const struct chart *chart = plot->chart;
	char subtitle[TEXT_ROOM];

	fprintf(plot->out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
	        "height=\"%d\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" "
	        "font-size=\"14\" fill=\"#222\">\n<rect width=\"%d\" height=\"%d\" "
	        "fill=\"#fff\"/>\n"
	        "<text x=\"%d\" y=\"36\" font-size=\"20\" font-weight=\"600\">%s</text>\n"
	        "<text x=\"%d\" y=\"60\" fill=\"#555\">%s</text>\n",
	        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, chart->title, LEFT,
	        svg_text(chart->subtitle, subtitle));
	y_axis_draw(plot);
	if (!chart->bars)
		x_axis_draw(plot);
	fprintf(plot->out,
	        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%s</text>\n"
	        "<text transform=\"translate(24 %d) rotate(-90)\" text-anchor=\"middle\" "
	        "fill=\"#555\">%s</text>\n",
	        (LEFT + RIGHT) / 2, BOTTOM + 48, chart->x_title, (TOP + BOTTOM) / 2,
	        chart->y_title);
}

static void line_draw(const struct plot *plot, const struct chart_line *line, const char *colour)
{
	fprintf(plot->out,
	        "<g stroke=\"%s\" stroke-width=\"%s\" fill=\"%s\" stroke-linejoin=\"round\">\n"
	        "<polyline fill=\"none\"%s points=\"",
	        line->dashed ? "#777" : colour, line->dashed ? "1.5" : "2.5",
	        line->dashed ? "#777" : colour, line->dashed ? " stroke-dasharray=\"7 5\"" : "");
	for (unsigned k = 0; k < line->n; k++)
		fprintf(plot->out, "%.1f,%.1f ", x_of(plot, line->points[k].x),
		        y_of(plot, line->points[k].y));
	fprintf(plot->out, "\"/>\n");
	for (unsigned k = 0; k < line->n && line->n <= CHART_DOTS_MAX && !line->dashed; k++) {
		const struct chart_point *p = &line->points[k];

		if (p->high > p->low)
			fprintf(plot->out,
			        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
			        "stroke-width=\"1\"/>\n",
			        x_of(plot, p->x), x_of(plot, p->x), y_of(plot, p->low),
			        y_of(plot, p->high));
		fprintf(plot->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x_of(plot, p->x),
		        y_of(plot, p->y));
	}
	fprintf(plot->out, "</g>\n");
}

static void bars_draw(const struct plot *plot)
{
	const char *format = plot->chart->y_format ? plot->chart->y_format : "%.2f";
	double room = (RIGHT - LEFT) / (double)plot->chart->n;

	for (unsigned i = 0; i < plot->chart->n; i++) {
		const struct chart_line *line = &plot->chart->lines[i];
		double left = LEFT + room * (i + 0.2), middle = LEFT + room * (i + 0.5), y;
		char number[32], name[TEXT_ROOM];

		if (!line->n)
			continue;
		y = y_of(plot, line->points[0].y);
		snprintf(number, sizeof(number), format, line->points[0].y);
		fprintf(plot->out,
		        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		        "fill=\"%s\"/>\n"
		        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
		        "stroke=\"#222\"/>\n"
		        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n"
		        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
		        left, y, room * 0.6, BOTTOM - y, colours[i], middle, middle,
		        y_of(plot, line->points[0].low), y_of(plot, line->points[0].high),
		        middle - 6, y - 8, number, middle, BOTTOM + 24, svg_text(line->name, name));
	}
}

struct label {
	double y, wanted;
	const struct chart_line *line;
	const char *colour;
};

static int label_compare(const void *a, const void *b)
{
	double x = ((const struct label *)a)->wanted, y = ((const struct label *)b)->wanted;

	return (x > y) - (x < y);
}

/* Moves labels apart: down if one is too near the label above, then up from the bottom. */
static void labels_spread(struct label *labels, unsigned n)
{
	double room = BOTTOM;

	qsort(labels, n, sizeof(*labels), label_compare);
	for (unsigned i = 0; i < n; i++) {
		labels[i].y = labels[i].wanted;
		if (i && labels[i].y < labels[i - 1].y + LABEL_GAP)
			labels[i].y = labels[i - 1].y + LABEL_GAP;
	}
	for (unsigned i = n; i-- > 0; room = labels[i].y - LABEL_GAP)
		if (labels[i].y > room)
			labels[i].y = room;
}

static void labels_draw(const struct plot *plot)
{
	const char *format = plot->chart->y_format ? plot->chart->y_format : "%.2f";
	struct label labels[CHART_LINES_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < plot->chart->n; i++) {
		const struct chart_line *line = &plot->chart->lines[i];

		if (line->n)
			labels[n++] = (struct label){
				.wanted = y_of(plot, line->points[line->n - 1].y),
				.line = line,
				.colour = line->dashed ? "#777" : colours[i],
			};
	}
	labels_spread(labels, n);
	for (unsigned i = 0; i < n; i++) {
		const struct chart_line *line = labels[i].line;
		char number[32] = "", name[TEXT_ROOM];

		if (!line->dashed) /* `format` is chosen by the caller, not by a user */
			snprintf(number, sizeof(number), format, line->points[line->n - 1].y);
		fprintf(plot->out,
		        "<path d=\"M%.1f %.1f L%d %.1f\" stroke=\"%s\" fill=\"none\"/>\n"
		        "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s  %s</text>\n",
		        x_of(plot, line->points[line->n - 1].x) + 5, labels[i].wanted, RIGHT + 14,
		        labels[i].y, labels[i].colour, RIGHT + 20, labels[i].y + 5,
		        labels[i].colour, svg_text(line->name, name), number);
	}
}

void chart_path(char *out, size_t size, const char *path, const char *suffix)
{
	const char *dot = strrchr(path, '.');
	size_t stem = dot && !strchr(dot, '/') ? (size_t)(dot - path) : strlen(path);

	snprintf(out, size, "%.*s%s%s", (int)stem, path, suffix, path + stem);
}

trib_status chart_write(const struct chart *chart, const char *path)
{
	struct plot plot = { .out = fopen(path, "w"), .chart = chart };

	if (!plot.out)
		return status_fail_errno("cannot write %s", path);
	scale_choose(&plot);
	frame_draw(&plot);
	if (chart->bars)
		bars_draw(&plot);
	/* The first line is drawn last, on top of the others. */
	for (unsigned i = chart->bars ? 0 : chart->n; i-- > 0;)
		line_draw(&plot, &chart->lines[i], colours[i]);
	if (!chart->bars)
		labels_draw(&plot);
	fprintf(plot.out, "</svg>\n");
	if (fclose(plot.out) != 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}
