/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of one packet where it is summed: its cell is found, its checksum
 * verified, and its elements added to a cell that has another child's already. The
 * kernel times the XDP program itself (BPF_PROG_TEST_RUN), without a network. The
 * other planes are timed in this process.
 */
#include "base/clock.h"
#include "base/status.h"
#include "bench/engine/bench_engine.h"
#include "bench/report/chart.h"
#include "bench/report/progress.h"
#include "bench/report/samples.h"
#include "bench/report/table.h"
#include "engine/dense.h"
#include "options/options.h"
#include "plane/xdp/xdp.h"
#include "wire/parse.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 32u /* elements of 4 bytes in a packet, as in XAgg's figures 6 and 7 */
#define STEP 32u
#define LAST 352u
#define SIZES (LAST / STEP)
#define FRONT (14u + 20u + 8u)
#define PORT 7700u
#define COOKIE 0x7472696275746172ull
#define BATCH 200000u

enum engine_plane { ENGINE_XDP, ENGINE_UDP, ENGINE_TCP, ENGINES };

static const char *const plane_names[ENGINES] = { "xdp", "udp", "tcp" };

struct engine_options {
	uint64_t repeats;
	const char *json, *plot;
};

struct bed {
	struct xdp_plane *kernel; /* NULL: XDP is not possible here */
	struct xdp_handle *handle;
	struct dense_lane *lane, own_lane;
	struct dense_pool pool;
	struct dense_cell cell;
	uint64_t sum[LAST * 4 / 8];
	uint64_t packet[(WIRE_HEADER + LAST * 4) / 8];
	uint8_t frame[FRONT + WIRE_HEADER + LAST * 4];
};

struct engine_row {
	double floats, integers; /* ns a packet */
	double low, high;        /* spread of the floats */
};

/* What the checksum covers beyond the packet, at position 0 of lane 0. */
static const struct wire_unsent unsent = { .proof = COOKIE ^ (1 << 16 | 1) };

/* A packet of child 0 of two, so that the cell is never complete. */
static void packet_make(struct bed *bed, unsigned elements, uint8_t op)
{
	struct wire_header *header = (void *)bed->packet;
	uint32_t bytes = WIRE_HEADER + elements * 4;
	uint8_t *front = bed->frame;

	memset(bed->packet, 0, sizeof(bed->packet));
	*header = (struct wire_header){
		.type = WIRE_DATA, .comm = 1, .op = op, .from = WIRE_ALL, .to = WIRE_ALL
	};
	for (unsigned i = 0; i < elements; i++)
		((uint32_t *)(void *)(header + 1))[i] = i * 2654435761u;
	wire_seal_fragment(bed->packet, bytes, &unsent);
	memset(front, 0, FRONT);
	front[12] = 8; /* IPv4 */
	front[14] = 0x45;
	front[23] = IPPROTO_UDP;
	*(uint16_t *)(void *)(front + 16) = htons((uint16_t)(28 + bytes));
	*(uint16_t *)(void *)(front + 36) = htons(PORT);
	*(uint16_t *)(void *)(front + 38) = htons((uint16_t)(8 + bytes));
	memcpy(front + FRONT, bed->packet, bytes);
}

static double time_kernel(struct bed *bed, unsigned elements)
{
	struct xdp_run run = { .in = bed->frame,
		               .bytes = FRONT + WIRE_HEADER + elements * 4,
		               .repeat = BATCH,
		               .again = true };

	dense_cell(&bed->pool, 0)->position = DENSE_EMPTY;
	return xdp_run(bed->kernel, &run) == TRIB_OK ? run.ns : 0;
}

/* udp: with the parser and the checksum. tcp: without, since TCP has its own. */
static double time_user(struct bed *bed, unsigned elements, bool parse)
{
	uint32_t bytes = WIRE_HEADER + elements * 4;
	uint64_t start, wrong = 0;

	bed->own_lane = (struct dense_lane){ .members = 3, .cells = 1, .payload = LAST * 4 };
	bed->cell.position = DENSE_EMPTY;
	start = clock_now();
	for (unsigned i = 0; i < BATCH; i++) {
		/* Keeps the compiler from moving work out of the loop. */
		__asm__ volatile("" : : "r"(bed->packet) : "memory");
		if (parse)
			wrong += wire_parse(bed->packet, bytes) != WIRE_SOUND ||
			         !wire_is_intact((const void *)bed->packet, bytes, &unsent);
		bed->cell.arrived = 0;
		wrong += dense_take(&bed->own_lane, &bed->cell, bed->sum,
		                    (const struct wire_header *)bed->packet,
		                    bed->packet + WIRE_HEADER / 8,
		                    bytes - WIRE_HEADER) != DENSE_ADDED;
	}
	return wrong ? 0 : (double)(clock_now() - start) / BATCH;
}

