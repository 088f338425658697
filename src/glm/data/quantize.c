/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/quantize.h"
#include "glm/data/column_spread.h"

#include <math.h>

/* Shorter ranges are tried in steps of a quarter of a power of two, down to 1/64 of the whole
 * range. */
#define SHRINKS 25
#define SHRINK_STEPS 4.0
/* The search ends after as many shorter ranges that were no better. */
#define PATIENCE 4
/* The largest step that is tried for columns of integers, beside the whole range. */
#define WHOLE_STEPS 4
/* Significant bits of a step: with a code of 8 bits, code * step is exact in a float. */
#define STEP_BITS 15
#define SAMPLES 4

static uint32_t levels_of(uint32_t bits)
{
	return (1u << bits) - 1;
}

/* Rounds away from 0 to few bits, so that the range does not become shorter. */
static float step_round(double step)
{
	int power;
	double part = frexp(step, &power);

	part = ldexp(part, STEP_BITS);
	part = step < 0 ? floor(part) : ceil(part);
	return (float)ldexp(part, power - STEP_BITS);
}

uint8_t quantize_code(float value, struct quantize_map map, uint32_t bits)
{
	double code = ((double)value - map.low) / map.step + 0.5;
	uint32_t levels = levels_of(bits);

	/* Also for a code that is not a number. */
	if (!(code >= 0))
		return 0;
	return code >= levels ? (uint8_t)levels : (uint8_t)code;
}

/*
 * The absolute error, because it bounds the change of the loss: the slopes of logistic and hinge
 * loss are at most 1. With the squared error, one large count would hide many small ones.
 */
static double error_at(double value, struct quantize_map map, uint32_t levels)
{
	double code = rint((value - map.low) / map.step);

	code = code < 0 ? 0 : code > levels ? levels : code;
	code = value - (map.low + code * map.step);
	return fabs(code);
}

/* The mean error of values between `from` and `to`, evenly spread. */
static double error_between(double from, double to, struct quantize_map map, uint32_t levels)
{
	double last = map.low + (double)levels * map.step, low = fmin(map.low, last);
	double high = fmax(map.low, last), step = fabs((double)map.step), sum = 0;
	unsigned i;

	if (from == to)
		return error_at(from, map, levels);
	/* Errors between 0 and half a step, equally likely. */
	if (step < to - from && from >= low && to <= high)
		return step / 4;
	for (i = 0; i < SAMPLES; i++)
		sum += error_at(from + (to - from) * (i + 0.5) / SAMPLES, map, levels);
	return sum / SAMPLES;
}

static double bins_error(const struct quantize_column *column, const uint32_t *bins, double sign,
                         struct quantize_map map, uint32_t levels)
{
	double largest = sign < 0 ? -column->min : column->max, from, to, sum = 0;
	uint32_t i;

	for (i = 0; i < GLM_SPREAD_BINS; i++) {
		if (!bins[i])
			continue;
		spread_bin(column->spread, i, &from, &to);
		if (column->spread->whole) {
			from = fmax(ceil(from), 1);
			to = fmax(ceil(to) - 1, from);
		}
		to = fmin(to, largest);
		from = fmin(from, to);
		sum += bins[i] * (sign < 0 ? error_between(-to, -from, map, levels)
		                           : error_between(from, to, map, levels));
	}
	return sum;
}

/* The estimated absolute error of a map, summed over all rows. */
static double estimate_error(const struct quantize_column *column, struct quantize_map map,
                             uint32_t bits)
{
	uint32_t levels = levels_of(bits);

	return (double)(column->rows - column->count) * error_at(0, map, levels) +
	       bins_error(column, column->spread->positive, 1, map, levels) +
	       bins_error(column, column->spread->negative, -1, map, levels);
}

struct search {
	const struct quantize_column *column;
	uint32_t bits;
	struct quantize_map best;
	double error;
};

/* Returns whether the map is the best one so far. */
static bool search_try(struct search *search, double low, double step)
{
	struct quantize_map map = { (float)low, step_round(step) };
	double error;

	/* Values that a float barely holds. */
	if (map.step == 0 || !isfinite(map.step))
		return false;
	error = estimate_error(search->column, map, search->bits);
	if (error >= search->error)
		return false;
	search->error = error;
	search->best = map;
	return true;
}

