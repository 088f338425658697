/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of other people's clusters. */
#include "base/random_bits.h"
#include "plan/cluster/draw.h"
#include "sim/fields.h"
#include "sim/read.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GPUS_MAX 1000000u
#define NAME "expected timestamp,duration,num_gpus,gpu_time,cluster"

/* Days since 1970-01-01. Months count from March, so that the leap day is last. */
static int64_t days_from(int year, int month, int day)
{
	int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

	return 365LL * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* "2017-10-09 07:01:55" */
static bool time_parse(const char *text, double *seconds)
{
	int year, month, day, hour, minute, second, used = 0;

	if (sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second,
	           &used) != 6 ||
	    text[used])
		return false;
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 ||
	    hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return false;
	*seconds = (double)days_from(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	return true;
}

static uint32_t hosts_of(const struct read_cluster *cluster, uint32_t gpus)
{
	uint32_t hosts = (gpus + cluster->gpus_per_host - 1) / cluster->gpus_per_host;

	return hosts < 1 ? 1 : hosts > cluster->most ? cluster->most : hosts;
}

static uint32_t steps_of(double steps)
{
	return steps < 1 ? 1 : steps > READ_STEPS_MAX ? READ_STEPS_MAX : (uint32_t)lround(steps);
}

/* Shifts arrivals so that the first job arrives at 0. */
static trib_status list_finish(struct sim_list *list, const struct read_cluster *cluster)
{
	trib_status status = list_sort(list);
	double first;

	if (status != TRIB_OK || !list->n)
		return status;
	first = list->jobs[0].arrive_s;
	for (uint32_t i = 0; i < list->n; i++)
		list->jobs[i].arrive_s = (list->jobs[i].arrive_s - first) / cluster->shrink;
	return TRIB_OK;
}

static trib_status philly_take(struct sim_list *list, const struct fields *fields,
                               const struct read_cluster *cluster, uint64_t *seed)
{
	struct sim_job job = { .step = draw_below(seed, cluster->n_models) };
	double duration;
	uint32_t gpus;
	trib_status status;

	if (fields->n != 5)
		return fields_fail(fields, NAME);
	if (!time_parse(fields->at[0], &job.arrive_s))
		return fields_fail(fields, "a timestamp is like 2017-10-09 07:01:55");
	if ((status = field_number(fields, 1, "duration", READ_TIME_MAX, &duration)) != TRIB_OK ||
	    (status = field_count(fields, 2, "number of GPUs", 0, GPUS_MAX, &gpus)) != TRIB_OK)
		return status;
	job.hosts = hosts_of(cluster, gpus);
	job.steps = steps_of(duration / cluster->shrink / cluster->step_s[job.step]);
	return list_add(list, &job);
}

trib_status read_philly(struct sim_list *list, const char *text, const struct read_cluster *cluster)
{
	struct fields fields = { 0 };
	uint64_t seed = cluster->seed;
	bool is_first = true;
	trib_status status = TRIB_OK;

	for (; status == TRIB_OK && (status = fields_next(&fields, &text, ',', false)) == TRIB_OK &&
	       fields.n;
	     is_first = false) {
		/* The first line may have the names of the fields. */
		if (!is_first || fields.n != 5 || isdigit((unsigned char)*fields.at[0]))
			status = philly_take(list, &fields, cluster, &seed);
	}
	return status == TRIB_OK ? list_finish(list, cluster) : status;
}

/* Maps a job's type name to a model; equal names give equal models. */
static uint32_t model_of(const char *type, const struct read_cluster *cluster)
{
	uint64_t hash = cluster->seed;

	for (; *type; type++) {
		hash ^= (unsigned char)*type * 0x9e3779b97f4a7c15ull;
		random_next(&hash);
	}
	return draw_below(&hash, cluster->n_models);
}

static trib_status gavel_take(struct sim_list *list, const struct fields *fields,
                              const struct read_cluster *cluster)
{
	const bool is_long = fields->n == 10;
	struct sim_job job = { 0 };
	double steps;
	uint32_t gpus;
	trib_status status;

	if (fields->n != 7 && !is_long)
		return fields_fail(fields,
		                   "expected 7 fields with tabs between (type, command, flag, "
		                   "flag, steps, arrival, scale factor), or 10 (type, command, "
		                   "folder, flag, flag, steps, scale factor, priority, objective, "
		                   "arrival)");
	if ((status = field_number(fields, is_long ? 5 : 4, "number of steps", 1e15, &steps)) !=
	            TRIB_OK ||
	    (status = field_number(fields, is_long ? 9 : 5, "time of arrival", READ_TIME_MAX,
	                           &job.arrive_s)) != TRIB_OK ||
	    (status = field_count(fields, 6, "scale factor", 1, GPUS_MAX, &gpus)) != TRIB_OK)
		return status;
	job.step = model_of(fields->at[0], cluster);
	job.hosts = hosts_of(cluster, gpus);
	job.steps = steps_of(steps / cluster->shrink);
	return list_add(list, &job);
}

trib_status read_gavel(struct sim_list *list, const char *text, const struct read_cluster *cluster)
{
	struct fields fields = { 0 };
	trib_status status = TRIB_OK;

	/* Commands may be longer than a field; they are not used. */
	while (status == TRIB_OK && (status = fields_next(&fields, &text, '\t', true)) == TRIB_OK &&
	       fields.n)
		status = gavel_take(list, &fields, cluster);
	return status == TRIB_OK ? list_finish(list, cluster) : status;
}
