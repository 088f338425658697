/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the fabric, the models and the jobs of trib sim. */
#include "cli/sim/sim_command.h"
#include "options/text.h"
#include "sim/made_step.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 4096
#define PARTS_MAX 4u

/* ---- models ---- */

static trib_status model_read(struct sim_models *models, const char *name)
{
	struct sim_step *step = &models->steps[models->n];
	char path[PATH_ROOM], *text = NULL;
	trib_status status;

	if (models->folder) {
		snprintf(path, sizeof(path), "%s/%s.json", models->folder, name);
		status = text_read(path, &text);
		if (status == TRIB_OK && (status = read_step(step, text)) != TRIB_OK)
			text_fail(status, path);
		free(text);
	} else {
		status = made_step(step, name);
	}
	if (status != TRIB_OK)
		return status;
	step->name = strcpy(models->names[models->n], name);
	models->n++;
	return TRIB_OK;
}

/* The index of a model, which is read if it is new; also as "traces/NAME.json". */
static trib_status models_find(struct sim_models *models, const char *name, uint32_t *step)
{
	const char *slash = strrchr(name, '/');
	char plain[SIM_NAME];
	size_t length;
	trib_status status;

	if (slash)
		name = slash + 1;
	length = strlen(name);
	if (length > 5 && !strcmp(name + length - 5, ".json"))
		length -= 5;
	if (!length || length >= sizeof(plain))
		return status_fail(TRIB_ERR_CONFIG, "\"%.64s\" is not the name of a model", name);
	memcpy(plain, name, length);
	plain[length] = 0;
	for (*step = 0; *step < models->n; (*step)++)
		if (!strcmp(models->names[*step], plain))
			return TRIB_OK;
	if (models->n == SIM_MODELS_MAX)
		return status_fail(TRIB_ERR_CONFIG, "more than %u models", SIM_MODELS_MAX);
	if ((status = model_read(models, plain)) != TRIB_OK)
		return status;
	*step = models->n - 1;
	return TRIB_OK;
}

trib_status models_read(struct sim_models *models, const char *list)
{
	char name[SIM_NAME];
	uint32_t step;

	for (const char *at = list;; at += strcspn(at, ",") + 1) {
		size_t length = strcspn(at, ",");
		trib_status status;

		if (length >= sizeof(name))
			length = sizeof(name) - 1;
		memcpy(name, at, length);
		name[length] = 0;
		if ((status = models_find(models, name, &step)) != TRIB_OK)
			return status;
		if (!at[strcspn(at, ",")])
			return TRIB_OK;
	}
}

void models_free(struct sim_models *models)
{
	for (unsigned i = 0; i < models->n; i++)
		step_free(&models->steps[i]);
	models->n = 0;
}

/* ---- the fabric ---- */

/* Reads numbers behind a word, as in ":16:2"; 0: the text has another form. */
static unsigned parts_read(const char *text, const char *word, double *parts)
{
	unsigned n = 0;
	char *end;

	if (strncmp(text, word, strlen(word)))
		return 0;
	for (text += strlen(word); *text == ':' && n < PARTS_MAX; text = end) {
		if (!isdigit((unsigned char)text[1]))
			return 0;
		parts[n++] = strtod(text + 1, &end);
	}
	return *text ? 0 : n;
}

static bool is_count(double number)
{
	return number >= 1 && number <= FABRIC_HOSTS_MAX && number == (unsigned)number;
}

static trib_status fabric_read(struct fabric *fabric, const char *path)
{
	char *text;
	trib_status status = text_read(path, &text);

	if (status == TRIB_OK && (status = fabric_parse(fabric, text)) != TRIB_OK)
		text_fail(status, path);
	free(text);
	return status;
}

trib_status fabric_make(struct fabric *fabric, const struct sim_setup *setup)
{
	const char *text = setup->fabric;
	double parts[PARTS_MAX];
	unsigned n;

	*fabric = (struct fabric){ .link_jobs = (uint32_t)setup->link,
		                   .switch_jobs = (uint32_t)setup->switches };
	if ((n = parts_read(text, "fat-tree", parts)) && n <= 2 && is_count(parts[0]))
		return fabric_fat_tree(fabric, (unsigned)parts[0], n == 2 ? parts[1] : 1);
	if (parts_read(text, "leaf-spine", parts) == 3 && is_count(parts[0]) &&
	    is_count(parts[1]) && is_count(parts[2]))
		return fabric_leaf_spine(fabric, (unsigned)parts[0], (unsigned)parts[1],
		                         (unsigned)parts[2]);
	if (!strncmp(text, "fat-tree", 8) || !strncmp(text, "leaf-spine", 10))
		return status_fail(TRIB_ERR_CONFIG,
		                   "--fabric %s: expected fat-tree:DEGREE[:RATIO], "
		                   "leaf-spine:HOSTS:LEAVES:SPINES or a file",
		                   text);
	return fabric_read(fabric, text);
}

