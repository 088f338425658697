/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/store/table_options.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define RATE_MAX 1e6
#define PARAMETERS_MAX (UINT64_MAX - 1)

static const char *const names[] = { "sgd", "momentum", "adagrad", "adam" };

const char *sparse_optimizer_name(uint32_t optimizer)
{
	return optimizer < sizeof(names) / sizeof(names[0]) ? names[optimizer] : NULL;
}

static bool sparse_optimizer_find(const char *name, uint32_t *optimizer)
{
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], name)) {
			*optimizer = i;
			return true;
		}
	}
	return false;
}

static double or_default(double given, double value)
{
	return given != 0 ? given : value;
}

trib_status sparse_table_options_take(const trib_sparse_options *given,
                                      struct sparse_table_options *options)
{
	const char *name = given->name ? given->name : "default";
	const char *optimizer = given->optimizer ? given->optimizer : "sgd";

	*options = (struct sparse_table_options){
		.parameters = given->parameters,
		.width = given->width,
		.rate = or_default(given->rate, 0.01),
		.momentum = or_default(given->momentum, 0.9),
		.beta1 = or_default(given->beta1, 0.9),
		.beta2 = or_default(given->beta2, 0.999),
		.epsilon = or_default(given->epsilon, 1e-8),
		.init = given->init,
		.seed = given->seed,
	};
	if (strlen(name) >= sizeof(options->name))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the name of a table has at most %u letters: \"%.80s\"",
		                   SPARSE_NAME_ROOM - 1, name);
	memcpy(options->name, name, strlen(name));
	if (!sparse_optimizer_find(optimizer, &options->optimizer))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the optimizer of table %s is sgd, momentum, adagrad or adam, "
		                   "and not \"%.40s\"",
		                   name, optimizer);
	return sparse_table_options_check(options);
}

/* Names are printed and compared: letters, digits and a few signs. */
static bool name_fits(const char *name)
{
	size_t n = strnlen(name, SPARSE_NAME_ROOM);

	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	}
	for (size_t i = n; i < SPARSE_NAME_ROOM; i++) {
		if (name[i])
			return false;
	}
	return n && n < SPARSE_NAME_ROOM;
}

/* False for NaN too. */
static bool within(double value, double low, double high)
{
	return value >= low && value <= high;
}

static trib_status number_fail(const struct sparse_table_options *options, const char *what,
                               double value, const char *bounds)
{
	return status_fail(TRIB_ERR_ARGUMENT, "table %s: %s is %g, and has to be %s", options->name,
	                   what, value, bounds);
}

static trib_status numbers_check(const struct sparse_table_options *options)
{
	if (!within(options->rate, FLT_MIN, RATE_MAX))
		return number_fail(options, "rate", options->rate, "above 0 and at most 1e6");
	if (!within(options->momentum, 0, 1) || options->momentum == 1)
		return number_fail(options, "momentum", options->momentum,
		                   "at least 0 and below 1");
	/* As floats, so that 1 - beta is not 0. */
	if (!within(options->beta1, 0, 1) || (float)options->beta1 == 1)
		return number_fail(options, "beta1", options->beta1, "at least 0 and below 1");
	if (!within(options->beta2, 0, 1) || (float)options->beta2 == 1)
		return number_fail(options, "beta2", options->beta2, "at least 0 and below 1");
	if (!within(options->epsilon, FLT_MIN, 1))
		return number_fail(options, "epsilon", options->epsilon, "above 0 and at most 1");
	if (options->init != 0 && !within(options->init, FLT_MIN, RATE_MAX))
		return number_fail(options, "init", options->init, "from 0 to 1e6");
	return TRIB_OK;
}

trib_status sparse_table_options_check(const struct sparse_table_options *options)
{
	if (!name_fits(options->name))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the name of a table has 1 to %u letters, digits, \".\", \"_\" "
		                   "or \"-\"",
		                   SPARSE_NAME_ROOM - 1);
	if (!options->width || options->width > SPARSE_WIDTH_MAX)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "table %s: width is %u, and has to be 1 to %u", options->name,
		                   options->width, SPARSE_WIDTH_MAX);
	if (options->parameters > PARAMETERS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "table %s: parameters has to be below 2^64 - 1", options->name);
	if (!sparse_optimizer_name(options->optimizer))
		return status_fail(TRIB_ERR_ARGUMENT, "table %s: there is no optimizer number %u",
		                   options->name, options->optimizer);
	return numbers_check(options);
}

/* Numbers of checked options are finite. */
bool sparse_table_options_equal(const struct sparse_table_options *a,
                                const struct sparse_table_options *b)
{
	return !memcmp(a->name, b->name, sizeof(a->name)) && a->parameters == b->parameters &&
	       a->width == b->width && a->optimizer == b->optimizer && a->rate == b->rate &&
	       a->momentum == b->momentum && a->beta1 == b->beta1 && a->beta2 == b->beta2 &&
	       a->epsilon == b->epsilon && a->init == b->init && a->seed == b->seed;
}
