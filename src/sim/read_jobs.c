/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fields.h"
#include "sim/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

trib_status list_add(struct sim_list *list, const struct sim_job *job)
{
	if (list->n == list->room) {
		uint32_t more = list->room ? 2 * list->room : 1024;
		struct sim_job *jobs = NULL;

		if (list->n < READ_JOBS_MAX)
			jobs = realloc(list->jobs, more * sizeof(*jobs));
		if (!jobs)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for more than %u jobs",
			                   list->n);
		list->jobs = jobs;
		list->room = more;
	}
	list->jobs[list->n++] = *job;
	return TRIB_OK;
}

void list_free(struct sim_list *list)
{
	free(list->jobs);
	*list = (struct sim_list){ 0 };
}

/* Merge sort: stable, and a single pass if the list is already sorted, which is usual. */
static void jobs_merge(struct sim_job *jobs, struct sim_job *spare, uint32_t half, uint32_t n)
{
	uint32_t a = 0, b = half, at;

	memcpy(spare, jobs, half * sizeof(*jobs));
	for (at = 0; a < half; at++) {
		if (b < n && jobs[b].arrive_s < spare[a].arrive_s)
			jobs[at] = jobs[b++];
		else
			jobs[at] = spare[a++];
	}
}

static void jobs_sort(struct sim_job *jobs, struct sim_job *spare, uint32_t n)
{
	uint32_t half = n / 2;

	if (n < 2)
		return;
	jobs_sort(jobs, spare, half);
	jobs_sort(jobs + half, spare, n - half);
	if (jobs[half].arrive_s < jobs[half - 1].arrive_s)
		jobs_merge(jobs, spare, half, n);
}

trib_status list_sort(struct sim_list *list)
{
	struct sim_job *spare = malloc((list->n / 2 + 1) * sizeof(*spare));

	if (!spare)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory to sort %u jobs", list->n);
	jobs_sort(list->jobs, spare, list->n);
	free(spare);
	return TRIB_OK;
}

static trib_status job_read(const struct fields *fields, const struct read_models *models,
                            struct sim_job *job)
{
	uint32_t index;
	trib_status status;

	*job = (struct sim_job){ 0 };
	if (fields->n < 4 || fields->n > 5)
		return fields_fail(fields, "expected index,model,hosts,steps[,arrival]");
	if ((status = field_count(fields, 0, "index", 0, UINT32_MAX, &index)) != TRIB_OK ||
	    (status = field_count(fields, 2, "number of hosts", 1, FABRIC_HOSTS_MAX,
	                          &job->hosts)) != TRIB_OK ||
	    (status = field_count(fields, 3, "number of steps", 1, READ_STEPS_MAX, &job->steps)) !=
	            TRIB_OK ||
	    (fields->n == 5 && (status = field_number(fields, 4, "time of arrival", READ_TIME_MAX,
	                                              &job->arrive_s)) != TRIB_OK))
		return status;
	if (models->most && job->hosts > models->most)
		return status_fail(TRIB_ERR_CONFIG,
		                   "%u: the job wants %u hosts, and the fabric has %u",
		                   fields->line, job->hosts, models->most);
	if ((status = models->find(models->context, fields->at[1], &job->step)) != TRIB_OK)
		status_fail(status, "%u: %s", fields->line, trib_last_error());
	return status;
}

trib_status read_jobs(struct sim_list *list, const char *text, const struct read_models *models)
{
	struct fields fields = { 0 };
	struct sim_job job;
	trib_status status;

	while ((status = fields_next(&fields, &text, ',', false)) == TRIB_OK && fields.n) {
		if ((status = job_read(&fields, models, &job)) != TRIB_OK ||
		    (status = list_add(list, &job)) != TRIB_OK)
			return status;
	}
	return status == TRIB_OK ? list_sort(list) : status;
}
