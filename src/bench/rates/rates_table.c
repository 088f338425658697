/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rates/rates_table.h"

#include "bench/report/samples.h"
#include "bench/report/chart.h"
#include "bench/report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const phase_names[HALVE_PHASES] = { "before", "slow", "restored" };

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

/* "no": it has not settled. */
static const char *settled_text(double seconds, char out[16])
{
	if (seconds < 0)
		snprintf(out, 16, "no");
	else
		snprintf(out, 16, "%.2f s", seconds);
	return out;
}

enum column { PLANE, LINK, SENT, SUMMED, LOWEST, SETTLED, VARIES, REPEATED, COLUMNS };

/* ---- the first run on each plane ---- */

static const struct table_column columns[COLUMNS] = {
	[PLANE] = { .header = "plane" },
	[LINK] = { .header = "link" },
	[SENT] = { .header = "sent", .format = "%.1f", .scale = 1e-6 },
	[SUMMED] = { .header = "summed", .format = "%.1f", .scale = 1e-6 },
	[LOWEST] = { .header = "lowest", .format = "%.1f", .scale = 1e-6 },
	[SETTLED] = { .header = "settled in", .format = "%.2f" },
	[VARIES] = { .header = "varies", .format = "%.0f", .scale = 100, .unit = " %" },
	[REPEATED] = { .header = "repeated", .format = "%.2f", .scale = 100, .unit = " %" },
};

static void phase_fill(struct table *table, const struct halve_result *r, unsigned i)
{
	const struct halve_phase *p = &r->phases[i];
	char text[16];

	table_add(table);
	table_text(table, PLANE, i ? "" : r->plane);
	table_text(table, LINK, phase_names[i]);
	table_number(table, SENT, p->level_bps);
	table_number(table, SUMMED, p->goodput_bps);
	table_number(table, LOWEST, p->lowest_bps);
	table_text(table, SETTLED, i ? settled_text(p->settled_s, text) : "");
	table_number(table, VARIES, p->ripple);
	table_number(table, REPEATED, share(p->resent, p->sent));
}

static void result_fill(struct table *table, const struct halve_result *r)
{
	if (r->why[0]) {
		table_add(table);
		table_text(table, PLANE, r->plane);
		table_note(table, "%s", r->why);
		return;
	}
	for (unsigned phase = 0; phase < HALVE_PHASES; phase++)
		phase_fill(table, r, phase);
	table_add(table);
	table_text(table, PLANE, "");
	table_note(table, "%llu sums, %s; cores: workers %.2f, aggregator %.2f",
	           (unsigned long long)r->rounds, r->wrong ? "WRONG ones among them" : "all right",
	           r->worker_cpu, r->aggregator_cpu);
}

/* ---- least and most of all runs ---- */

static const struct table_column spread_columns[COLUMNS] = {
	[PLANE] = { .header = "plane" },
	[LINK] = { .header = "link" },
	[SENT] = { .header = "sent", .format = "%g" },
	[LOWEST] = { .header = "lowest", .format = "%g" },
	[SETTLED] = { .header = "settled in", .format = "%g" },
	[VARIES] = { .header = "varies", .format = "%g" },
	[REPEATED] = { .header = "repeated", .format = "%g" },
};

struct spread {
	double least, most;
};

static void spread_add(struct spread *spread, double value)
{
	spread->least = fmin(spread->least, value);
	spread->most = fmax(spread->most, value);
}

static void spread_text(struct table *table, unsigned column, const char *format,
                        const struct spread *spread)
{
	char text[64];

	snprintf(text, sizeof(text), format, spread->least, spread->most);
	table_text(table, column, text);
}

