/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rates_show.h"

#include "cli/bench_stats.h"
#include "cli/chart.h"
#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const phase_names[HALVE_PHASES] = { "before", "slow", "restored" };

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static const char *settled_text(double seconds, char out[16])
{
	if (seconds < 0)
		snprintf(out, 16, "no");
	else
		snprintf(out, 16, "%.2f s", seconds);
	return out;
}

static void phase_print(const struct halve_result *r, unsigned i)
{
	const struct halve_phase *p = &r->phases[i];
	char text[16];

	printf("%-6s %-9s %10.1f %10.1f %10.1f %12s %8.0f %% %9.2f %%\n", i ? "" : r->plane,
	       phase_names[i], p->level_bps / 1e6, p->goodput_bps / 1e6, p->lowest_bps / 1e6,
	       i ? settled_text(p->settled_s, text) : "", p->ripple * 100,
	       share(p->resent, p->sent) * 100);
}

/* Of all runs on a plane: the least and the most. */
struct spread {
	double least, most;
};

static void spread_add(struct spread *spread, double value)
{
	spread->least = fmin(spread->least, value);
	spread->most = fmax(spread->most, value);
}

static void spread_print(const struct rates_report *report, unsigned plane, unsigned phase)
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
	printf("%-6s %-9s %5.1f .. %5.1f %6.1f .. %5.1f %15s %4.0f .. %2.0f %% %6.2f .. %5.2f %%\n",
	       phase == 1 ? report->results[plane].plane : "", phase_names[phase], sent.least,
	       sent.most, lowest.least, lowest.most, all, ripple.least, ripple.most, resent.least,
	       resent.most);
}

static void spreads_print(const struct rates_report *report)
{
	if (!report->planes || report->n <= report->planes)
		return;
	printf("\nleast and most of %u runs, planes in turn; above, the first\n\n"
	       "%-6s %-9s %14s %15s %15s %12s %18s\n",
	       report->n / report->planes, "plane", "link", "sent", "lowest", "settled in",
	       "varies", "repeated");
	for (unsigned plane = 0; plane < report->planes; plane++)
		for (unsigned phase = 1; phase < HALVE_PHASES; phase++)
			spread_print(report, plane, phase);
}

static const char *const agree_names[AGREE_WHATS] = { "first_s", "begins_s", "ends_s" };

static void agreed_print(const struct rates_report *report)
{
	static const char *const texts[AGREE_WHATS] = {
		"from a job's first JOIN until all of its workers know their rate",
		"from when another job begins to send until all workers know less",
		"from when it ends until all know more",
	};

	for (unsigned i = 0; i < report->n_agreed; i++) {
		const struct agree_result *r = &report->agreed[i];

		printf("%s, %u times:%*s median      90 %%       max\n",
		       r->levels == 1 ? "one aggregator" : "two and a root above", r->n,
		       r->levels == 1 ? 44 : 38, "");
		for (unsigned k = 0; k < AGREE_WHATS; k++)
			printf("  %-66s %7.2f ms %6.2f ms %6.2f ms\n", texts[k],
			       stats_percentile(r->times[k], r->n, 50) * 1e3,
			       stats_percentile(r->times[k], r->n, 90) * 1e3,
			       r->times[k][r->n - 1] * 1e3);
	}
	if (report->n_agreed)
		printf("\n");
}

static void agreed_write(FILE *out, const struct rates_report *report)
{
	fprintf(out, "\n  \"agreed\": [");
	for (unsigned i = 0; i < report->n_agreed; i++) {
		const struct agree_result *r = &report->agreed[i];

		fprintf(out, "%s\n    { \"levels\": %u", i ? "," : "", r->levels);
		for (unsigned k = 0; k < AGREE_WHATS; k++) {
			fprintf(out, ", \"%s\": [", agree_names[k]);
			for (unsigned j = 0; j < r->n; j++)
				fprintf(out, "%s%.6f", j ? ", " : "", r->times[k][j]);
			fprintf(out, "]");
		}
		fprintf(out, " }");
	}
	fprintf(out, " ],");
}

