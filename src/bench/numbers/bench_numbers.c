/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/numbers/bench_numbers.h"

#include "base/random_bits.h"
#include "bench/report/samples.h"
#include "bench/report/table.h"
#include "number/narrow.h"
#include "options/options.h"
#include "worker/dense/round.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD 1448u /* of a packet, with an MTU of 1500 */
#define WORKERS_MAX 64u
#define RARE 0.999 /* the quantile that is shown beside the mean */

static const unsigned crowds[] = { 2, 4, 8, 16, 32, 64 };

struct numbers_options {
	trib_type type;
	uint64_t bits, elements, seed;
	const char *gradients, *json;
};

/* Inputs of all workers, and their sums. */
struct numbers {
	const struct numbers_options *options;
	size_t count;
	unsigned workers;
	float *in[WORKERS_MAX]; /* values that the type has */
	uint8_t *typed[WORKERS_MAX];
	double *exact;
	float *ours, *ring, *once; /* once: the exact sum, rounded to the type */
	double *errors;
};

/* ---- inputs ---- */

static double draw_unit(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

static double draw_normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(draw_unit(state)));

	return radius * cos(6.283185307179586 * draw_unit(state));
}

static double draw_log_normal(uint64_t *state)
{
	double size = exp(2 * draw_normal(state));

	return random_next(state) & 1 ? size : -size;
}

/* Student's t with two degrees of freedom: its variance is infinite. */
static double draw_heavy(uint64_t *state)
{
	double normal = draw_normal(state);

	return normal / sqrt(-log(draw_unit(state)));
}

static const struct {
	const char *name;
	double (*draw)(uint64_t *state);
} shapes[] = {
	{ "normal", draw_normal },
	{ "log-normal", draw_log_normal },
	{ "heavy-tailed", draw_heavy },
};

static float typed_get(trib_type type, const uint8_t *in, size_t i)
{
	return narrow_value(type, load32(type, in, i), (uint32_t)format_of(type).infinity);
}

static void typed_put(trib_type type, uint8_t *out, size_t i, float value)
{
	store32(type, out, i, narrow_from(type, value));
}

static float rounded(trib_type type, float value)
{
	return narrow_value(type, narrow_from(type, value), UINT32_MAX >> 1);
}

/* ---- sums ---- */

static void sum_exactly(struct numbers *numbers)
{
	for (size_t i = 0; i < numbers->count; i++) {
		double sum = 0;

		for (unsigned w = 0; w < numbers->workers; w++)
			sum += (double)numbers->in[w][i];
		numbers->exact[i] = sum;
		numbers->once[i] = rounded(numbers->options->type, (float)sum);
	}
}

/* As a ring does: each worker begins a chunk of its own, and each hop adds and rounds. */
static void sum_in_ring(struct numbers *numbers)
{
	for (size_t i = 0; i < numbers->count; i++) {
		unsigned first = (unsigned)(i * numbers->workers / numbers->count);
		float sum = numbers->in[first][i];

		for (unsigned hop = 1; hop < numbers->workers; hop++)
			sum = rounded(numbers->options->type,
			              sum + numbers->in[(first + hop) % numbers->workers][i]);
		numbers->ring[i] = sum;
	}
}

