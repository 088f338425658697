/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/path/bench_path.h"

#include "bench/report/chart.h"
#include "bench/report/table.h"

#include <stdio.h>

enum column {
	TRANSPORT,
	PATHS,
	BYTES,
	CHUNK,
	GBPS,
	SHARE,
	LATENCY,
	MICE,
	MICE_P99,
	CPU,
	REPEATED,
	EACH,
	NOTE,
	COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	[TRANSPORT] = { .header = "transport", .field = "transport" },
	[PATHS] = { .header = "paths", .format = "%.0f", .field = "paths", .json = "%.0f" },
	[BYTES] = { .header = "message", .format = "%.0f", .field = "bytes", .json = "%.0f" },
	[CHUNK] = { .header = "chunk",
	            .format = "%.0f",
	            .positive = true,
	            .field = "chunk",
	            .json = "%.0f" },
	[GBPS] = { .header = "Gb/s", .format = "%.3f", .field = "gbps", .json = "%.6g" },
	[SHARE] = { .header = "of sum",
	            .format = "%.1f",
	            .scale = 100,
	            .unit = " %",
	            .positive = true,
	            .field = "share_of_sum",
	            .json = "%.4g" },
	[LATENCY] = { .header = "token",
	              .show = table_seconds,
	              .positive = true,
	              .field = "token_s",
	              .json = "%.6g" },
	[MICE] = { .header = "mice",
	           .show = table_seconds,
	           .positive = true,
	           .field = "mice_s",
	           .json = "%.6g" },
	[MICE_P99] = { .header = "p99",
	               .show = table_seconds,
	               .positive = true,
	               .field = "mice_p99_s",
	               .json = "%.6g" },
	[CPU] = { .header = "cores", .format = "%.2f", .field = "cores", .json = "%.4g" },
	[REPEATED] = { .header = "repeated",
	               .format = "%.2f",
	               .scale = 100,
	               .unit = " %",
	               .field = "repeated",
	               .json = "%.4g" },
	[EACH] = { .header = "Gb/s of each path", .field = "each" },
	[NOTE] = { .field = "note" },
};

const char *path_transport_name(enum path_transport transport)
{
	static const char *const names[TRANSPORTS] = { "ours", "ecmp", "mptcp", "tcp" };

	return names[transport];
}

static void each_text(const struct path_row *row, char *out, size_t size)
{
	int at = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < row->what.paths && at >= 0 && (size_t)at < size; i++)
		at += snprintf(out + at, size - (size_t)at, "%s%.3f", i ? " " : "", row->paths[i]);
}

static void fill(struct table *table, const struct path_row *rows, unsigned n)
{
	table_open(table, columns, COLUMNS);
	for (unsigned i = 0; i < n; i++) {
		const struct path_row *row = &rows[i];
		char each[160];

		table_add(table);
		table_text(table, TRANSPORT, path_transport_name(row->what.transport));
		table_number(table, PATHS, row->what.paths);
		table_number(table, BYTES, row->what.bytes);
		table_number(table, CHUNK, row->what.chunk);
		table_number(table, GBPS, row->gbps);
		table_number(table, SHARE, row->share_of_sum);
		table_number(table, LATENCY, row->latency_s);
		table_number(table, MICE, row->mice_s);
		table_number(table, MICE_P99, row->mice_p99_s);
		table_number(table, CPU, row->cpu);
		if (row->what.transport == TRANSPORT_OURS) {
			each_text(row, each, sizeof(each));
			table_number(table, REPEATED, row->repeated);
			table_text(table, EACH, each);
		}
		table_text(table, NOTE, row->note);
		if (row->note[0])
			table_note(table, "failed: %s", row->note);
	}
}

void path_table_print(const struct path_row *rows, unsigned n)
{
	struct table table;

	fill(&table, rows, n);
	table_print(&table, stdout);
	table_close(&table);
}