static void spread_fill(struct table *table, const struct rates_report *report, unsigned plane,
                        unsigned phase)
{
	struct spread sent, lowest, settled, ripple, resent;
	char text[16], all[32];

	sent = lowest = settled = ripple = resent = (struct spread){ INFINITY, -INFINITY };
	for (unsigned i = plane; i < report->n; i += report->planes) {
		const struct halve_phase *p = &report->results[i].phases[phase];

		if (report->results[i].why[0])
			continue;
		spread_add(&sent, p->level_bps / 1e6);
		spread_add(&lowest, p->lowest_bps / 1e6);
		spread_add(&settled, p->settled_s < 0 ? INFINITY : p->settled_s);
		spread_add(&ripple, p->ripple * 100);
		spread_add(&resent, share(p->resent, p->sent) * 100);
	}
	if (!isfinite(sent.least))
		return;
	settled_text(isfinite(settled.most) ? settled.most : -1, text);
	if (isfinite(settled.least))
		snprintf(all, sizeof(all), "%.2f .. %s", settled.least, text);
	else
		snprintf(all, sizeof(all), "no");
	table_add(table);
	table_text(table, PLANE, phase == 1 ? report->results[plane].plane : "");
	table_text(table, LINK, phase_names[phase]);
	spread_text(table, SENT, "%5.1f .. %5.1f", &sent);
	spread_text(table, LOWEST, "%5.1f .. %5.1f", &lowest);
	table_text(table, SETTLED, all);
	spread_text(table, VARIES, "%.0f .. %2.0f %%", &ripple);
	spread_text(table, REPEATED, "%.2f .. %5.2f %%", &resent);
}

static void spreads_print(const struct rates_report *report)
{
	struct table table;

	if (!report->planes || report->n <= report->planes)
		return;
	printf("\nleast and most of %u runs of each plane; the table above is the first run\n\n",
	       report->n / report->planes);
	table_open(&table, spread_columns, COLUMNS);
	for (unsigned plane = 0; plane < report->planes; plane++)
		for (unsigned phase = 1; phase < HALVE_PHASES; phase++)
			spread_fill(&table, report, plane, phase);
	table_print(&table, stdout);
	table_close(&table);
}

/* ---- how long an agreement takes ---- */

static void agreed_print(const struct rates_report *report)
{
	static const char *const texts[AGREE_WHATS] = {
		"from a job's first JOIN until all of its workers know their rate",
		"from when another job begins to send until all workers know less",
		"from when it ends until all know more",
	};

	for (unsigned i = 0; i < report->n_agreed; i++) {
		const struct agree_result *r = &report->agreed[i];
		char title[64];
		const struct table_column times[] = {
			{ .header = title },
			{ .header = "median", .format = "%.2f", .scale = 1e3, .unit = " ms" },
			{ .header = "90 %", .format = "%.2f", .scale = 1e3, .unit = " ms" },
			{ .header = "max", .format = "%.2f", .scale = 1e3, .unit = " ms" },
		};
		struct table table;

		snprintf(title, sizeof(title), "%s, %u times:",
		         r->levels == 1 ? "one aggregator" : "two and a root above", r->n);
		table_open(&table, times, sizeof(times) / sizeof(times[0]));
		for (unsigned k = 0; k < AGREE_WHATS; k++) {
			table_add(&table);
			table_text(&table, 0, texts[k]);
			table_number(&table, 1, stats_percentile(r->times[k], r->n, 50));
			table_number(&table, 2, stats_percentile(r->times[k], r->n, 90));
			table_number(&table, 3, r->times[k][r->n - 1]);
		}
		table_print(&table, stdout);
		table_close(&table);
	}
	if (report->n_agreed)
		printf("\n");
}

void rates_print(const struct rates_report *report)
{
	const struct halve_options *o = &report->halve;
	struct table table;

	agreed_print(report);
	if (!report->n)
		return;
	printf("%u workers, links of %g Mb/s; the aggregator's gets %g Mb/s for %g s and then %g\n"
	       "again. Mb/s of a worker; sent in windows of %g ms\n\n",
	       o->workers, (double)o->link_bps / 1e6, (double)o->slow_bps / 1e6, o->phase_s,
	       (double)o->link_bps / 1e6, o->window_s * 1e3);
	table_open(&table, columns, COLUMNS);
	for (unsigned i = 0; i < report->n && i < report->planes; i++)
		result_fill(&table, &report->results[i]);
	table_print(&table, stdout);
	table_close(&table);
	spreads_print(report);
}

/* ---- for programs ---- */

static void agreed_write(struct json_writer *json, const struct rates_report *report)
{
	static const char *const names[AGREE_WHATS] = { "first_s", "begins_s", "ends_s" };

	json_open_list(json, "agreed");
	for (unsigned i = 0; i < report->n_agreed; i++) {
		const struct agree_result *r = &report->agreed[i];

		json_open_object(json, NULL);
		json_put_count(json, "levels", r->levels);
		for (unsigned k = 0; k < AGREE_WHATS; k++)
			json_put_numbers(json, names[k], "%.6f", r->times[k], r->n);
		json_close(json);
	}
	json_close(json);
}

