/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/train_plan.h"

#include "base/random_bits.h"
#include "base/status.h"
#include "glm/train/pipeline.h"

#include <math.h>
#include <string.h>

#define EPOCHS 10
#define BATCH 64
#define MICRO_LEAST 8u
#define MICROS 8u        /* of a mini-batch, at most */
#define VALUE_NS 1.2     /* of a value in a loop over sparse rows */
#define SUM_NS 20000     /* to post one more sum, and to take its result */
#define JOURNEY_NS 30000 /* of a sum that a few workers wait for */
#define DENSE_SHARE 0.25 /* about where rows are stored as dense ones */
#define GRADIENT_NS 0.5  /* to read and write a value of the gradient, from the last cache */
#define RATE_ADAGRAD 0.5
#define RATE_ALIKE 2.0
#define RATE_SGD 1.0
#define DECAY_SGD 0.1
#define SHRINK_ROWS 128u /* l1 and l2 are applied after as many rows at least */

static trib_status wrong(const char *what, const char *wanted)
{
	return status_fail(TRIB_ERR_ARGUMENT, "%s must be %s", what, wanted);
}

/* ---- options ---- */

static trib_status names_read(const trib_glm_options *o, struct train_rule *rule)
{
	if (!loss_find(o->loss ? o->loss : "logistic", &rule->loss))
		return wrong("loss", "linear, logistic, hinge or squared-hinge");
	if (!update_find(o->update ? o->update : "adagrad", &rule->update))
		return wrong("update", "adagrad or sgd");
	if (o->parallel && strcmp(o->parallel, "model") != 0 && strcmp(o->parallel, "data") != 0)
		return wrong("parallel", "model or data");
	rule->data_parallel = o->parallel && !strcmp(o->parallel, "data");
	return TRIB_OK;
}

static bool is_finite_and_least(double value, double least)
{
	return isfinite(value) && value >= least;
}

trib_status rule_read(const trib_glm_options *o, struct train_rule *rule)
{
	trib_status status = names_read(o, rule);

	if (status != TRIB_OK)
		return status;
	if (o->bits < 0 || o->bits > (int)GLM_BITS_MAX)
		return wrong("bits", "from 1 to 8, or float");
	if (o->epochs < 0 || o->epochs > 1000000)
		return wrong("epochs", "from 1 to 1000000");
	if (o->batch < 0 || o->batch > (int)TRAIN_BATCH_MAX)
		return wrong("batch", "from 1 to 1048576");
	if (o->micro < 0 || o->micro > (int)TRAIN_BATCH_MAX)
		return wrong("micro", "from 1 to 1048576");
	if (o->threads < 0 || o->threads > (int)TRAIN_THREADS_MAX)
		return wrong("threads", "from 1 to 256");
	if (o->classes < -1 || o->classes == 1 || o->classes > (int)GLM_LABELS_MAX)
		return wrong("classes", "from 2 to 1024");
	if (o->classes && rule->loss == GLM_LOSS_LINEAR)
		return status_fail(TRIB_ERR_ARGUMENT, "a regression (loss linear) has no classes");
	if (!is_finite_and_least(o->rate, 0))
		return wrong("rate", "a number above 0");
	if (!is_finite_and_least(o->l1, 0))
		return wrong("l1", "0 or above");
	if (!isfinite(o->l2) || !isfinite(o->decay))
		return wrong("l2 and decay", "0 or above");
	rule->bits = (uint32_t)o->bits;
	rule->epochs = o->epochs ? (uint32_t)o->epochs : EPOCHS;
	rule->batch = o->batch ? (uint32_t)o->batch : BATCH;
	rule->threads = o->threads ? (uint32_t)o->threads : 1;
	rule->seed = o->seed;
	rule->bias = !o->no_bias;
	rule->pipelined = !o->no_pipeline;
	return TRIB_OK;
}

enum glm_task rule_task(const trib_glm_options *options, const struct train_rule *rule)
{
	if (rule->loss == GLM_LOSS_LINEAR)
		return GLM_REGRESSION;
	return options->classes == 0 || options->classes == 2 ? GLM_TWO_CLASS : GLM_MULTI_CLASS;
}

/* ---- what follows from the data ---- */