static double time_one(struct bed *bed, enum engine_plane plane, unsigned elements, uint8_t op)
{
	packet_make(bed, elements, op);
	return plane == ENGINE_XDP ? time_kernel(bed, elements)
	                           : time_user(bed, elements, plane == ENGINE_UDP);
}

static void bed_open(struct bed *bed)
{
	const struct xdp_options load = {
		.port = PORT, .lanes = 1, .payload = LAST * 4, .again = true
	};
	const struct xdp_lane_options lane = { .comm = 1,
		                               .cookie = COOKIE,
		                               .job = 1,
		                               .epoch = 1,
		                               .cells = 16,
		                               .payload = LAST * 4,
		                               .children = 2 };

	if (xdp_load(&load, &bed->kernel) == TRIB_OK &&
	    (bed->handle = xdp_handle_open(bed->kernel, &lane, &bed->lane, &bed->pool))) {
		bed->lane->members = 3;
		bed->lane->cells = 16;
		bed->lane->payload = LAST * 4;
		xdp_handle_start(bed->handle);
		return;
	}
	fprintf(stderr, "trib bench engine: without the xdp plane: %s\n", trib_last_error());
	xdp_close(bed->kernel);
	bed->kernel = NULL;
}

static void bed_close(struct bed *bed)
{
	if (bed->handle)
		xdp_handle_close(bed->handle);
	xdp_close(bed->kernel);
	free(bed);
}

/*
 * Measures all planes and sizes in turn, so that a change of the machine's load affects all
 * alike.
 */
static void rows_measure(struct bed *bed, struct engine_row rows[ENGINES][SIZES], unsigned repeats)
{
	double *times = calloc(2 * (size_t)repeats * ENGINES * SIZES, sizeof(*times));

	for (unsigned r = 0; times && r < repeats; r++)
		for (unsigned plane = bed->kernel ? 0 : ENGINE_UDP; plane < ENGINES; plane++)
			for (unsigned s = 0; s < SIZES; s++) {
				double *at = times + 2 * ((plane * SIZES + s) * (size_t)repeats);

				progress_tell(r, repeats, "round %u", r + 1);

				at[r] = time_one(bed, plane, FIRST + s * STEP, WIRE_ADD64);
				at[repeats + r] =
					time_one(bed, plane, FIRST + s * STEP, WIRE_ADD32);
			}
	progress_clear();
	for (unsigned i = 0; times && i < ENGINES * SIZES; i++) {
		double *at = times + 2 * i * (size_t)repeats;
		struct engine_row *row = &rows[i / SIZES][i % SIZES];

		row->floats = stats_median(at, repeats); /* which sorts them */
		row->low = at[0];
		row->high = at[repeats - 1];
		row->integers = stats_median(at + repeats, repeats);
	}
	free(times);
}

/* A row for the medians and a row for their spread, of each plane. */
static void rows_print(struct engine_row rows[ENGINES][SIZES])
{
	struct table_column columns[1 + SIZES] = { { .header = "elements" } };
	char headers[SIZES][16], text[64];
	struct table table;

	for (unsigned s = 0; s < SIZES; s++) {
		snprintf(headers[s], sizeof(headers[s]), "%u", FIRST + s * STEP);
		columns[1 + s] = (struct table_column){ .header = headers[s], .format = "%.0f" };
	}
	table_open(&table, columns, 1 + SIZES);
	for (unsigned plane = 0; plane < ENGINES; plane++) {
		if (!(rows[plane][0].floats > 0))
			continue;
		for (unsigned spread = 0; spread < 2; spread++) {
			table_add(&table);
			table_text(&table, 0, spread ? "" : plane_names[plane]);
			for (unsigned s = 0; s < SIZES; s++) {
				const struct engine_row *row = &rows[plane][s];

				snprintf(text, sizeof(text), spread ? "%.0f-%.0f" : "%.0f/%.0f",
				         spread ? row->low : row->floats,
				         spread ? row->high : row->integers);
				table_text(&table, 1 + s, text);
			}
		}
	}
	printf("ns a packet, f32 (i32 behind the slash); the f32 spread below\n\n");
	table_print(&table, stdout);
	table_close(&table);
}

