/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of simulations: gain and score over seeds; the cluster over time. */
#include "bench/report/chart.h"
#include "bench/report/samples.h"
#include "cli/sim/sim_command.h"

#include <stdlib.h>

#define PATH_ROOM 4096

/* A value of a sample and of the sample before it. */
typedef double sample_figure(const struct sim_sample *now, const struct sim_sample *before);

static double running(const struct sim_sample *now, const struct sim_sample *before)
{
	(void)before;
	return now->running;
}

static double conflicted(const struct sim_sample *now, const struct sim_sample *before)
{
	(void)before;
	return now->conflicted;
}

static double fragments(const struct sim_sample *now, const struct sim_sample *before)
{
	(void)before;
	return now->fragments;
}

static double utilization(const struct sim_sample *now, const struct sim_sample *before)
{
	double ran = now->run_s - before->run_s;

	return ran > 0 ? 100 * (now->aggregated_s - before->aggregated_s) / ran : 0;
}

/* Groups the samples into as many groups as a chart has points, and takes the mean of each. */
static void line_fill(struct chart_line *line, const char *name, const struct sim_task *task,
                      sample_figure *figure)
{
	unsigned groups = task->n_samples < CHART_POINTS_MAX ? task->n_samples : CHART_POINTS_MAX;

	line->name = name;
	for (unsigned g = 0; g < groups; g++) {
		unsigned from = task->n_samples * g / groups,
			 to = task->n_samples * (g + 1) / groups;
		struct chart_point point = { 0 };

		for (unsigned i = from; i < to; i++) {
			static const struct sim_sample start;
			const struct sim_sample *now = &task->samples[i];

			point.x += now->time_s / (to - from);
			point.y += figure(now, i ? now - 1 : &start) / (to - from);
		}
		point.low = point.high = point.y;
		line->points[line->n++] = point;
	}
}

static struct chart *chart_new(const char *title, const char *subtitle, const char *x_title,
                               const char *y_title)
{
	struct chart *chart = calloc(1, sizeof(*chart));

	if (chart) {
		chart->title = title;
		chart->subtitle = subtitle;
		chart->x_title = x_title;
		chart->y_title = y_title;
		chart->y_format = "%.2f";
	}
	return chart;
}

static trib_status chart_end(struct chart *chart, const char *prefix, const char *name)
{
	char path[PATH_ROOM];
	trib_status status;

	snprintf(path, sizeof(path), "%s-%s.svg", prefix, name);
	status = chart_write(chart, path);
	free(chart);
	return status;
}

static trib_status time_plot(const struct sim_setup *setup, const struct sim_task *task,
                             const char *subtitle)
{
	struct chart *chart =
		chart_new("Jobs, conflicts and fragments", subtitle, "seconds", "number");
	trib_status status;

	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	chart->y_format = "%.0f";
	line_fill(&chart->lines[chart->n++], "jobs running", task, running);
	line_fill(&chart->lines[chart->n++], "jobs in conflict", task, conflicted);
	line_fill(&chart->lines[chart->n++], "free fragments", task, fragments);
	if ((status = chart_end(chart, setup->plot, "time")) != TRIB_OK)
		return status;
	chart = chart_new("Utilization of aggregation", subtitle, "seconds",
	                  "aggregated, % of jobs' time");
	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	line_fill(&chart->lines[chart->n++], "utilization", task, utilization);
	return chart_end(chart, setup->plot, "utilization");
}

/* Draws the figure of all seeds in ascending order, which shows the spread. */
static trib_status seeds_line(struct chart_line *line, const char *name,
                              const struct sim_task *tasks, unsigned n, sim_figure *figure,
                              double scale)
{
	double *values = calloc(n, sizeof(*values));

	if (!values)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u seeds", n);
	for (unsigned i = 0; i < n; i++)
		values[i] = scale * figure(&tasks[i].result);
	stats_sort(values, n);
	line->name = name;
	line->n = n < CHART_POINTS_MAX ? n : CHART_POINTS_MAX;
	for (unsigned i = 0; i < line->n; i++) {
		double value = values[line->n > 1 ? i * (n - 1) / (line->n - 1) : 0];

		line->points[i] = (struct chart_point){ i + 1, value, value, value };
	}
	free(values);
	return TRIB_OK;
}

static trib_status seeds_plot(const struct sim_setup *setup, const struct sim_task *tasks,
                              unsigned n, const char *subtitle)
{
	struct chart *chart = chart_new("Completion time saved", subtitle,
	                                "seeds, from the lowest to the highest",
	                                "% of the time without aggregation");
	trib_status status;

	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	status = seeds_line(&chart->lines[0], "saved", tasks, n, sim_gain, 100);
	if (status == TRIB_OK)
		status =
			seeds_line(&chart->lines[1], "all aggregated", tasks, n, sim_gain_all, 100);
	chart->lines[1].dashed = true;
	chart->n = 2;
	if (status == TRIB_OK)
		return chart_end(chart, setup->plot, "gain");
	free(chart);
	return status;
}

static trib_status score_plot(const struct sim_setup *setup, const struct sim_task *tasks,
                              unsigned n, const char *subtitle)
{
	struct chart *chart =
		chart_new("Efficiency score", subtitle, "seeds, from the lowest to the highest",
	                  "0: no aggregation, 1: all of it");
	trib_status status;

	if (!chart)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a chart");
	chart->y_format = "%.4f";
	chart->n = 1;
	status = seeds_line(&chart->lines[0], "score", tasks, n, sim_score, 1);
	if (status == TRIB_OK)
		return chart_end(chart, setup->plot, "score");
	free(chart);
	return status;
}

trib_status sim_plot(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n)
{
	const struct sim_options *options = &tasks[0].input.options;
	char what[128], subtitle[160];
	trib_status status;

	snprintf(what, sizeof(what), "%u hosts, %u jobs; placement %s, trees %s, sharing %s",
	         tasks[0].input.fabric.hosts, tasks[0].input.n_jobs,
	         placement_name(options->placement), trees_name(options->trees),
	         sharing_name(options->sharing));
	snprintf(subtitle, sizeof(subtitle), "%s; seed %llu", what,
	         (unsigned long long)options->seed);
	if ((status = time_plot(setup, &tasks[0], subtitle)) != TRIB_OK)
		return status;
	snprintf(subtitle, sizeof(subtitle), "%s; %u seed%s", what, n, n == 1 ? "" : "s");
	if ((status = seeds_plot(setup, tasks, n, subtitle)) != TRIB_OK)
		return status;
	return score_plot(setup, tasks, n, subtitle);
}
