/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 400, WIDTH = 720, HEIGHT = 360, LEFT = 64, TOP = 40, BOTTOM = 48, TICKS = 5 };

static void *grown(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count, size);

	if (!memory) {
		fprintf(stderr, "no memory for the results\n");
		exit(EXIT_FAILURE);
	}
	return memory;
}

void job_result_step(struct job_result *result, double loss)
{
	size_t n = result->n_losses;

	if ((n & (n - 1)) == 0) /* room is a power of two */
		result->losses = grown(result->losses, n ? 2 * n : 1, sizeof(*result->losses));
	result->losses[result->n_losses++] = loss;
}

struct job_epoch *job_result_epoch(struct job_result *result)
{
	result->epochs = grown(result->epochs, result->n_epochs + 1, sizeof(*result->epochs));
	result->epochs[result->n_epochs] = (struct job_epoch){ 0 };
	return &result->epochs[result->n_epochs++];
}

void job_result_free(struct job_result *result)
{
	free(result->losses);
	free(result->epochs);
	*result = (struct job_result){ 0 };
}

/* ---- text ---- */

void job_progress_show(struct progress *p, const struct job_progress *s, double now)
{
	double interval = p->mode == PROGRESS_BAR ? 0.1 : 1;
	int full = (int)(20 * s->step / s->steps);

	if (p->mode == PROGRESS_NONE || (now - p->shown < interval && s->step < s->steps))
		return;
	p->shown = now;
	printf("%sepoch %zu/%zu [%.*s%.*s] %zu/%zu loss %.4f  %.0f rows/s, %.0f %% hot%s",
	       p->mode == PROGRESS_BAR ? "\r" : "", s->epoch, s->epochs, full,
	       "####################", 20 - full, "....................", s->step, s->steps,
	       s->loss, s->rows_s, 100 * s->hot_share, p->mode == PROGRESS_BAR ? "\033[K" : "\n");
	p->dirty = p->mode == PROGRESS_BAR;
	fflush(stdout);
}

static double part(uint64_t some, uint64_t all)
{
	return all ? (double)some / (double)all : 0;
}

void job_result_print(const struct job_result *r, struct progress *p)
{
	const trib_sparse_stats *stats = &r->stats;

	progress_say(p, "time          %.1f s of training, %.1f s in all, %zu steps of %.2f ms",
	             r->train_s, r->total_s, r->steps,
	             r->steps ? 1e3 * r->train_s / (double)r->steps : 0);
	progress_say(p, "pushed        %llu rows by rank 0, %.1f %% of them hot; %u rows are hot",
	             (unsigned long long)stats->pushed_rows,
	             100 * part(stats->hot_rows, stats->pushed_rows), stats->hot_set);
	progress_say(p, "pulled        %llu rows by rank 0, %.1f %% from an aggregator",
	             (unsigned long long)stats->pulled_rows,
	             100 * part(stats->hot_pulled_rows, stats->pulled_rows));
	if (stats->moves)
		progress_say(p, "moves         %u times to another aggregator", stats->moves);
}

/* ---- thinning ---- */

static size_t points_count(const struct job_result *r)
{
	return r->n_losses < POINTS_MAX ? r->n_losses : POINTS_MAX;
}

/* The mean of the losses around point i, and the last step that it stands for. */
static double point_loss(const struct job_result *r, size_t i, size_t *step)
{
	size_t n = points_count(r), first = i * r->n_losses / n, end = (i + 1) * r->n_losses / n;
	double sum = 0;

	for (size_t k = first; k < end; k++)
		sum += r->losses[k];
	*step = end;
	return sum / (double)(end - first);
}

/* ---- JSON ---- */

static void string_write(FILE *file, const char *name, const char *text)
{
	fprintf(file, "  \"%s\": \"", name);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else
			fputc(c, file);
	}
	fprintf(file, "\",\n");
}

/* JSON has no NaN and no infinity. */
static void number_write(FILE *file, const char *name, double value)
{
	if (isfinite(value))
		fprintf(file, "\"%s\": %.6g", name, value);
	else
		fprintf(file, "\"%s\": null", name);
}

static void epochs_write(FILE *file, const struct job_result *r)
{
	fprintf(file, "  \"epochs\": [");
	for (size_t i = 0; i < r->n_epochs; i++) {
		const struct job_epoch *e = &r->epochs[i];

		fprintf(file, "%s\n    {\"epoch\": %zu, ", i ? "," : "", i + 1);
		number_write(file, "loss", e->loss);
		fprintf(file, ", ");
		number_write(file, "seconds", e->seconds);
		for (size_t k = 0; k < e->n_measures; k++) {
			char name[64];

			fprintf(file, ", ");
			number_write(file, e->measures[k].name, e->measures[k].value);
			fprintf(file, ", ");
			snprintf(name, sizeof(name), "%s_baseline", e->measures[k].name);
			number_write(file, name, e->measures[k].baseline);
		}
		fprintf(file, "}");
	}
	fprintf(file, "\n  ],\n");
}