static void phases_write(struct json_writer *json, const struct halve_result *r)
{
	json_open_list(json, "phases");
	for (unsigned i = 0; i < HALVE_PHASES; i++) {
		const struct halve_phase *p = &r->phases[i];

		json_open_object(json, NULL);
		json_put_text(json, "link", phase_names[i]);
		json_put_number(json, "sent_bps", "%.0f", p->level_bps);
		json_put_number(json, "summed_bps", "%.0f", p->goodput_bps);
		json_put_number(json, "lowest_bps", "%.0f", p->lowest_bps);
		json_put_number(json, "settled_s", "%.3f", p->settled_s);
		json_put_number(json, "ripple", "%.4f", p->ripple);
		json_put_count(json, "sent_packets", p->sent);
		json_put_count(json, "resent_packets", p->resent);
		json_close(json);
	}
	json_close(json);
}

static void planes_write(struct json_writer *json, const struct rates_report *report)
{
	json_open_list(json, "planes");
	for (unsigned i = 0; i < report->n; i++) {
		const struct halve_result *r = &report->results[i];

		json_open_object(json, NULL);
		json_put_text(json, "plane", r->plane);
		json_put_count(json, "run", i / report->planes);
		json_put_text(json, "error", r->why[0] ? r->why : NULL);
		json_put_count(json, "rounds", r->rounds);
		json_put_count(json, "wrong", r->wrong);
		json_put_number(json, "worker_cores", "%.3f", r->worker_cpu);
		json_put_number(json, "aggregator_cores", "%.3f", r->aggregator_cpu);
		phases_write(json, r);
		json_put_numbers(json, "bps", "%.0f", r->bps, r->n);
		json_close(json);
	}
	json_close(json);
}

trib_status rates_json(const struct rates_report *report, const char *path)
{
	const struct halve_options *o = &report->halve;
	struct json_writer json;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	json_put_count(&json, "workers", o->workers);
	json_put_count(&json, "link_bps", o->link_bps);
	json_put_count(&json, "slow_bps", o->slow_bps);
	json_put_number(&json, "phase_s", "%g", o->phase_s);
	json_put_number(&json, "window_s", "%g", o->window_s);
	json_put_count(&json, "vector_bytes", o->bytes);
	agreed_write(&json, report);
	planes_write(&json, report);
	return json_finish(&json, path);
}

/* ---- drawn ---- */

/* The dashed line: each worker's share of the aggregator's link. */
static void link_draw(const struct rates_report *report, struct chart_line *line)
{
	const struct halve_options *o = &report->halve;
	double fast = (double)o->link_bps / o->workers / 1e6;
	double slow = (double)o->slow_bps / o->workers / 1e6;
	const double steps[][2] = { { 0, fast },
		                    { o->phase_s, fast },
		                    { o->phase_s, slow },
		                    { 2 * o->phase_s, slow },
		                    { 2 * o->phase_s, fast },
		                    { 3 * o->phase_s, fast } };

	line->name = "the link's share";
	line->dashed = true;
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		line->points[line->n++] =
			(struct chart_point){ .x = steps[i][0], .y = steps[i][1] };
}

trib_status rates_plot(const struct rates_report *report, const char *path)
{
	static struct chart chart;
	static char subtitle[160];
	const struct halve_options *o = &report->halve;

	snprintf(subtitle, sizeof(subtitle),
	         "%u workers; the aggregator's link has %g Mb/s, then %g, then %g again; windows "
	         "of %g ms",
	         o->workers, (double)o->link_bps / 1e6, (double)o->slow_bps / 1e6,
	         (double)o->link_bps / 1e6, o->window_s * 1e3);
	chart = (struct chart){ .title = "What a worker sends when a link slows down under load",
		                .subtitle = subtitle,
		                .x_title = "seconds",
		                .y_title = "Mb/s of a worker",
		                .y_format = "%.0f" };
	for (unsigned i = 0; i < report->n && i < report->planes; i++) {
		const struct halve_result *r = &report->results[i];
		struct chart_line *line = &chart.lines[chart.n];

		if (r->why[0])
			continue;
		chart.n++;
		line->name = r->plane;
		for (unsigned k = 0; k < r->n && k < HALVE_WINDOWS_MAX; k++)
			line->points[line->n++] =
				(struct chart_point){ .x = (k + 0.5) * r->window_s,
				                      .y = r->bps[k] / 1e6 };
	}
	link_draw(report, &chart.lines[chart.n++]);
	return chart_write(&chart, path);
}