/* The least power of two that is not below `most`; 1 for 0. */
static double power_above(double most)
{
	int exponent;

	if (most <= 0)
		return 1;
	return frexp(most, &exponent) == 0.5 ? most : ldexp(1, exponent);
}

static double label_unit(const struct glm_stats *stats)
{
	return power_above(fmax(fabs(stats->label_min), fabs(stats->label_max)));
}

static double column_size(const struct glm_stats *stats, uint32_t j)
{
	double low = fabs((double)stats->min[j]), high = fabs((double)stats->max[j]);

	return !stats->count[j] ? 0 : low > high ? low : high;
}

/* An upper bound of the mean of |value| / size, summed over a row. */
static double row_length(const struct glm_stats *stats)
{
	double length = (double)stats->nonzeros / (double)stats->rows;

	return length > 1 ? length : 1;
}

/*
 * How strongly rows resemble each other: the sum over columns of the squared share of rows that
 * have the column. A step along what rows have in common moves all activations, so it must be small
 * where that is much: above all in dense data.
 */
static double row_likeness(const struct glm_stats *stats)
{
	double sum = 1; /* the bias */

	for (uint32_t j = 0; j < stats->columns; j++) {
		double share = (double)stats->count[j] / (double)stats->rows;

		sum += share * share;
	}
	return sum;
}

static double rate_choose(const struct train_rule *rule, const struct glm_stats *stats)
{
	double likeness = row_likeness(stats);

	if (rule->update == GLM_UPDATE_ADAGRAD)
		return fmin(RATE_ADAGRAD / sqrt(row_length(stats)), RATE_ALIKE / likeness);
	return RATE_SGD / (loss_curvature(rule->loss) * likeness);
}

/* The share of values that are not zero. */
static double density(const struct glm_stats *stats)
{
	return (double)stats->nonzeros / (double)stats->rows / stats->columns;
}

/*
 * A worker's forward or backward of a mini-batch, in values of sparse rows. Loops over dense rows
 * do about four times, and over codes 16 times as many in the same time.
 */
static double batch_work(const struct train_rule *rule, const struct glm_stats *stats,
                         uint32_t workers)
{
	double work = (double)stats->columns * rule->batch * rule->classes / workers;

	if (density(stats) < DENSE_SHARE)
		return work * density(stats);
	return work / (rule->bits ? 16 : 4);
}

/* One more micro-batch, in ns. With dense rows it reads and writes the whole gradient once more. */
static double cut_cost(const struct train_rule *rule, const struct glm_stats *stats,
                       uint32_t workers)
{
	double values = (double)stats->columns * rule->classes / workers;

	return SUM_NS + (density(stats) < DENSE_SHARE ? 0 : values * GRADIENT_NS);
}

/* From sizes alone, so that all workers choose the same. */
static uint32_t micro_choose(const trib_glm_options *o, const struct train_rule *rule,
                             const struct glm_stats *stats, uint32_t workers)
{
	struct pipeline_cost cost = { .backward = batch_work(rule, stats, workers) * VALUE_NS,
		                      .cut = cut_cost(rule, stats, workers),
		                      .journey = JOURNEY_NS };
	uint32_t micros, micro;

	if (workers == 1 || rule->data_parallel || !rule->pipelined)
		return rule->batch;
	if (o->micro)
		return (uint32_t)o->micro < rule->batch ? (uint32_t)o->micro : rule->batch;
	micros = pipeline_micros(&cost, MICROS);
	micro = (rule->batch + micros - 1) / micros;
	micro = micro > MICRO_LEAST ? micro : MICRO_LEAST;
	return micro < rule->batch ? micro : rule->batch;
}

static trib_status classes_choose(const trib_glm_options *o, const struct glm_stats *stats,
                                  struct train_rule *rule)
{
	uint32_t kinds = stats->labels.n;

	rule->classes = 1;
	if (rule_task(o, rule) != GLM_MULTI_CLASS)
		return TRIB_OK;
	if (o->classes > 0 && kinds > (uint32_t)o->classes)
		return status_fail(TRIB_ERR_CONFIG,
		                   "the data have labels of %u kinds, and --classes is %d", kinds,
		                   o->classes);
	if (kinds < 2)
		return status_fail(TRIB_ERR_CONFIG, "all rows have the same label, %.9g",
		                   (double)stats->labels.value[0]);
	rule->classes = kinds > 2 ? kinds : 1;
	return TRIB_OK;
}

