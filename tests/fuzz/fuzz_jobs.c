/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of jobs and traces of clusters; the first byte selects. They are parsed, or refused with a
 * sentence. Parsed entries are in order and within bounds.
 */
#include "fuzz.h"
#include "sim/generate.h"
#include "sim/read.h"

#include <string.h>

static trib_status model_find(void *context, const char *name, uint32_t *step)
{
	(void)context;
	*step = 0;
	return *name == 'm' ? TRIB_OK : status_fail(TRIB_ERR_CONFIG, "no model \"%.64s\"", name);
}

static void list_check(const struct sim_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct sim_job *job = &list->jobs[i];

		demand(job->hosts && job->steps && job->steps <= READ_STEPS_MAX && job->step < 2);
		demand(job->arrive_s >= (i ? list->jobs[i - 1].arrive_s : 0));
	}
}

static trib_status any_read(struct sim_list *list, uint8_t kind, const char *text)
{
	static const struct read_models models = { .find = model_find };
	static const double step_s[2] = { 0.1, 1 };
	static const struct read_cluster cluster = {
		.step_s = step_s, .n_models = 2, .gpus_per_host = 8, .shrink = 10, .most = 64
	};
	struct generate_sizes sizes;

	switch (kind % 4) {
	case 0:
		return read_jobs(list, text, &models);
	case 1:
		return read_philly(list, text, &cluster);
	case 2:
		return read_gavel(list, text, &cluster);
	default:
		return generate_sizes_parse(&sizes, text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_list list = { 0 };
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	demand(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	if (any_read(&list, *data, text) == TRIB_OK)
		list_check(&list);
	else
		demand(*trib_last_error());
	list_free(&list);
	free(text);
	return 0;
}