/* One round for each worker, and an aggregator that adds their words. */
static trib_status sum_here(struct numbers *numbers)
{
	const struct numbers_options *o = numbers->options;
	struct round *rounds[WORKERS_MAX] = { 0 };
	uint8_t *out = malloc(numbers->count * 4);
	static uint64_t sum[WIRE_PAYLOAD_MAX / 8], one[WIRE_PAYLOAD_MAX / 8];
	bool ok = out && numbers->workers;

	for (unsigned w = 0; ok && w < numbers->workers; w++) {
		struct round_spec spec = { .source = numbers->typed[w],
			                   .target = out,
			                   .count = numbers->count,
			                   .type = o->type,
			                   .op = TRIB_SUM,
			                   .from = WIRE_ALL,
			                   .to = WIRE_ALL };

		spec.per_word = round_per_word(o->type, numbers->count, numbers->workers,
		                               (unsigned)o->bits);
		spec.dither =
			round_is_by_chance(o->type, spec.per_word) ? (w + 1) * 0x9e3779b9u : 0;
		rounds[w] = round_new(&spec, 0, PAYLOAD);
		ok = rounds[w] != NULL;
	}
	for (uint32_t k = 0; ok && k < round_fragments(rounds[0]); k++) {
		struct wire_header header = { 0 };
		uint32_t bytes = round_bytes(rounds[0], k);

		if (bitmap_get(rounds[0]->have, k))
			continue;
		memset(sum, 0, sizeof(sum));
		for (unsigned w = 0; w < numbers->workers; w++) {
			round_build(rounds[w], k, numbers->workers, &header, one);
			if (k < rounds[0]->exponents)
				rounds[w]->next_exponents = k + 1;
			for (uint32_t i = 0; i < bytes; i++)
				if (k < rounds[0]->exponents &&
				    ((uint8_t *)one)[i] > ((uint8_t *)sum)[i])
					((uint8_t *)sum)[i] = ((uint8_t *)one)[i];
			for (uint32_t i = 0; k >= rounds[0]->exponents && i < bytes / 8; i++)
				sum[i] += one[i];
		}
		for (unsigned w = 0; w < numbers->workers; w++)
			ok &= round_take(rounds[w], k, numbers->workers, header.scale, sum);
	}
	for (size_t i = 0; ok && i < numbers->count; i++)
		numbers->ours[i] = typed_get(o->type, out, i);
	for (unsigned w = 0; w < numbers->workers; w++)
		round_free(rounds[w]);
	free(out);
	return ok ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory");
}

/* ---- errors ---- */

struct error_stats {
	double mean, rare; /* of the absolute error, over the root mean square of exact sums */
};

static struct error_stats error_of(struct numbers *numbers, const float *sums)
{
	double squares = 0, total = 0, size;

	for (size_t i = 0; i < numbers->count; i++) {
		numbers->errors[i] = fabs((double)sums[i] - numbers->exact[i]);
		total += numbers->errors[i];
		squares += numbers->exact[i] * numbers->exact[i];
	}
	size = sqrt(squares / (double)numbers->count);
	stats_sort(numbers->errors, numbers->count);
	return (struct error_stats){
		.mean = total / (double)numbers->count / size,
		.rare = numbers->errors[(size_t)(RARE * (double)(numbers->count - 1))] / size,
	};
}

/* ---- output ---- */

enum column { VALUES, WORKERS, PARTS, OURS, RING, ONCE, RATIO, OURS_RARE, RING_RARE, RATIO_RARE };

static const struct table_column columns[] = {
	[VALUES] = { .header = "values", .field = "values" },
	[WORKERS] = { .header = "workers", .format = "%.0f", .field = "workers", .json = "%.0f" },
	[PARTS] = { .header = "bits", .format = "%.0f", .field = "bits", .json = "%.0f" },
	[OURS] = { .header = "tributary", .format = "%.3g", .field = "mean", .json = "%.6g" },
	[RING] = { .header = "ring", .format = "%.3g", .field = "ring_mean", .json = "%.6g" },
	[ONCE] = { .header = "rounded once",
	           .format = "%.3g",
	           .field = "once_mean",
	           .json = "%.6g" },
	[RATIO] = { .header = "of ring", .format = "%.2f", .field = "mean_ratio", .json = "%.4g" },
	[OURS_RARE] = { .header = "99.9 %", .format = "%.3g", .field = "rare", .json = "%.6g" },
	[RING_RARE] = { .header = "ring 99.9 %",
	                .format = "%.3g",
	                .field = "ring_rare",
	                .json = "%.6g" },
	[RATIO_RARE] = { .header = "of ring",
	                 .format = "%.2f",
	                 .field = "rare_ratio",
	                 .json = "%.4g" },
};

static trib_status row_add(struct numbers *numbers, const char *name, struct table *table)
{
	const struct numbers_options *o = numbers->options;
	unsigned per_word =
		round_per_word(o->type, numbers->count, numbers->workers, (unsigned)o->bits);
	struct error_stats ours, ring, once;
	trib_status status;

	sum_exactly(numbers);
	sum_in_ring(numbers);
	if ((status = sum_here(numbers)) != TRIB_OK)
		return status;
	ours = error_of(numbers, numbers->ours);
	ring = error_of(numbers, numbers->ring);
	once = error_of(numbers, numbers->once);
	table_add(table);
	table_text(table, VALUES, name);
	table_number(table, WORKERS, numbers->workers);
	table_number(table, PARTS, per_word ? 64 / per_word : 32);
	table_number(table, OURS, ours.mean);
	table_number(table, RING, ring.mean);
	table_number(table, ONCE, once.mean);
	table_number(table, RATIO, ours.mean / ring.mean);
	table_number(table, OURS_RARE, ours.rare);
	table_number(table, RING_RARE, ring.rare);
	table_number(table, RATIO_RARE, ours.rare / ring.rare);
	return TRIB_OK;
}

