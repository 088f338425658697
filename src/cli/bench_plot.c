/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth over size as an SVG, a line a system, labelled where the lines end. */
#include "cli/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1000
#define HEIGHT 540
#define LEFT 76
#define RIGHT 750 /* labels stand to the right of it */
#define TOP 92
#define BOTTOM 476
#define LABEL_GAP 19
#define SIZE_GAP 50 /* nearer ones share a label */

/* Okabe and Ito's, which colour-blind readers can tell apart; black is for the axes. */
static const char *const colours[BENCH_SYSTEMS_MAX] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
	"#7f7f7f", "#8c6d31", "#5e3c99", "#b2182b", "#1b7837", "#999933"
};

struct plot {
	FILE *out;
	const struct bench_report *report;
	double first, last; /* log2 of the sizes */
	double top, step;   /* of the vertical axis, Gb/s */
};

struct label {
	double y, wanted;
	unsigned system;
	double gbps;
};

static double x_of(const struct plot *plot, uint64_t bytes)
{
	if (plot->last <= plot->first)
		return (LEFT + RIGHT) / 2.0;
	return LEFT + 24 +
	       (log2((double)bytes) - plot->first) / (plot->last - plot->first) *
	               (RIGHT - LEFT - 48);
}

static double y_of(const struct plot *plot, double gbps)
{
	return BOTTOM - gbps / plot->top * (BOTTOM - TOP);
}

static double limit_gbps(const struct bench_result *result)
{
	return result->limit_s > 0 ? (double)result->bytes * 8 / result->limit_s / 1e9 : 0;
}

static void scale_choose(struct plot *plot)
{
	const struct bench_report *report = plot->report;
	double most = 0, power;

	plot->first = INFINITY;
	plot->last = -INFINITY;
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		most = fmax(most, fmax(bench_gbps(r), limit_gbps(r)));
		plot->first = fmin(plot->first, log2((double)r->bytes));
		plot->last = fmax(plot->last, log2((double)r->bytes));
	}
	most = most > 0 ? most * 1.08 : 1;
	/* A round step that gives four to ten lines. */
	power = pow(10, floor(log10(most)));
	plot->step = most / power < 2 ? power / 5 : most / power < 5 ? power / 2 : power;
	plot->top = ceil(most / plot->step) * plot->step;
}

static void frame_draw(const struct plot *plot)
{
	const struct bench_options *o = plot->report->options;
	char text[256], size[24];
	FILE *out = plot->out;

	bench_place_describe(plot->report->place, text, sizeof(text));
	if (strlen(text) > 110) /* the reason is for the table; it would leave the picture */
		text[strcspn(text, ":")] = '\0';
	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
	        "height=\"%d\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" "
	        "font-size=\"14\" fill=\"#222\">\n"
	        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
	        "<text x=\"%d\" y=\"36\" font-size=\"20\" font-weight=\"600\">Allreduce "
	        "bandwidth</text>\n"
	        "<text x=\"%d\" y=\"60\" fill=\"#555\">%s</text>\n",
	        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, LEFT, text);
	for (double g = 0; g < plot->top + plot->step / 2; g += plot->step) {
		fprintf(out,
		        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n"
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
		        LEFT, RIGHT, y_of(plot, g), y_of(plot, g), g > 0 ? "#e4e4e4" : "#222",
		        LEFT - 10, y_of(plot, g) + 5, round(g * 1e6) / 1e6);
	}
	for (unsigned s = 0; s < o->n_sizes; s++) {
		double x = x_of(plot, o->sizes[s]);
		bool crowded = s && fabs(x - x_of(plot, o->sizes[s - 1])) < SIZE_GAP;

		fprintf(out,
		        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#222\"/>\n"
		        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
		        x, x, BOTTOM, BOTTOM + 6, x, BOTTOM + 24,
		        crowded ? "" : bench_bytes_text(o->sizes[s], size));
	}
	fprintf(out,
	        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">bytes of the "
	        "vector (f32)</text>\n"
	        "<text transform=\"translate(24 %d) rotate(-90)\" text-anchor=\"middle\" "
	        "fill=\"#555\">Gb/s (size / median time)</text>\n",
	        (LEFT + RIGHT) / 2, BOTTOM + 48, (TOP + BOTTOM) / 2);
}

