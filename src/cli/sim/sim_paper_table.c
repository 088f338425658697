/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/chart.h"
#include "cli/sim/sim_paper.h"

#include <stdlib.h>

#define PATH_ROOM 4096
#define NAME_ROOM 48

static const struct sim_task *cell_tasks(const struct paper *paper, unsigned row, unsigned column)
{
	return paper->tasks + (size_t)(row * paper->about->columns + column) * paper->seeds;
}

static struct sim_spread cell_spread(const struct paper *paper, unsigned row, unsigned column,
                                     sim_figure *figure)
{
	return spread_of(cell_tasks(paper, row, column), paper->seeds, figure);
}

static double trees_ms(const struct sim_result *result)
{
	return result->done ? (double)result->trees_ns / 1e6 / (double)result->done : 0;
}

static double column_mean(const struct paper *paper, unsigned column, sim_figure *figure)
{
	double sum = 0;

	for (unsigned row = 0; row < paper->about->rows; row++)
		sum += cell_spread(paper, row, column, figure).mean;
	return sum / paper->about->rows;
}

/* ---- for people ---- */

static void cell_print(const struct paper *paper, unsigned row, unsigned column)
{
	struct sim_spread score = cell_spread(paper, row, column, sim_score);

	printf("  %7.4f", score.mean);
	if (paper->seeds > 1)
		printf(" (%.4f..%.4f)", score.low, score.high);
	printf(" %7.3f %%", 100 * cell_spread(paper, row, column, sim_gain).mean);
}

static void row_print(const struct paper *paper, unsigned row)
{
	const struct paper_about *about = paper->about;
	char name[NAME_ROOM];

	about->row_name(row, name, sizeof(name));
	printf("%-24s", name);
	for (unsigned column = 0; column < about->columns; column++)
		cell_print(paper, row, column);
	if (about->columns == 1) {
		printf("  %6.4f", cell_spread(paper, row, 0, sim_utilization).mean);
		printf("  %8.4f", cell_spread(paper, row, 0, trees_ms).mean);
	}
	if (about->reference && about->reference[row].score > 0)
		printf("  %9.3f %6.3f", about->reference[row].score,
		       about->reference[row].utilization);
	printf("\n");
}

static void table_print(const struct paper *paper)
{
	const struct paper_about *about = paper->about;
	int width = paper->seeds > 1 ? 36 : 20;

	printf("%s: %s; %u seed%s\n\n%-24s", about->name, about->title, paper->seeds,
	       paper->seeds == 1 ? "" : "s", "");
	for (unsigned column = 0; column < about->columns; column++)
		printf("%*s", width, about->columns > 1 ? about->column_names[column] : "");
	printf("\n%-24s", "");
	for (unsigned column = 0; column < about->columns; column++)
		printf("%*s", width, "score, JCT saved");
	if (about->columns == 1)
		printf("    util  trees ms");
	if (about->reference)
		printf("  the paper's");
	printf("\n");
	for (unsigned row = 0; row < about->rows; row++)
		row_print(paper, row);
	if (about->columns > 1) {
		printf("%-24s", "mean");
		for (unsigned column = 0; column < about->columns; column++)
			printf("%*.4f %7.3f %%", width - 10, column_mean(paper, column, sim_score),
			       100 * column_mean(paper, column, sim_gain));
		printf("\n");
	}
}

/* ---- for programs ---- */