/* Zero is code `zero`, and the codes reach to `min` and `max`, or to a part of them. */
static void search_zero(struct search *search, double min, double max, uint32_t zero)
{
	double levels = levels_of(search->bits), whole;
	int i, worse = 0;

	/* One sign: the side without values has no codes. */
	whole = fmax(zero ? -min / zero : 0, zero < levels ? max / (levels - zero) : 0);
	for (i = 0; i < SHRINKS && whole > 0 && worse < PATIENCE; i++) {
		double step = step_round(whole * exp2(-i / SHRINK_STEPS));

		worse = search_try(search, -step * zero, step) ? 0 : worse + 1;
	}
	for (i = 1; i <= WHOLE_STEPS && i < whole && search->column->spread->whole; i++)
		search_try(search, -(double)i * zero, i);
}

/* The codes begin at the minimum, or nearer to 0. */
static void search_from_minimum(struct search *search)
{
	double min = search->column->min, max = search->column->max;
	int i, worse = 0;

	for (i = 0; i < SHRINKS && worse < PATIENCE; i++) {
		double part = exp2(-i / SHRINK_STEPS), low = min < 0 && max > 0 ? min * part : min;
		double high = min < 0 && max > 0 ? max * part : min + (max - min) * part;

		worse = search_try(search, low, (high - low) / levels_of(search->bits)) ? 0
		                                                                        : worse + 1;
	}
}

static void search_signs(struct search *search)
{
	double min = search->column->min, max = search->column->max;
	uint32_t levels = levels_of(search->bits);
	int64_t middle = llrint(levels * -min / (max - min)), zero;

	for (zero = middle - 1; zero <= middle + 1; zero++)
		if (zero >= 0 && zero <= levels)
			search_zero(search, min, max, (uint32_t)zero);
}

/* Maps that lose nothing. */
static bool map_exact(const struct quantize_column *column, uint32_t bits, struct quantize_map *map)
{
	double levels = levels_of(bits), min = column->min, max = column->max;
	double low = fmin(min, 0), high = fmax(max, 0);

	*map = (struct quantize_map){ 0, 1 };
	if (!column->count)
		return true;
	if (min == max) {
		map->step = column->min;
		return true;
	}
	if (!column->spread || !column->spread->whole)
		return false;
	if (low < 0 && high == 0 && -low <= levels) {
		map->step = -1;
		return true;
	}
	if (column->count == column->rows && high - low > levels)
		low = min, high = max;
	map->low = (float)low;
	return high - low <= levels;
}

struct quantize_map quantize_choose(const struct quantize_column *column, uint32_t bits)
{
	struct search search = { .column = column, .bits = bits, .error = INFINITY };
	double min = column->min, max = column->max, levels = levels_of(bits);
	bool always = column->count == column->rows;

	if (map_exact(column, bits, &search.best))
		return search.best;
	if (!column->spread) {
		/* The whole range, with 0 in it if some rows are 0. */
		if (!always)
			min = fmin(min, 0), max = fmax(max, 0);
		if (max == 0)
			return (struct quantize_map){ 0, step_round(min / levels) };
		return (struct quantize_map){ (float)min, step_round((max - min) / levels) };
	}
	/* Something that is always possible. */
	search.best = (struct quantize_map){ 0, max > 0 ? column->max : column->min };
	if (max < 0) {
		struct quantize_map map;
		struct glm_spread turned = *column->spread;
		struct quantize_column other = *column;
		uint32_t i;

		/* As if all signs were turned. */
		for (i = 0; i < GLM_SPREAD_BINS; i++) {
			turned.positive[i] = column->spread->negative[i];
			turned.negative[i] = 0;
		}
		other.min = -column->max;
		other.max = -column->min;
		other.spread = &turned;
		map = quantize_choose(&other, bits);
		return (struct quantize_map){ -map.low, -map.step };
	}
	if (min > 0)
		search_zero(&search, 0, max, 0);
	else if (!always)
		search_signs(&search);
	if (always)
		search_from_minimum(&search);
	return search.best;
}

void quantize_plan(const struct glm_stats *stats, uint32_t first, uint32_t count, uint32_t bits,
                   float *low, float *step)
{
	uint32_t j;

	for (j = 0; j < count; j++) {
		struct quantize_column column = {
			.min = stats->min[first + j],
			.max = stats->max[first + j],
			.count = stats->count[first + j],
			.rows = stats->rows,
			.spread = stats->spread ? &stats->spread[first + j] : NULL,
		};
		struct quantize_map map = quantize_choose(&column, bits);

		low[j] = map.low;
		step[j] = map.step;
	}
}

uint64_t quantize_entries(const struct glm_stats *stats, uint32_t first, uint32_t count,
                          uint32_t bits, const float *low, const float *step)
{
	uint64_t entries = 0;
	uint32_t j;

	for (j = 0; j < count; j++) {
		struct quantize_map map = { low[j], step[j] };

		entries += quantize_code(0, map, bits) ? stats->rows : stats->count[first + j];
	}
	return entries;
}