static void losses_write(FILE *file, const struct job_result *r)
{
	fprintf(file, "  \"losses\": [");
	for (size_t i = 0; i < points_count(r); i++) {
		size_t step;
		double loss = point_loss(r, i, &step);

		fprintf(file, "%s\n    {\"step\": %zu, ", i ? "," : "", step);
		number_write(file, "loss", loss);
		fprintf(file, "}");
	}
	fprintf(file, "\n  ]\n}\n");
}

static void stats_write(FILE *file, const trib_sparse_stats *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "pushed_rows", s->pushed_rows },
		{ "hot_rows", s->hot_rows },
		{ "hot_packets", s->hot_packets },
		{ "resent_packets", s->resent_packets },
		{ "server_bytes_sent", s->server_bytes_sent },
		{ "server_bytes_received", s->server_bytes_received },
		{ "pulled_rows", s->pulled_rows },
		{ "hot_pulled_rows", s->hot_pulled_rows },
		{ "hot_set", s->hot_set },
		{ "moves", s->moves },
	};

	fprintf(file, "  \"rank_0\": {");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		fprintf(file, "%s\"%s\": %llu", i ? ", " : "", rows[i].name,
		        (unsigned long long)rows[i].value);
	fprintf(file, "},\n");
}

int job_result_write(const struct job_result *r, const char *path)
{
	FILE *file = fopen(path, "w");
	int failed;

	if (!file)
		return -1;
	fprintf(file, "{\n");
	string_write(file, "job", r->job);
	string_write(file, "data", r->data);
	if (r->baseline)
		string_write(file, "baseline", r->baseline);
	fprintf(file,
	        "  \"workers\": %d,\n  \"batch\": %zu,\n  \"width\": %zu,\n  \"keys\": %zu,\n"
	        "  \"steps\": %zu,\n  \"samples\": %zu,\n  \"train_s\": %.6f,\n  \"total_s\": "
	        "%.6f,\n",
	        r->workers, r->batch, r->width, r->keys, r->steps, r->samples, r->train_s,
	        r->total_s);
	stats_write(file, &r->stats);
	epochs_write(file, r);
	losses_write(file, r);
	failed = ferror(file);
	return fclose(file) != 0 || failed ? -1 : 0;
}

/* ---- the plot ---- */

struct scale {
	double low, high, steps;
};

static double x_of(const struct scale *s, double step)
{
	return LEFT + (WIDTH - LEFT - 24) * step / s->steps;
}

static double y_of(const struct scale *s, double loss)
{
	return TOP + (HEIGHT - TOP - BOTTOM) * (s->high - loss) / (s->high - s->low);
}

static struct scale scale_find(const struct job_result *r)
{
	struct scale s = { INFINITY, -INFINITY, r->n_losses ? (double)r->n_losses : 1 };

	for (size_t i = 0; i < points_count(r); i++) {
		size_t step;
		double loss = point_loss(r, i, &step);

		if (isfinite(loss)) {
			s.low = fmin(s.low, loss);
			s.high = fmax(s.high, loss);
		}
	}
	if (!(s.high > s.low)) {
		s.low = isfinite(s.low) ? s.low - 0.5 : 0;
		s.high = s.low + 1;
	}
	return s;
}

static void axes_draw(FILE *file, const struct scale *s)
{
	for (int i = 0; i <= TICKS; i++) {
		double loss = s->low + (s->high - s->low) * i / TICKS, step = s->steps * i / TICKS;

		fprintf(file,
		        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n"
		        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
		        LEFT, WIDTH - 24, y_of(s, loss), y_of(s, loss), LEFT - 6, y_of(s, loss) + 4,
		        loss, x_of(s, step), HEIGHT - BOTTOM + 18, step);
	}
}

int job_result_plot(const struct job_result *r, const char *path)
{
	FILE *file = fopen(path, "w");
	struct scale s = scale_find(r);
	int failed;

	if (!file)
		return -1;
	fprintf(file,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
	        "font-family=\"sans-serif\" font-size=\"12\">\n"
	        "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
	        "<text x=\"%d\" y=\"22\" font-size=\"15\">%s: loss of rank 0, %d worker%s</text>\n"
	        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
	        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, r->job, r->workers, r->workers == 1 ? "" : "s",
	        WIDTH / 2, HEIGHT - 10);
	axes_draw(file, &s);
	fprintf(file, "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"1.5\" points=\"");
	for (size_t i = 0; i < points_count(r); i++) {
		size_t step;
		double loss = point_loss(r, i, &step);

		if (isfinite(loss))
			fprintf(file, "%.1f,%.1f ", x_of(&s, (double)step), y_of(&s, loss));
	}
	fprintf(file, "\"/>\n</svg>\n");
	failed = ferror(file);
	return fclose(file) != 0 || failed ? -1 : 0;
}