static void numbers_close(struct numbers *numbers)
{
	for (unsigned w = 0; w < WORKERS_MAX; w++) {
		free(numbers->in[w]);
		free(numbers->typed[w]);
	}
	free(numbers->exact);
	free(numbers->ours);
	free(numbers->ring);
	free(numbers->once);
	free(numbers->errors);
}

static trib_status numbers_open(struct numbers *numbers, const struct numbers_options *options)
{
	bool ok = true;

	*numbers = (struct numbers){ .options = options, .count = options->elements };
	for (unsigned w = 0; w < WORKERS_MAX; w++) {
		numbers->in[w] = malloc(numbers->count * sizeof(float));
		numbers->typed[w] = malloc(numbers->count * 4);
		ok &= numbers->in[w] && numbers->typed[w];
	}
	numbers->exact = malloc(numbers->count * sizeof(double));
	numbers->errors = malloc(numbers->count * sizeof(double));
	numbers->ours = malloc(numbers->count * sizeof(float));
	numbers->ring = malloc(numbers->count * sizeof(float));
	numbers->once = malloc(numbers->count * sizeof(float));
	ok &= numbers->exact && numbers->errors && numbers->ours && numbers->ring && numbers->once;
	return ok ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory");
}

/*
 * The inputs of all vectors, in the type. For 8 bits they are scaled first, as programs do with
 * fp8: the sum of the largest ones is the largest number.
 */
static void inputs_round(struct numbers *numbers, unsigned vectors)
{
	trib_type type = numbers->options->type;
	float largest = 0, scale = 1;

	for (unsigned w = 0; w < vectors; w++)
		for (size_t i = 0; i < numbers->count; i++)
			largest = fmaxf(largest, fabsf(numbers->in[w][i]));
	if (trib_type_size(type) == 1 && largest > 0)
		scale = narrow_value(type, (uint32_t)format_of(type).infinity - 1, UINT32_MAX / 2) /
		        (largest * WORKERS_MAX);
	for (unsigned w = 0; w < vectors; w++)
		for (size_t i = 0; i < numbers->count; i++) {
			numbers->in[w][i] = rounded(type, numbers->in[w][i] * scale);
			typed_put(type, numbers->typed[w], i, numbers->in[w][i]);
		}
}

/* Vectors of `elements` f32 one behind the other, as `train --gradients` writes them. */
static trib_status gradients_read(struct numbers *numbers, unsigned *vectors)
{
	const char *path = numbers->options->gradients;
	FILE *in = fopen(path, "rbe");
	unsigned n = 0;

	if (!in)
		return status_fail_errno("cannot read %s", path);
	while (n < WORKERS_MAX && fread(numbers->in[n], 4, numbers->count, in) == numbers->count)
		n++;
	fclose(in);
	*vectors = n;
	inputs_round(numbers, n);
	return n >= crowds[0]
	               ? TRIB_OK
	               : status_fail(TRIB_ERR_ARGUMENT, "%s has fewer than two vectors of %zu f32",
	                             path, numbers->count);
}

static trib_status crowds_add(struct numbers *numbers, const char *name, unsigned vectors,
                              struct table *table)
{
	trib_status status = TRIB_OK;

	for (unsigned c = 0; c < sizeof(crowds) / sizeof(crowds[0]) && status == TRIB_OK; c++) {
		numbers->workers = crowds[c];
		if (crowds[c] <= vectors)
			status = row_add(numbers, name, table);
	}
	return status;
}

