/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/generate.h"
#include "base/random_bits.h"
#include "plan/cluster/draw.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define STEPS_UNIT 10u
#define STEPS_KINDS 10u

const struct generate_sizes generate_traces[GENERATE_TRACES] = {
	{ 9,
	  { 1, 2, 4, 8, 16, 32, 48, 64, 128 },
	  { 10910, 9719, 16374, 23311, 23936, 13268, 2089, 329, 61 } },
	{ 7, { 1, 2, 4, 8, 16, 32, 48 }, { 26464, 19460, 24834, 20690, 7818, 725, 5 } },
	{ 7, { 1, 2, 4, 8, 16, 32, 48 }, { 44237, 14757, 18831, 15689, 5929, 550, 4 } },
	{ 7, { 1, 2, 4, 8, 16, 32, 48 }, { 41606, 15453, 19720, 16430, 6208, 576, 4 } },
	{ 7, { 1, 2, 4, 8, 16, 32, 48 }, { 36941, 16688, 21295, 17742, 6704, 622, 4 } },
	{ 7, { 1, 2, 4, 8, 16, 32, 48 }, { 26464, 19460, 24834, 20690, 7818, 725, 5 } },
	{ 6, { 2, 4, 8, 16, 32, 48 }, { 36941, 28960, 24127, 9117, 846, 6 } },
	{ 6, { 2, 4, 8, 16, 32, 48 }, { 26464, 33771, 28136, 10632, 986, 7 } },
	{ 5, { 4, 8, 16, 32, 48 }, { 26464, 52033, 19663, 1824, 13 } },
	{ 4, { 8, 16, 32, 48 }, { 26464, 67247, 6241, 45 } },
};

static uint32_t size_draw(const struct generate_sizes *sizes, uint64_t *seed)
{
	uint64_t all = 0, at;
	unsigned i = 0;

	for (unsigned k = 0; k < sizes->n; k++)
		all += sizes->weight[k];
	if (!all)
		return 1;
	for (at = random_next(seed) % all; at >= sizes->weight[i]; i++)
		at -= sizes->weight[i];
	return sizes->hosts[i];
}

/* A random exponentially distributed time with this mean. */
static double generate_gap(uint64_t *seed, double mean)
{
	/* 53 random bits; never 0. */
	double chance = ((double)(random_next(seed) >> 11) + 1) / 9007199254740992.0;

	return -log(chance) * mean;
}

trib_status generate_jobs(struct sim_list *list, const struct generate *generate)
{
	uint64_t seed = generate->seed;
	double now = 0;

	for (uint32_t i = 0; i < generate->jobs; i++) {
		struct sim_job job = { .step = draw_below(&seed, generate->models) };
		trib_status status;

		job.hosts = size_draw(generate->sizes, &seed);
		job.steps = STEPS_UNIT * (1 + draw_below(&seed, STEPS_KINDS));
		if (generate->arrivals > 0)
			now += generate_gap(&seed, 1 / generate->arrivals);
		job.arrive_s = now;
		if ((status = list_add(list, &job)) != TRIB_OK)
			return status;
	}
	return TRIB_OK;
}

static bool number_take(const char **text, uint32_t most, uint32_t *value)
{
	char *end;
	unsigned long number;

	if (!isdigit((unsigned char)**text))
		return false;
	number = strtoul(*text, &end, 10);
	*text = end;
	*value = (uint32_t)number;
	return number && number <= most;
}

trib_status generate_sizes_parse(struct generate_sizes *sizes, const char *text)
{
	const char *at = text;

	sizes->n = 0;
	do {
		if (sizes->n == GENERATE_SIZES_MAX)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %u sizes of jobs",
			                   GENERATE_SIZES_MAX);
		if (!number_take(&at, FABRIC_HOSTS_MAX, &sizes->hosts[sizes->n]) || *at++ != ':' ||
		    !number_take(&at, 1u << 30, &sizes->weight[sizes->n]))
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "\"%.64s\" is not HOSTS:WEIGHT,HOSTS:WEIGHT...", text);
		sizes->n++;
	} while (*at && *at++ == ',');
	return *(at - 1) == ',' || *at
	               ? status_fail(TRIB_ERR_ARGUMENT,
	                             "\"%.64s\" is not HOSTS:WEIGHT,HOSTS:WEIGHT...", text)
	               : TRIB_OK;
}
