/* SPDX-License-Identifier: Apache-2.0 */
/* What a training shows: a table as it goes, a bar, JSON and plots at the end. */
#include "bench/report/chart.h"
#include "options/json_writer.h"
#include "cli/glm/glm_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 30
#define PATH_ROOM 4096

/* ---- the bar ---- */

void view_bar(double share, const char *text)
{
	char bar[BAR_WIDTH + 1];
	int full = share > 0 ? (int)(share * BAR_WIDTH) : 0;

	if (share < 0) {
		fputs("\r\033[K", stderr);
	} else {
		memset(bar, '.', BAR_WIDTH);
		memset(bar, '#', (size_t)(full < BAR_WIDTH ? full : BAR_WIDTH));
		bar[BAR_WIDTH] = 0;
		fprintf(stderr, "\r[%s] %3.0f %% %s\033[K", bar, 100 * share, text);
	}
	fflush(stderr);
}

static void bar_remove(struct glm_view *view)
{
	if (view->bar_shown)
		view_bar(-1, "");
	view->bar_shown = false;
}

void view_progress(void *context, uint64_t done, uint64_t total)
{
	struct glm_view *view = context;
	double share = total ? (double)done / (double)total : 0;
	char text[64];

	if (!view->is_first || !(view->bar || view->bar_lines))
		return;
	snprintf(text, sizeof(text), "epoch %u", view->n + 1);
	if (view->bar_lines) {
		printf(VIEW_BAR_LINE "%.4f %s\n", share, text);
		fflush(stdout);
		return;
	}
	view_bar(share, text);
	view->bar_shown = true;
}

/* ---- the table ---- */

static void cell_print(double value, const char *format)
{
	if (isnan(value))
		printf("  %10s", "-");
	else
		printf(format, value);
}

void view_setup(void *context, const trib_glm_setup *setup)
{
	struct glm_view *view = context;

	view->setup = *setup;
	view->is_first = setup->rank == 0;
	view->has_accuracy = setup->classes > 0;
	view->has_table = view->is_first && !(view->json && strcmp(view->json, "-") == 0);
	if (!view->has_table)
		return;
	printf("%" PRIu64 " rows, %u columns, %.1f values a row; ", setup->rows, setup->columns,
	       (double)setup->nonzeros / (double)setup->rows);
	if (setup->classes)
		printf("%d classes", setup->classes);
	else
		printf("regression");
	if (setup->skipped_rows)
		printf("; %" PRIu64 " bad rows skipped", setup->skipped_rows);
	printf("\n%d worker%s (%s), %d thread%s, %s, %s; batch %d, micro %d; rate %.4g, decay "
	       "%.4g, "
	       "l1 %.4g, l2 %.4g\n",
	       setup->workers, setup->workers == 1 ? "" : "s", setup->exchange, setup->threads,
	       setup->threads == 1 ? "" : "s", setup->layout, setup->kernel, setup->batch,
	       setup->micro, setup->rate, setup->decay, setup->l1, setup->l2);
	if (setup->first_epoch > 1)
		printf("resumed after epoch %d\n", setup->first_epoch - 1);
	printf("epoch        loss");
	if (view->has_accuracy)
		printf("    accuracy");
	if (view->has_test)
		printf("   test loss%s", view->has_accuracy ? "  test accur." : "");
	printf("     seconds\n");
	fflush(stdout);
}

static void epoch_print(const struct glm_view *view, const trib_glm_epoch *epoch)
{
	printf("%5d", epoch->epoch);
	cell_print(epoch->train.loss, "  %10.6f");
	if (view->has_accuracy)
		cell_print(100 * epoch->train.accuracy, "  %8.2f %%");
	if (view->has_test) {
		cell_print(epoch->test.loss, "  %10.6f");
		if (view->has_accuracy)
			cell_print(100 * epoch->test.accuracy, "   %8.2f %%");
	}
	printf("  %10.3f\n", epoch->total_seconds);
	fflush(stdout);
}

void view_epoch(void *context, const trib_glm_epoch *epoch)
{
	struct glm_view *view = context;

	if (view->n == view->room) {
		unsigned room = view->room ? 2 * view->room : 16;
		trib_glm_epoch *more = realloc(view->epochs, room * sizeof(*more));

		if (!more)
			return;
		view->epochs = more;
		view->room = room;
	}
	view->epochs[view->n++] = *epoch;
	bar_remove(view);
	if (view->has_table)
		epoch_print(view, epoch);
}

/* ---- JSON ---- */

static void score_put(struct json_writer *json, const char *name, const trib_glm_score *score)
{
	json_open_object(json, name);
	json_put_number(json, "loss", "%.9g", score->loss);
	json_put_number(json, "accuracy", "%.6g", score->accuracy);
	json_close(json);
}