trib_status rule_complete(const trib_glm_options *o, const struct glm_stats *stats,
                          uint32_t workers, struct train_rule *rule)
{
	double per_batch = (double)stats->nonzeros / (double)stats->rows * rule->batch;
	trib_status status = classes_choose(o, stats, rule);

	if (status != TRIB_OK)
		return status;
	rule->rows = stats->rows;
	rule->columns = stats->columns;
	rule->unit = rule->loss == GLM_LOSS_LINEAR ? label_unit(stats) : 1;
	rule->rate = o->rate > 0 ? o->rate : rate_choose(rule, stats);
	rule->decay = o->decay != 0                    ? fmax(o->decay, 0)
	              : rule->update == GLM_UPDATE_SGD ? DECAY_SGD
	                                               : 0;
	rule->l1 = o->l1;
	rule->l2 = o->l2 != 0 ? fmax(o->l2, 0) : 1 / (double)stats->rows;
	rule->shrink_every = SHRINK_ROWS / rule->batch;
	if (per_batch > 0 && stats->columns / per_batch > rule->shrink_every)
		rule->shrink_every = (uint32_t)(stats->columns / per_batch);
	rule->shrink_every += !rule->shrink_every;
	rule->micro = micro_choose(o, rule, stats, workers);
	return TRIB_OK;
}

/* No unit is so far from 1 that a quotient loses bits. */
static double column_unit(const struct train_rule *rule, const struct glm_stats *stats, uint32_t j)
{
	double unit = rule->bits ? 1 : power_above(column_size(stats, j));

	return fmin(fmax(unit, 0x1p-60), 0x1p60);
}

void inverses_fill(const struct train_rule *rule, const struct glm_stats *stats, uint32_t first,
                   uint32_t count, float *inverse)
{
	for (uint32_t j = 0; j < count; j++)
		inverse[j] = (float)(1 / column_unit(rule, stats, first + j));
}

void pace_fill(const struct train_rule *rule, const struct glm_stats *stats, uint32_t first,
               uint32_t count, float *pace)
{
	for (uint32_t j = 0; j < count; j++) {
		double size = column_size(stats, first + j) / column_unit(rule, stats, first + j);

		if (size <= 0)
			pace[j] = 0;
		else
			pace[j] = (float)(rule->update == GLM_UPDATE_SGD ? 1 / (size * size)
			                                                 : 1 / size);
	}
}

/* ---- the fingerprint ---- */

static uint64_t mix(uint64_t sum, uint64_t value)
{
	sum ^= value;
	return random_next(&sum);
}

static uint64_t mix_double(uint64_t sum, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return mix(sum, bits);
}

uint64_t rule_fingerprint(const struct train_rule *rule, const struct glm_stats *stats)
{
	uint64_t sum = mix(1, (uint64_t)rule->loss);

	sum = mix(sum, (uint64_t)rule->update);
	sum = mix(sum, (uint64_t)rule->bits << 32 | rule->batch);
	sum = mix(sum, (uint64_t)rule->classes << 32 | rule->columns);
	sum = mix(sum, (uint64_t)rule->shrink_every << 32 | rule->bias);
	sum = mix(sum, rule->seed);
	sum = mix(sum, rule->rows);
	sum = mix(sum, stats->nonzeros);
	sum = mix(sum, stats->digest);
	sum = mix_double(sum, rule->rate);
	sum = mix_double(sum, rule->decay);
	sum = mix_double(sum, rule->l1);
	sum = mix_double(sum, rule->l2);
	sum = mix_double(sum, rule->unit);
	for (uint32_t j = 0; j < stats->columns; j++) {
		sum = mix(sum, stats->count[j]);
		sum = mix_double(sum, (double)stats->min[j]);
		sum = mix_double(sum, (double)stats->max[j]);
	}
	for (uint32_t i = 0; i < stats->labels.n; i++)
		sum = mix_double(mix(sum, stats->labels.rows[i]), (double)stats->labels.value[i]);
	return sum;
}
