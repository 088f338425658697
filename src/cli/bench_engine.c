/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one packet costs where it is summed: found, checked and added to a cell
 * that another child was in before. The kernel's program is timed by the kernel
 * itself (BPF_PROG_TEST_RUN), without a network; the others in this process.
 */
#include "base/clock.h"
#include "base/status.h"
#include "cli/bench.h"
#include "cli/bench_stats.h"
#include "cli/chart.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "engine/dense.h"
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
	struct xdp_plane *kernel; /* NULL: not possible here */
	struct xdp_slot *slot;
	struct dense_lane *lane, own_lane;
	struct dense_pool pool;
	struct dense_cell cell;
	uint64_t sum[LAST * 4 / 8];
	uint64_t packet[(WIRE_HEADER + LAST * 4) / 8];
	uint8_t frame[FRONT + WIRE_HEADER + LAST * 4];
};

struct engine_row {
	double floats, integers; /* ns a packet */
	double low, high;        /* of the floats' repeats */
};

/* Of position 0 in lane 0. */
static const struct wire_unsent unsent = { .proof = COOKIE ^ (1 << 16 | 1) };

/* From child 0 of two: the cell is never complete. */
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

/* With the parser and its checksum on udp; without on tcp, which has one of its own. */
static double time_user(struct bed *bed, unsigned elements, bool parse)
{
	uint32_t bytes = WIRE_HEADER + elements * 4;
	uint64_t start, wrong = 0;

	bed->own_lane = (struct dense_lane){ .members = 3, .cells = 1, .payload = LAST * 4 };
	bed->cell.position = DENSE_EMPTY;
	start = clock_now();
	for (unsigned i = 0; i < BATCH; i++) {
		/* The compiler is to do it each time. */
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
	    (bed->slot = xdp_slot_open(bed->kernel, &lane, &bed->lane, &bed->pool))) {
		bed->lane->members = 3;
		bed->lane->cells = 16;
		bed->lane->payload = LAST * 4;
		xdp_slot_start(bed->slot);
		return;
	}
	fprintf(stderr, "trib bench engine: without the xdp plane: %s\n", trib_last_error());
	xdp_close(bed->kernel);
	bed->kernel = NULL;
}

static void bed_close(struct bed *bed)
{
	if (bed->slot)
		xdp_slot_close(bed->slot);
	xdp_close(bed->kernel);
	free(bed);
}

/* All planes and sizes in turns, so that what changes on the machine meets all alike. */
static void rows_measure(struct bed *bed, struct engine_row rows[ENGINES][SIZES], unsigned repeats)
{
	double *times = calloc(2 * (size_t)repeats * ENGINES * SIZES, sizeof(*times));

	for (unsigned r = 0; times && r < repeats; r++)
		for (unsigned plane = bed->kernel ? 0 : ENGINE_UDP; plane < ENGINES; plane++)
			for (unsigned s = 0; s < SIZES; s++) {
				double *at = times + 2 * ((plane * SIZES + s) * (size_t)repeats);

				at[r] = time_one(bed, plane, FIRST + s * STEP, WIRE_ADD64);
				at[repeats + r] =
					time_one(bed, plane, FIRST + s * STEP, WIRE_ADD32);
			}
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

static void table_print(struct engine_row rows[ENGINES][SIZES])
{
	printf("ns a packet, f32 (i32 behind the slash); the f32 spread below\n\nelements");
	for (unsigned s = 0; s < SIZES; s++)
		printf("%10u", FIRST + s * STEP);
	for (unsigned plane = 0; plane < ENGINES; plane++) {
		if (!(rows[plane][0].floats > 0))
			continue;
		printf("\n%-8s", plane_names[plane]);
		for (unsigned s = 0; s < SIZES; s++)
			printf("%6.0f/%.0f", rows[plane][s].floats, rows[plane][s].integers);
		printf("\n        ");
		for (unsigned s = 0; s < SIZES; s++)
			printf("%6.0f-%.0f", rows[plane][s].low, rows[plane][s].high);
	}
	printf("\n");
}

static bool json_write(const char *path, struct engine_row rows[ENGINES][SIZES],
                       const struct engine_options *o)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	const char *comma = "\n";

	if (!out)
		return false;
	fprintf(out, "{\n  \"benchmark\": \"engine\", \"repeats\": %" PRIu64 ", \"rows\": [",
	        o->repeats);
	for (unsigned plane = 0; plane < ENGINES; plane++)
		for (unsigned s = 0; s < SIZES; s++) {
			const struct engine_row *row = &rows[plane][s];
			unsigned elements = FIRST + s * STEP;

			if (!(row->floats > 0))
				continue;
			fprintf(out,
			        "%s    { \"plane\": \"%s\", \"elements\": %u, \"type\": \"f32\", "
			        "\"ns_per_packet\": %.1f, \"ns_low\": %.1f, \"ns_high\": %.1f, "
			        "\"gbps\": %.2f, \"ns_per_packet_i32\": %.1f }",
			        comma, plane_names[plane], elements, row->floats, row->low,
			        row->high, elements * 32 / row->floats, row->integers);
			comma = ",\n";
		}
	fprintf(out, "\n  ]\n}\n");
	return out == stdout || fclose(out) == 0;
}

/* Million packets a second (XAgg's figure 6), or Gb/s of payload (7). */
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
		{ "repeats", 0, OPTION_COUNT, &o.repeats, "N", "times of each, in turns (5)", "9" },
		{ "json", 0, OPTION_TEXT, &o.json, "FILE",
		  "write the rows there (- or nothing: here)", "engine.json" },
		{ "plot", 0, OPTION_TEXT, &o.plot, "FILE",
		  "draw packets a second there, and Gb/s beside it (-gbps), as SVG", "engine.svg" },
		{ 0 },
	};
	const struct options options = {
		"trib bench engine [OPTION]...",
		"Times what one packet costs where it is summed: by the kernel's program (xdp; "
		"needs\n"
		"root), by the daemon (udp, and tcp, which needs no checksum).",
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
		table_print(figures);
	if (o.json && !json_write(o.json, figures, &o)) {
		fprintf(stderr, "trib bench engine: cannot write %s\n", o.json);
		return EXIT_FAILURE;
	}
	if (o.plot && plots_write(o.plot, figures) != TRIB_OK) {
		fprintf(stderr, "trib bench engine: %s\n", trib_last_error());
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