/* The curves of all rows, a point a row. */
static void fill_timeline(struct table *table, const struct path_row *rows, unsigned n)
{
	enum { RUN, WHO, AT, RATE, FIELDS };
	static const struct table_column fields[FIELDS] = {
		[RUN] = { .field = "run", .json = "%.0f" },
		[WHO] = { .field = "transport" },
		[AT] = { .field = "at_s", .json = "%.3f" },
		[RATE] = { .field = "gbps", .json = "%.4g" },
	};

	table_open(table, fields, FIELDS);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 1; k < rows[i].curve.n; k++) {
			table_add(table);
			table_number(table, RUN, i);
			table_text(table, WHO, path_transport_name(rows[i].what.transport));
			table_number(table, AT, rows[i].curve.points[k].at_s);
			table_number(table, RATE, path_curve_gbps(&rows[i].curve, k));
		}
}

trib_status path_json_write(const struct path_bed *bed, const struct path_row *rows, unsigned n,
                            const char *file)
{
	struct json_writer json;
	struct table table;
	trib_status status = json_start(&json, file);

	if (status != TRIB_OK)
		return status;
	json_put_numbers(&json, "path_bps", "%.0f", bed->bps, bed->paths);
	json_put_numbers(&json, "background", "%.3g", bed->load, bed->paths);
	fill(&table, rows, n);
	table_json(&table, &json, "rows");
	table_close(&table);
	if (n && rows[0].what.timeline) {
		fill_timeline(&table, rows, n);
		table_json(&table, &json, "timeline");
		table_close(&table);
	}
	return json_finish(&json, file);
}

/* Gb/s over time, of the first run of each transport. */
static trib_status plot_timeline(const struct path_row *rows, unsigned n, const char *file)
{
	static struct chart chart;
	bool drawn[TRANSPORTS] = { 0 };

	chart = (struct chart){ .title = "Bandwidth between two hosts while paths change",
		                .subtitle = "",
		                .x_title = "seconds",
		                .y_title = "Gb/s",
		                .y_format = "%.2f" };
	for (unsigned i = 0; i < n; i++) {
		struct chart_line *line = &chart.lines[chart.n];

		if (drawn[rows[i].what.transport] || rows[i].curve.n < 2)
			continue;
		drawn[rows[i].what.transport] = true;
		*line = (struct chart_line){ .name = path_transport_name(rows[i].what.transport) };
		for (unsigned k = 1; k < rows[i].curve.n && line->n < CHART_POINTS_MAX; k++)
			line->points[line->n++] =
				(struct chart_point){ .x = rows[i].curve.points[k].at_s,
				                      .y = path_curve_gbps(&rows[i].curve, k) };
		chart.n++;
	}
	return chart_write(&chart, file);
}

/* Gb/s over the number of paths; over the chunk, if there are several chunks. */
trib_status path_plot_write(const struct path_row *rows, unsigned n, const char *file)
{
	static struct chart chart;
	bool chunks = false;

	if (n && rows[0].what.timeline)
		return plot_timeline(rows, n, file);
	for (unsigned i = 1; i < n; i++)
		chunks |= rows[i].what.chunk != rows[0].what.chunk;
	chart = (struct chart){ .title = "Bandwidth between two hosts over several paths",
		                .subtitle = "",
		                .x_title = chunks ? "bytes of a chunk" : "paths",
		                .y_title = "Gb/s",
		                .y_format = "%.2f",
		                .x_log = chunks };
	for (unsigned t = 0; t < TRANSPORTS; t++) {
		struct chart_line *line = &chart.lines[chart.n];

		*line = (struct chart_line){ .name = path_transport_name((enum path_transport)t) };
		for (unsigned i = 0; i < n && line->n < CHART_POINTS_MAX; i++)
			if (rows[i].what.transport == t && !rows[i].note[0])
				line->points[line->n++] =
					(struct chart_point){ .x = chunks ? rows[i].what.chunk
					                                  : rows[i].what.paths,
					                      .y = rows[i].gbps };
		chart.n += line->n > 0;
	}
	return chart_write(&chart, file);
}