/* The limit is the same for all systems of a kind: the first one's is drawn. */
static void limit_draw(const struct plot *plot, bool aggregates, const char *name)
{
	const struct bench_report *report = plot->report;
	const struct bench_system *system = NULL;
	double gbps = 0;

	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (r->system->aggregates != aggregates || limit_gbps(r) == 0 ||
		    (system && r->system != system))
			continue;
		if (!system)
			fprintf(plot->out,
			        "<polyline fill=\"none\" stroke=\"#555\" "
			        "stroke-width=\"1.5\" stroke-dasharray=\"7 5\" points=\"");
		if (!system)
			fprintf(plot->out, "%d,%.1f ", LEFT, y_of(plot, limit_gbps(r)));
		system = r->system;
		gbps = limit_gbps(r);
		fprintf(plot->out, "%.1f,%.1f ", x_of(plot, r->bytes), y_of(plot, gbps));
	}
	if (system)
		fprintf(plot->out,
		        "%d,%.1f\"/>\n<text x=\"%d\" y=\"%.1f\" font-size=\"12\" "
		        "fill=\"#555\">limit "
		        "of %s, %.3g</text>\n",
		        RIGHT, y_of(plot, gbps), LEFT + 8, y_of(plot, gbps) - 6, name, gbps);
}

static void points_print(const struct plot *plot, unsigned system, const char *format)
{
	for (unsigned i = 0; i < plot->report->n; i++) {
		const struct bench_result *r = &plot->report->results[i];

		if (r->system == plot->report->systems[system] && r->stats.repeats)
			fprintf(plot->out, format, x_of(plot, r->bytes), y_of(plot, bench_gbps(r)));
	}
}

static void lines_draw(const struct plot *plot)
{
	/* Tributary last, on top of the others. */
	for (unsigned k = plot->report->n_systems; k-- > 0;) {
		fprintf(plot->out,
		        "<g stroke=\"%s\" stroke-width=\"%s\" fill=\"%s\" "
		        "stroke-linejoin=\"round\">\n<polyline fill=\"none\" points=\"",
		        colours[k], k ? "2" : "3.5", colours[k]);
		points_print(plot, k, "%.1f,%.1f ");
		fprintf(plot->out, "\"/>\n");
		points_print(plot, k, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n");
		fprintf(plot->out, "</g>\n");
	}
}

static int label_compare(const void *a, const void *b)
{
	double x = ((const struct label *)a)->wanted, y = ((const struct label *)b)->wanted;

	return (x > y) - (x < y);
}

/* Moves labels apart: down where one is too near the one above, then up from the bottom. */
static void labels_spread(struct label *labels, unsigned n)
{
	double room = BOTTOM;

	qsort(labels, n, sizeof(*labels), label_compare);
	for (unsigned i = 0; i < n; i++) {
		labels[i].y = labels[i].wanted;
		if (i && labels[i].y < labels[i - 1].y + LABEL_GAP)
			labels[i].y = labels[i - 1].y + LABEL_GAP;
	}
	for (unsigned i = n; i-- > 0; room = labels[i].y - LABEL_GAP) {
		if (labels[i].y > room)
			labels[i].y = room;
	}
}

static void labels_draw(const struct plot *plot)
{
	struct label labels[BENCH_SYSTEMS_MAX];
	unsigned n = 0;

	for (unsigned k = 0; k < plot->report->n_systems; k++) {
		const struct bench_result *end = NULL;

		for (unsigned i = 0; i < plot->report->n; i++) {
			const struct bench_result *r = &plot->report->results[i];

			if (r->system == plot->report->systems[k] && r->stats.repeats &&
			    (!end || r->bytes >= end->bytes))
				end = r;
		}
		if (end)
			labels[n++] = (struct label){ .wanted = y_of(plot, bench_gbps(end)),
				                      .system = k,
				                      .gbps = bench_gbps(end) };
	}
	labels_spread(labels, n);
	for (unsigned i = 0; i < n; i++)
		fprintf(plot->out,
		        "<path d=\"M%d %.1f L%d %.1f\" stroke=\"%s\" fill=\"none\"/>\n"
		        "<text x=\"%d\" y=\"%.1f\" fill=\"%s\" font-weight=\"%s\">%s  "
		        "%.3g</text>\n",
		        RIGHT - 12, labels[i].wanted, RIGHT + 14, labels[i].y,
		        colours[labels[i].system], RIGHT + 20, labels[i].y + 5,
		        colours[labels[i].system], labels[i].system ? "400" : "700",
		        plot->report->systems[labels[i].system]->name, labels[i].gbps);
}

trib_status bench_plot_write(const struct bench_report *report, const char *path)
{
	struct plot plot = { .out = fopen(path, "w"), .report = report };

	if (!plot.out)
		return status_fail_errno("cannot write %s", path);
	scale_choose(&plot);
	frame_draw(&plot);
	limit_draw(&plot, true, "aggregation");
	limit_draw(&plot, false, "a ring");
	lines_draw(&plot);
	labels_draw(&plot);
	fprintf(plot.out, "</svg>\n");
	if (fclose(plot.out) != 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}