void rates_print(const struct rates_report *report)
{
	const struct halve_options *o = &report->halve;

	agreed_print(report);
	if (!report->n)
		return;
	printf("%u workers, links of %g Mb/s; the aggregator's gets %g Mb/s for %g s and then %g\n"
	       "again. Mb/s of a worker; sent in windows of %g ms\n\n"
	       "%-6s %-9s %10s %10s %10s %12s %10s %11s\n",
	       o->workers, (double)o->link_bps / 1e6, (double)o->slow_bps / 1e6, o->phase_s,
	       (double)o->link_bps / 1e6, o->window_s * 1e3, "plane", "link", "sent", "summed",
	       "lowest", "settled in", "varies", "repeated");
	for (unsigned i = 0; i < report->n && i < report->planes; i++) {
		const struct halve_result *r = &report->results[i];

		if (r->why[0]) {
			printf("%-6s %s\n", r->plane, r->why);
			continue;
		}
		for (unsigned phase = 0; phase < HALVE_PHASES; phase++)
			phase_print(r, phase);
		printf("%-6s %llu sums, %s; cores: workers %.2f, aggregator %.2f\n", "",
		       (unsigned long long)r->rounds,
		       r->wrong ? "WRONG ones among them" : "all right", r->worker_cpu,
		       r->aggregator_cpu);
	}
	spreads_print(report);
}

static void phases_write(FILE *out, const struct halve_result *r)
{
	for (unsigned i = 0; i < HALVE_PHASES; i++) {
		const struct halve_phase *p = &r->phases[i];

		fprintf(out,
		        "%s\n      { \"link\": \"%s\", \"sent_bps\": %.0f, \"summed_bps\": %.0f, "
		        "\"lowest_bps\": %.0f, \"settled_s\": %.3f, \"ripple\": %.4f, "
		        "\"sent_packets\": %llu, "
		        "\"resent_packets\": %llu }",
		        i ? "," : "", phase_names[i], p->level_bps, p->goodput_bps, p->lowest_bps,
		        p->settled_s, p->ripple, (unsigned long long)p->sent,
		        (unsigned long long)p->resent);
	}
}

trib_status rates_json(const struct rates_report *report, const char *path)
{
	const struct halve_options *o = &report->halve;
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

	if (!out)
		return status_fail_errno("cannot write %s", path);
	fprintf(out,
	        "{ \"workers\": %u, \"link_bps\": %llu, \"slow_bps\": %llu, \"phase_s\": %g, "
	        "\"window_s\": %g, \"vector_bytes\": %llu,",
	        o->workers, (unsigned long long)o->link_bps, (unsigned long long)o->slow_bps,
	        o->phase_s, o->window_s, (unsigned long long)o->bytes);
	agreed_write(out, report);
	fprintf(out, "\n  \"planes\": [");
	for (unsigned i = 0; i < report->n; i++) {
		const struct halve_result *r = &report->results[i];

		fprintf(out, "%s\n    { \"plane\": \"%s\", \"run\": %u, \"error\": ", i ? "," : "",
		        r->plane, i / report->planes);
		json_print_text(out, r->why[0] ? r->why : NULL);
		fprintf(out,
		        ", \"rounds\": %llu, \"wrong\": %llu, \"worker_cores\": %.3f, "
		        "\"aggregator_cores\": %.3f, \"phases\": [",
		        (unsigned long long)r->rounds, (unsigned long long)r->wrong, r->worker_cpu,
		        r->aggregator_cpu);
		phases_write(out, r);
		fprintf(out, " ],\n      \"bps\": [");
		for (unsigned k = 0; k < r->n; k++)
			fprintf(out, "%s%.0f", k ? ", " : "", r->bps[k]);
		fprintf(out, "] }");
	}
	fprintf(out, " ] }\n");
	return fclose(out) ? status_fail_errno("cannot write %s", path) : TRIB_OK;
}

/* What the aggregator's link leaves each worker, as a dashed line. */
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
