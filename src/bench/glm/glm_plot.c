/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the time of an epoch, or the loss against time: a line for each system. */
#include "bench/glm/glm_bench.h"
#include "bench/report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

_Static_assert(GLM_SYSTEMS_MAX <= CHART_LINES_MAX && GLM_EPOCHS_MAX <= CHART_POINTS_MAX,
               "all systems are in one chart");

/* What changes along a line. */
enum axis { BY_HOSTS, BY_BATCH, BY_FEATURES };

static const char *const axis_titles[] = { "hosts", "rows of a mini-batch", "features" };

static enum axis axis_choose(const struct glm_bench_options *o)
{
	return o->n_hosts > 1 ? BY_HOSTS : o->n_batches > 1 ? BY_BATCH : BY_FEATURES;
}

static double axis_value(const struct glm_case *row, enum axis axis)
{
	return axis == BY_HOSTS
	               ? row->place->workers
	               : (double)(axis == BY_BATCH ? row->shape.batch : row->shape.features);
}

/* One of each number that does not change along a line. */
struct chart_scope {
	const struct bench_place *place;
	uint64_t features, batch;
	unsigned bits;
};

static bool is_in(const struct glm_case *row, const struct chart_scope *only, enum axis axis)
{
	return (axis == BY_HOSTS || row->place == only->place) &&
	       (axis == BY_BATCH || row->shape.batch == only->batch) &&
	       (axis == BY_FEATURES || row->shape.features == only->features) &&
	       row->shape.bits == only->bits;
}

static void times_add(struct chart *chart, const struct glm_report *report, unsigned system,
                      const struct chart_scope *only, enum axis axis)
{
	static char names[GLM_SYSTEMS_MAX][64];
	struct chart_line *line = &chart->lines[chart->n];

	snprintf(names[system], sizeof(names[system]), "%s %s", report->systems[system].name,
	         report->systems[system].bed.plane);
	*line = (struct chart_line){ .name = names[system] };
	for (unsigned i = 0; i < report->n; i++) {
		const struct glm_case *row = &report->cases[i];
		double seconds = glm_epoch_s(report, i);

		if (row->of == &report->systems[system] && is_in(row, only, axis) &&
		    !isnan(seconds))
			line->points[line->n++] = (struct chart_point){ .x = axis_value(row, axis),
				                                        .y = 1e3 * seconds };
	}
	chart->n += line->n > 0;
}

static void losses_add(struct chart *chart, const struct glm_report *report, unsigned row)
{
	static char names[GLM_CASES_MAX][64];
	const struct glm_curve *curve = &report->curves[row];
	struct chart_line *line = &chart->lines[chart->n];

	snprintf(names[row], sizeof(names[row]), "%s %s", report->cases[row].of->name,
	         report->cases[row].system.plane);
	*line = (struct chart_line){ .name = names[row] };
	for (unsigned e = 0; e < curve->n; e++)
		line->points[line->n++] = (struct chart_point){ .x = curve->epochs[e].at_s,
			                                        .y = curve->epochs[e].loss };
	chart->n += line->n > 0;
}

static trib_status losses_draw(const struct glm_report *report, const char *path)
{
	static struct chart chart;
	char where[256];

	bench_place_describe(&report->bed, where, sizeof(where));
	chart = (struct chart){ .title = "Loss of a linear model against time",
		                .subtitle = where,
		                .x_title = "seconds of training",
		                .y_title = "mean loss",
		                .y_format = "%.3f" };
	for (unsigned i = 0; i < report->n; i++)
		losses_add(&chart, report, i);
	return chart_write(&chart, path);
}

static trib_status times_draw(const struct glm_report *report, const struct chart_scope *only,
                              enum axis axis, const char *path)
{
	static struct chart chart;
	char where[256], subtitle[400], bits[16];

	bench_place_describe(only->place, where, sizeof(where));
	glm_bits_text(only->bits, bits, sizeof(bits));
	if (axis == BY_HOSTS)
		snprintf(subtitle, sizeof(subtitle), "%" PRIu64 " features, batch %" PRIu64 ", %s",
		         only->features, only->batch, bits);
	else if (axis == BY_BATCH)
		snprintf(subtitle, sizeof(subtitle), "%" PRIu64 " features, %s; %s", only->features,
		         bits, where);
	else
		snprintf(subtitle, sizeof(subtitle), "batch %" PRIu64 ", %s; %s", only->batch, bits,
		         where);
	chart = (struct chart){ .title = "Time of an epoch of a linear model",
		                .subtitle = subtitle,
		                .x_title = axis_titles[axis],
		                .y_title = "milliseconds",
		                .y_format = "%.3g",
		                .x_log = true,
		                .y_log = true };
	for (unsigned system = 0; system < report->n_systems; system++)
		times_add(&chart, report, system, only, axis);
	return chart.n ? chart_write(&chart, path) : TRIB_OK;
}

/* FILE, or FILE-FEATURES, FILE-FEATURES-BATCH and so on if there are several charts. */
static void name_make(const struct glm_bench_options *o, enum axis axis,
                      const struct chart_scope *only, char *suffix, size_t room)
{
	int used = 0;

	suffix[0] = '\0';
	if (o->n_features > 1 && axis != BY_FEATURES)
		used += snprintf(suffix, room, "-%" PRIu64, only->features);
	if (o->n_batches > 1 && axis != BY_BATCH)
		used += snprintf(suffix + used, room - (size_t)used, "-b%" PRIu64, only->batch);
	if (o->n_bits > 1)
		snprintf(suffix + used, room - (size_t)used, "-%ubit", only->bits);
}

trib_status glm_plot_write(const void *context, const char *path)
{
	const struct glm_report *report = context;
	const struct glm_bench_options *o = report->options;
	enum axis axis = axis_choose(o);
	trib_status status = TRIB_OK;
	char own[4096], suffix[64];

	if (o->n_hosts * o->n_features * o->n_batches * o->n_bits == 1)
		return losses_draw(report, path);
	for (unsigned f = 0; f < (axis == BY_FEATURES ? 1 : o->n_features); f++)
		for (unsigned b = 0; b < (axis == BY_BATCH ? 1 : o->n_batches); b++)
			for (unsigned k = 0; k < o->n_bits && status == TRIB_OK; k++) {
				struct chart_scope only = { &report->places[0], o->features[f],
					                    o->batches[b], o->bits[k] };

				name_make(o, axis, &only, suffix, sizeof(suffix));
				chart_path(own, sizeof(own), path, suffix);
				status = times_draw(report, &only, axis, own);
			}
	return status;
}