static void cell_json(struct json_writer *json, const struct paper *paper, unsigned row,
                      unsigned column)
{
	const struct paper_about *about = paper->about;
	const struct sim_task *tasks = cell_tasks(paper, row, column);
	const struct sim_result *result = &tasks[0].result;
	struct sim_spread score = cell_spread(paper, row, column, sim_score);
	char name[NAME_ROOM];

	about->row_name(row, name, sizeof(name));
	json_open_object(json, NULL);
	json_put_text(json, "row", name);
	if (about->columns > 1)
		json_put_text(json, "column", about->column_names[column]);
	json_put_count(json, "events", result->events);
	json_put_number(json, "score", "%.9g", score.mean);
	json_put_number(json, "score_low", "%.9g", score.low);
	json_put_number(json, "score_high", "%.9g", score.high);
	json_put_number(json, "utilization", "%.9g",
	                cell_spread(paper, row, column, sim_utilization).mean);
	json_put_number(json, "gain", "%.9g", cell_spread(paper, row, column, sim_gain).mean);
	json_put_number(json, "trees_ms", "%.6g", cell_spread(paper, row, column, trees_ms).mean);
	json_put_number(json, "jct_s", "%.9f", result->jct_s);
	json_put_number(json, "jct_all_s", "%.9f", result->jct_all_s);
	json_put_number(json, "jct_none_s", "%.9f", result->jct_none_s);
	if (about->reference && about->reference[row].score > 0) {
		json_put_number(json, "paper_score", "%.9g", about->reference[row].score);
		json_put_number(json, "paper_utilization", "%.9g",
		                about->reference[row].utilization);
	}
	json_open_object(json, "settings");
	sim_options_json(json, &tasks[0]);
	json_close(json);
	json_close(json);
}

static void table_json(const struct paper *paper)
{
	const struct paper_about *about = paper->about;
	struct json_writer json = { .out = stdout };

	json_open_object(&json, NULL);
	json_put_text(&json, "paper", about->name);
	json_put_count(&json, "seed", paper->setup->seed);
	json_put_count(&json, "seeds", paper->seeds);
	if (about->jobs != PAPER_JOBS_PAIRS)
		sim_jobs_json(&json, paper->setup);
	json_open_list(&json, "cells");
	for (unsigned i = 0; i < about->rows * about->columns; i++)
		cell_json(&json, paper, i / about->columns, i % about->columns);
	json_close(&json);
	json_close(&json);
}

/* ---- pictures ---- */

static trib_status figure_plot(const struct paper *paper, const char *what, sim_figure *figure,
                               double scale, const char *y_title)
{
	const struct paper_about *about = paper->about;
	struct chart *chart = calloc(1, sizeof(*chart));
	char path[PATH_ROOM], x_title[128], first[NAME_ROOM], last[NAME_ROOM];
	trib_status status;

	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	about->row_name(0, first, sizeof(first));
	about->row_name(about->rows - 1, last, sizeof(last));
	snprintf(x_title, sizeof(x_title), "from %s to %s", first, last);
	chart->title = about->title;
	chart->subtitle = "simulated; bars are the spread over seeds";
	chart->x_title = x_title;
	chart->y_title = y_title;
	chart->y_format = "%.3f";
	chart->n = about->columns;
	for (unsigned column = 0; column < about->columns; column++) {
		struct chart_line *line = &chart->lines[column];
		unsigned n = about->rows < CHART_POINTS_MAX ? about->rows : CHART_POINTS_MAX;

		line->name = about->columns > 1 ? about->column_names[column] : what;
		for (unsigned i = 0; i < n; i++) {
			unsigned row = n > 1 ? i * (about->rows - 1) / (n - 1) : 0;
			struct sim_spread spread = cell_spread(paper, row, column, figure);

			line->points[line->n++] =
				(struct chart_point){ about->at ? about->at[row] : row + 1,
				                      spread.mean * scale, spread.low * scale,
				                      spread.high * scale };
		}
	}
	snprintf(path, sizeof(path), "%s-%s-%s.svg", paper->setup->plot, about->name, what);
	status = chart_write(chart, path);
	free(chart);
	return status;
}

trib_status paper_show(const struct paper *paper)
{
	trib_status status = TRIB_OK;

	if (paper->setup->json)
		table_json(paper);
	else
		table_print(paper);
	if (paper->setup->plot)
		status = figure_plot(paper, "score", sim_score, 1,
		                     "score: 0 no aggregation, 1 all of it");
	if (status == TRIB_OK && paper->setup->plot)
		status = figure_plot(paper, "gain", sim_gain, 100, "% of completion time saved");
	return status;
}