static void setup_put(struct json_writer *json, const struct glm_view *view)
{
	const trib_glm_setup *setup = &view->setup;

	json_open_object(json, "setup");
	json_put_text(json, "file", view->source);
	json_put_count(json, "rows", setup->rows);
	json_put_count(json, "columns", setup->columns);
	json_put_count(json, "nonzeros", setup->nonzeros);
	json_put_count(json, "classes", (unsigned long long)setup->classes);
	json_put_count(json, "skipped_rows", setup->skipped_rows);
	json_put_count(json, "workers", (unsigned long long)setup->workers);
	json_put_count(json, "threads", (unsigned long long)setup->threads);
	json_put_text(json, "exchange", setup->exchange);
	json_put_text(json, "layout", setup->layout);
	json_put_text(json, "kernel", setup->kernel);
	json_put_count(json, "batch", (unsigned long long)setup->batch);
	json_put_count(json, "micro", (unsigned long long)setup->micro);
	json_put_number(json, "rate", "%.9g", setup->rate);
	json_put_number(json, "decay", "%.9g", setup->decay);
	json_put_number(json, "l1", "%.9g", setup->l1);
	json_put_number(json, "l2", "%.9g", setup->l2);
	json_put_number(json, "load_s", "%.6f", setup->load_seconds);
	json_close(json);
}

static trib_status json_write(const struct glm_view *view, const trib_glm_model_info *info)
{
	struct json_writer json;
	trib_status status = json_start(&json, view->json);

	if (status != TRIB_OK)
		return status;
	setup_put(&json, view);
	json_open_list(&json, "epochs");
	for (unsigned i = 0; i < view->n; i++) {
		const trib_glm_epoch *epoch = &view->epochs[i];

		json_open_object(&json, NULL);
		json_put_count(&json, "epoch", (unsigned long long)epoch->epoch);
		json_put_number(&json, "loss", "%.9g", epoch->train.loss);
		json_put_number(&json, "accuracy", "%.6g", epoch->train.accuracy);
		json_put_number(&json, "test_loss", "%.9g", epoch->test.loss);
		json_put_number(&json, "test_accuracy", "%.6g", epoch->test.accuracy);
		json_put_number(&json, "seconds", "%.6f", epoch->seconds);
		json_put_number(&json, "total_s", "%.6f", epoch->total_seconds);
		json_put_count(&json, "saturated", epoch->saturated);
		json_close(&json);
	}
	json_close(&json);
	score_put(&json, "model", &info->train);
	if (view->stats.rounds) {
		json_open_object(&json, "traffic");
		json_put_count(&json, "sums", view->stats.rounds);
		json_put_count(&json, "sent_packets", view->stats.sent_packets);
		json_put_count(&json, "resent_packets", view->stats.resent_packets);
		json_put_number(&json, "wait_s", "%.6f", view->stats.wait_s);
		json_close(&json);
	}
	return json_finish(&json, view->json);
}

/* ---- plots ---- */

static void line_fill(const struct glm_view *view, struct chart *chart, bool test, bool by_time)
{
	struct chart_line *line = &chart->lines[chart->n++];
	unsigned n = view->n < CHART_POINTS_MAX ? view->n : CHART_POINTS_MAX;

	line->name = test ? "test" : "training";
	for (unsigned i = 0; i < n; i++) {
		const trib_glm_epoch *epoch = &view->epochs[(size_t)i * view->n / n];
		double y = test ? epoch->test.loss : epoch->train.loss;

		line->points[line->n++] =
			(struct chart_point){ by_time ? epoch->total_seconds : epoch->epoch, y, y,
			                      y };
	}
}

static trib_status chart_draw(const struct glm_view *view, bool by_time, const char *path)
{
	struct chart *chart = calloc(1, sizeof(*chart));
	trib_status status;

	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	chart->title = by_time ? "Loss against time" : "Loss against epochs";
	chart->subtitle = view->source;
	chart->x_title = by_time ? "seconds of training" : "epoch";
	chart->y_title = "mean loss";
	chart->y_format = "%.3f";
	line_fill(view, chart, false, by_time);
	if (view->has_test)
		line_fill(view, chart, true, by_time);
	status = chart_write(chart, path);
	free(chart);
	return status;
}

static trib_status plots_draw(const struct glm_view *view)
{
	char path[PATH_ROOM];
	trib_status status = chart_draw(view, false, view->plot);

	chart_path(path, sizeof(path), view->plot, "-time");
	return status == TRIB_OK ? chart_draw(view, true, path) : status;
}

/* ---- the end ---- */

static void summary_print(const struct glm_view *view, const trib_glm_model_info *info,
                          const char *model_path)
{
	printf("model: training loss %.6f", info->train.loss);
	if (view->has_accuracy)
		printf(", accuracy %.2f %%", 100 * info->train.accuracy);
	printf(model_path ? "; written to %s\n" : "; not written (--model FILE)\n", model_path);
}

trib_status view_finish(struct glm_view *view, const trib_glm_model *model, const char *model_path)
{
	trib_glm_model_info info = { .struct_size = sizeof(info) };
	trib_status status = trib_glm_model_describe(model, &info);

	if (!view->is_first || status != TRIB_OK)
		return status;
	bar_remove(view);
	if (view->has_table)
		summary_print(view, &info, model_path);
	if (view->n && view->epochs[view->n - 1].saturated)
		fprintf(stderr,
		        "warning: %" PRIu64
		        " numbers were too large for fixed point: the model may diverge; "
		        "choose a lower --rate, or scale the data\n",
		        view->epochs[view->n - 1].saturated);
	if (view->json)
		status = json_write(view, &info);
	if (status == TRIB_OK && view->plot && view->n)
		status = plots_draw(view);
	return status;
}

void view_free(struct glm_view *view)
{
	free(view->epochs);
	view->epochs = NULL;
}