static trib_status all_rows(struct numbers *numbers, struct table *table)
{
	trib_status status = TRIB_OK;
	unsigned vectors = 0;

	if (numbers->options->gradients) {
		status = gradients_read(numbers, &vectors);
		return status == TRIB_OK ? crowds_add(numbers, "gradients", vectors, table)
		                         : status;
	}
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]) && status == TRIB_OK; s++) {
		uint64_t state = numbers->options->seed;

		for (unsigned w = 0; w < WORKERS_MAX; w++)
			for (size_t i = 0; i < numbers->count; i++)
				numbers->in[w][i] = (float)shapes[s].draw(&state);
		inputs_round(numbers, WORKERS_MAX);
		status = crowds_add(numbers, shapes[s].name, WORKERS_MAX, table);
	}
	return status;
}

static const char *type_name(trib_type type)
{
	static const char *const names[] = { [TRIB_F16] = "f16",
		                             [TRIB_BF16] = "bf16",
		                             [TRIB_F32] = "f32",
		                             [TRIB_F8E4M3] = "f8e4m3",
		                             [TRIB_F8E5M2] = "f8e5m2" };

	return (size_t)type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "";
}

static trib_status type_take(void *target, const char *text)
{
	trib_type *type = target;

	for (*type = TRIB_F16; *type <= TRIB_F8E5M2; (*type)++)
		if (*text && strcmp(text, type_name(*type)) == 0)
			return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not one of f32, f16, bf16, f8e4m3, f8e5m2",
	                   text);
}

static trib_status json_write(const struct numbers_options *o, const struct table *table)
{
	struct json_writer json;
	trib_status status = json_start(&json, o->json);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "benchmark", "numbers");
	json_put_text(&json, "type", type_name(o->type));
	json_put_count(&json, "elements", o->elements);
	table_json(table, &json, "rows");
	return json_finish(&json, o->json);
}

int bench_numbers_run(int argc, char **argv)
{
	struct numbers_options o = { .type = TRIB_BF16, .elements = 100000, .seed = 1 };
	struct option_hook type_hook = { type_take, &o.type };
	const struct option_row rows[] = {
		{ "type", 0, OPTION_HOOK, &type_hook, "NAME",
		  "type of the elements: f32, f16, bf16, f8e4m3 or f8e5m2 (default bf16)", "f16" },
		{ "wire", 0, OPTION_COUNT, &o.bits, "BITS",
		  "bits of an element on the wire, as TRIB_WIRE: 32, 16 or 8 (default: by the "
		  "type)",
		  "16" },
		{ "elements", 0, OPTION_COUNT, &o.elements, "N",
		  "elements of a vector (default 100000)", "1000000" },
		{ "gradients", 0, OPTION_TEXT, &o.gradients, "FILE",
		  "sum vectors of f32 from this file, --elements each, instead of random ones",
		  "gradients.f32" },
		{ "seed", 0, OPTION_COUNT, &o.seed, "N", "of the random vectors (default 1)",
		  NULL },
		{ "json", 0, OPTION_JSON_FILE, &o.json, "FILE",
		  "write the rows to FILE as JSON (-: standard output)", "numbers.json" },
		{ 0 },
	};
	const struct options options = {
		"trib bench numbers [OPTION]...",
		"Compares sums of 2 to 64 workers with exact arithmetic: here, and in a ring that\n"
		"rounds at each hop. Errors are relative to the root mean square of the exact "
		"sums:\n"
		"their mean, and what 99.9 % of the elements stay below.",
		"trib bench numbers --type f16",
		rows,
	};
	struct numbers numbers;
	struct table table;
	trib_status status;
	int code;

	if (options_parse(&options, argc, argv, &code) < 0)
		return code;
	if (o.bits && o.bits != 8 && o.bits != 16 && o.bits != 32)
		return options_fail(&options, "--wire is 32, 16 or 8");
	if (o.elements < 1000 || o.elements > 100000000)
		return options_fail(&options, "--elements is 1000 to 100000000");
	table_open(&table, columns, sizeof(columns) / sizeof(columns[0]));
	status = numbers_open(&numbers, &o);
	if (status == TRIB_OK)
		status = all_rows(&numbers, &table);
	if (status == TRIB_OK && (!o.json || strcmp(o.json, "-") != 0)) {
		printf("errors of %s sums, over the root mean square of exact sums\n\n",
		       type_name(o.type));
		table_print(&table, stdout);
	}
	if (status == TRIB_OK && o.json)
		status = json_write(&o, &table);
	table_close(&table);
	numbers_close(&numbers);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench numbers: %s\n", trib_last_error());
	return status == TRIB_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