/* ---- jobs ---- */

static trib_status model_find(void *context, const char *name, uint32_t *step)
{
	return models_find(context, name, step);
}

static trib_status cluster_read_jobs(struct sim_list *list, const struct sim_setup *setup,
                                     const struct sim_models *models, const char *text,
                                     uint32_t hosts, uint64_t seed)
{
	double step_s[SIM_MODELS_MAX];
	struct read_cluster cluster = { .step_s = step_s,
		                        .n_models = models->n,
		                        .gpus_per_host = (uint32_t)setup->gpus,
		                        .shrink = setup->shrink,
		                        .most = hosts,
		                        .seed = seed };

	for (unsigned i = 0; i < models->n; i++)
		step_s[i] = models->steps[i].compute_s / setup->sim.speedup;
	return setup->philly ? read_philly(list, text, &cluster) : read_gavel(list, text, &cluster);
}

/* Jobs that are larger than the fabric could never start. */
static trib_status sizes_choose(struct generate_sizes *sizes, const struct sim_setup *setup,
                                uint32_t hosts)
{
	struct generate_sizes all = generate_traces[setup->trace - 1];
	trib_status status = setup->sizes ? generate_sizes_parse(&all, setup->sizes) : TRIB_OK;

	sizes->n = 0;
	for (unsigned i = 0; status == TRIB_OK && i < all.n; i++)
		if (all.hosts[i] <= hosts) {
			sizes->hosts[sizes->n] = all.hosts[i];
			sizes->weight[sizes->n++] = all.weight[i];
		}
	if (status == TRIB_OK && !sizes->n)
		return status_fail(TRIB_ERR_CONFIG, "no job is small enough for %u hosts", hosts);
	return status;
}

static trib_status jobs_draw(struct sim_list *list, const struct sim_setup *setup,
                             const struct sim_models *models, uint32_t hosts, uint64_t seed)
{
	struct generate_sizes sizes;
	struct generate generate = { .jobs = (uint32_t)setup->generate,
		                     .models = models->n,
		                     .sizes = &sizes,
		                     .arrivals = setup->arrivals,
		                     .seed = seed };
	trib_status status = sizes_choose(&sizes, setup, hosts);

	return status == TRIB_OK ? generate_jobs(list, &generate) : status;
}

/* The jobs of one seed: a list, a generator or a trace. */
static trib_status workload_make(struct sim_list *list, const struct sim_setup *setup,
                                 struct sim_models *models, const struct fabric *fabric,
                                 uint64_t seed)
{
	const char *path = setup->jobs ? setup->jobs : setup->philly ? setup->philly : setup->gavel;
	const struct read_models find = { model_find, models, fabric->hosts };
	char *text;
	trib_status status;

	*list = (struct sim_list){ 0 };
	if (!path)
		return jobs_draw(list, setup, models, fabric->hosts, seed);
	status = text_read(path, &text);
	if (status == TRIB_OK) {
		status = setup->jobs ? read_jobs(list, text, &find)
		                     : cluster_read_jobs(list, setup, models, text, fabric->hosts,
		                                         seed);
		if (status != TRIB_OK)
			text_fail(status, path);
		if (setup->limit && list->n > setup->limit)
			list->n = (uint32_t)setup->limit;
	}
	free(text);
	if (status == TRIB_OK && !list->n)
		return status_fail(TRIB_ERR_CONFIG, "%s has no jobs", path);
	return status;
}

trib_status task_make(struct sim_task *task, const struct sim_setup *setup,
                      struct sim_models *models, const struct fabric *fabric, uint64_t seed)
{
	trib_status status = workload_make(&task->list, setup, models, fabric, seed);

	task->input.fabric = *fabric;
	task->input.jobs = task->list.jobs;
	task->input.n_jobs = task->list.n;
	task->input.options = setup->sim;
	task->input.options.seed = seed;
	task->input.options.public_ties = !setup->by_arrival && fabric->hosts <= SIM_TIES_HOSTS;
	task->is_sampled = setup->plot != NULL;
	if (status == TRIB_OK && setup->per_job) {
		task->outcomes = calloc(task->list.n, sizeof(*task->outcomes));
		if (!task->outcomes)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u jobs",
			                   task->list.n);
	}
	return status;
}