static trib_status rows_write(const char *path, struct engine_row rows[ENGINES][SIZES],
                              uint64_t repeats)
{
	struct json_writer json;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "benchmark", "engine");
	json_put_count(&json, "repeats", repeats);
	json_open_list(&json, "rows");
	for (unsigned i = 0; i < ENGINES * SIZES; i++) {
		const struct engine_row *row = &rows[i / SIZES][i % SIZES];
		unsigned elements = FIRST + i % SIZES * STEP;

		if (!(row->floats > 0))
			continue;
		json_open_object(&json, NULL);
		json_put_text(&json, "plane", plane_names[i / SIZES]);
		json_put_count(&json, "elements", elements);
		json_put_text(&json, "type", "f32");
		json_put_number(&json, "ns_per_packet", "%.1f", row->floats);
		json_put_number(&json, "ns_low", "%.1f", row->low);
		json_put_number(&json, "ns_high", "%.1f", row->high);
		json_put_number(&json, "gbps", "%.2f", elements * 32 / row->floats);
		json_put_number(&json, "ns_per_packet_i32", "%.1f", row->integers);
		json_close(&json);
	}
	json_close(&json);
	return json_finish(&json, path);
}

/* Million packets a second (XAgg's figure 6), or Gb/s of payload (figure 7). */
static double row_rate(const struct engine_row *row, unsigned elements, bool gbps)
{
	return gbps ? elements * 32 / row->floats : 1e3 / row->floats;
}

static trib_status plot_write(const char *path, struct engine_row rows[ENGINES][SIZES], bool gbps)
{
	static struct chart chart;

	chart = (struct chart){ .title = gbps ? "What a core adds" : "Packets that a core adds",
		                .subtitle =
		                        "f32, where it is summed alone: in cache, nothing received",
		                .x_title = "elements of a packet",
		                .y_title = gbps ? "Gb/s of payload" : "million packets a second",
		                .y_format = gbps ? "%.0f" : "%.1f",
		                .y_log = true };
	for (unsigned plane = 0; plane < ENGINES; plane++) {
		struct chart_line *line = &chart.lines[chart.n];

		if (!(rows[plane][0].floats > 0))
			continue;
		chart.n++;
		line->name = plane_names[plane];
		for (unsigned s = 0; s < SIZES; s++)
			line->points[line->n++] =
				(struct chart_point){ .x = FIRST + s * STEP,
				                      .y = row_rate(&rows[plane][s],
				                                    FIRST + s * STEP, gbps) };
	}
	return chart_write(&chart, path);
}

static trib_status plots_write(const char *path, struct engine_row rows[ENGINES][SIZES])
{
	char second[4096];
	trib_status status = plot_write(path, rows, false);

	chart_path(second, sizeof(second), path, "-gbps");
	return status == TRIB_OK ? plot_write(second, rows, true) : status;
}

int bench_engine_run(int argc, char **argv)
{
	struct engine_options o = { .repeats = 5 };
	const struct option_row rows[] = {
		{ "repeats", 0, OPTION_COUNT, &o.repeats, "N",
		  "measurements of each, in turns (default 5)", "9" },
		{ "json", 0, OPTION_JSON_FILE, &o.json, "FILE",
		  "write the rows to FILE as JSON (- or no FILE: standard output)", "engine.json" },
		{ "plot", 0, OPTION_TEXT, &o.plot, "FILE",
		  "draw packets a second to FILE as SVG, and Gb/s to a second file (-gbps)",
		  "engine.svg" },
		{ 0 },
	};
	const struct options options = {
		"trib bench engine [OPTION]...",
		"Times the CPU time of one packet where it is summed: in the XDP program (xdp; "
		"needs\n"
		"root) and in the daemon (udp, and tcp, which needs no checksum).",
		"trib bench engine --json engine.json --plot engine.svg",
		rows,
	};
	static struct engine_row figures[ENGINES][SIZES];
	struct bed *bed;
	int code;
	char *given[16];

	/* --json alone is --json - */
	if (argc < 14 && strcmp(argv[argc - 1], "--json") == 0) {
		memcpy(given, argv, (size_t)argc * sizeof(*argv));
		given[argc++] = (char *)"-";
		given[argc] = NULL;
		argv = given;
	}
	if (options_parse(&options, argc, argv, &code) < 0)
		return code;
	if (!o.repeats || o.repeats > 1000)
		return options_fail(&options, "--repeats is 1 to 1000");
	bed = calloc(1, sizeof(*bed));
	if (!bed)
		return EXIT_FAILURE;
	bed_open(bed);
	rows_measure(bed, figures, (unsigned)o.repeats);
	bed_close(bed);
	if (!o.json || strcmp(o.json, "-") != 0)
		rows_print(figures);
	if ((o.json && rows_write(o.json, figures, o.repeats) != TRIB_OK) ||
	    (o.plot && plots_write(o.plot, figures) != TRIB_OK)) {
		fprintf(stderr, "trib bench engine: %s\n", trib_last_error());
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
