/* SPDX-License-Identifier: Apache-2.0 */
/* The systems of `trib bench glm`, and how a training of each is started. */
#include "bench/glm/glm_bench.h"

#include "bench/bed/job_build.h"
#include "plane/planes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TUNED(algorithm)                                                                         \
	"--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", \
		algorithm

static const struct bench_variant plain[] = { { .name = "" }, { 0 } };
/* What `trib bench latency` finds best for small vectors on hosts like these. */
static const struct bench_variant openmpi[] = {
	{ .name = "default" },
	{ .name = "default, spinning", .spins = true },
	{ .name = "recursive doubling", .words = { TUNED("3") } },
	{ .name = "recursive doubling, spinning", .words = { TUNED("3") }, .spins = true },
	{ 0 },
};

static const struct {
	const char *name;
	enum glm_way way;
	const char *words[5];
} ways[] = {
	{ "model", GLM_MODEL, { 0 } },
	{ "vanilla", GLM_VANILLA, { "--pipeline", "off" } },
	{ "data", GLM_DATA, { "--parallel", "data" } },
	{ "mpi", GLM_MPI, { "--exchange", "mpi", "--pipeline", "off" } },
};

#define WAYS_N (sizeof(ways) / sizeof(*ways))

/* ---- hooks of the bed ---- */

static const struct glm_case *case_of(const struct bench_run *run)
{
	return (const struct glm_case *)run->system;
}

static void option_add(struct word_list *argv, const char *name, unsigned long long value)
{
	words_add(argv, "%s", name);
	words_add(argv, "%llu", value);
}

static void training_words(const struct bench_run *run, struct word_list *argv)
{
	const struct glm_case *row = case_of(run);
	char self[2048], data[160];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	glm_data_name(&row->shape, data, sizeof(data));
	words_add(argv, "%s", self);
	words_add(argv, "glm");
	words_add(argv, "train");
	words_add(argv, "%s", data);
	words_add(argv, "--json");
	words_add(argv, "-");
	option_add(argv, "--epochs", run->iterations + run->warmup);
	option_add(argv, "--batch", row->shape.batch);
	option_add(argv, "--threads", row->threads);
	if (row->shape.bits)
		option_add(argv, "--bits", row->shape.bits);
	for (const char *const *word = ways[row->of->way].words; *word; word++)
		words_add(argv, "%s", *word);
}

static bool epoch_take(const struct bench_run *run, const char *line, unsigned *iteration,
                       double *seconds)
{
	struct glm_curve *curve = case_of(run)->curve;
	struct glm_epoch epoch;

	if (!glm_epoch_read(line, &epoch))
		return false;
	if (epoch.number <= GLM_EPOCHS_MAX) {
		curve->epochs[epoch.number - 1] = epoch;
		curve->n = epoch.number;
	}
	if (epoch.number <= run->warmup)
		return false;
	*iteration = epoch.number - 1 - run->warmup;
	*seconds = epoch.seconds;
	return true;
}

void glm_case_place(struct glm_case *row, const struct tree_layout *trees)
{
	row->system = row->of->bed;
	row->system.name = row->of->name;
	if (bench_system_is_ours(&row->system))
		row->system.trees = trees;
	row->system.words = training_words;
	row->system.sample = epoch_take;
}

/* ---- the choice ---- */

static const char *reason_find(enum glm_way way, const struct bench_system *system)
{
	static char why[128];

	if (way == GLM_MPI)
		return bench_system_missing(system);
	if (!plane_find(system->plane))
		snprintf(why, sizeof(why), "this build has no plane %s", system->plane);
	else if (geteuid() != 0 && strcmp(system->plane, "xdp") == 0)
		snprintf(why, sizeof(why), "it needs a virtual cluster, which needs root");
	else
		return NULL;
	return why;
}

static trib_status system_add(struct glm_report *report, unsigned way, const char *plane)
{
	const char *base = ways[way].way == GLM_MPI ? "openmpi" : "tributary", *why;
	struct glm_system system = { .way = ways[way].way,
		                     .bed = *bench_system_find(base, strlen(base)) };
	size_t used = strlen(report->left_out);

	system.bed.variants = system.way == GLM_MPI ? openmpi : plain;
	if (system.way != GLM_MPI)
		system.bed.plane = plane;
	snprintf(system.name, sizeof(system.name), "%s", ways[way].name);
	why = reason_find(system.way, &system.bed);
	if (why)
		snprintf(report->left_out + used, sizeof(report->left_out) - used, "%s%s %s (%s)",
		         used ? ", " : "", system.name, system.bed.plane, why);
	else if (report->n_systems == GLM_SYSTEMS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %u systems", GLM_SYSTEMS_MAX);
	else
		report->systems[report->n_systems++] = system;
	return TRIB_OK;
}

/* Planes as names that stay: those of the table of planes have them, but tcp and pisa may lack. */
static const char *plane_name(const char *word)
{
	static const char *const names[] = { "xdp", "udp", "tcp", "pisa" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i], word) == 0)
			return names[i];
	return NULL;
}

static const char *word_next(const char *list, char *word, size_t room)
{
	size_t length = strcspn(list, ",");

	snprintf(word, room, "%.*s", (int)length, list);
	return list + length + (list[length] == ',');
}

/* The model is on every plane, the others on the first. */
static trib_status way_add(struct glm_report *report, unsigned way)
{
	const char *list = report->options->planes;
	trib_status status = TRIB_OK;
	char word[16];

	do {
		const char *plane;

		list = word_next(list, word, sizeof(word));
		plane = plane_name(word);
		if (!plane)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--plane: \"%s\" is not one of xdp, udp, tcp, pisa",
			                   word);
		status = system_add(report, way, plane);
	} while (*list && ways[way].way == GLM_MODEL && status == TRIB_OK);
	return status;
}

trib_status glm_systems_choose(struct glm_report *report)
{
	const char *list = report->options->systems;
	trib_status status = TRIB_OK;
	char word[16];

	while (*list && status == TRIB_OK) {
		unsigned way = 0;

		list = word_next(list, word, sizeof(word));
		while (way < WAYS_N && strcmp(ways[way].name, word) != 0)
			way++;
		if (way == WAYS_N)
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--systems: \"%s\" is not one of model, vanilla, data, "
			                   "mpi",
			                   word);
		status = way_add(report, way);
	}
	if (status == TRIB_OK && report->n_systems == 0)
		return status_fail(TRIB_ERR_CONFIG, "no system can run here: %s", report->left_out);
	return status;
}

/* ---- comparing rows ---- */

double glm_epoch_s(const struct glm_report *report, unsigned row)
{
	const struct bench_stats *stats = &report->results[row].stats;

	return stats->repeats ? stats->of_runs.median : NAN;
}

static bool is_alike(const struct glm_case *a, const struct glm_case *b)
{
	return a->place == b->place && a->shape.features == b->shape.features &&
	       a->shape.batch == b->shape.batch && a->shape.bits == b->shape.bits;
}

double glm_mpi_ratio(const struct glm_report *report, unsigned row)
{
	for (unsigned i = 0; i < report->n; i++)
		if (report->cases[i].of->way == GLM_MPI &&
		    is_alike(&report->cases[i], &report->cases[row]))
			return glm_epoch_s(report, i) / glm_epoch_s(report, row);
	return NAN;
}

/* The hosts do not matter: the model does not depend on the number of workers. */
static bool is_same_training(const struct glm_case *a, const struct glm_case *b)
{
	return a->curve->n == b->curve->n && a->shape.features == b->shape.features &&
	       a->shape.batch == b->shape.batch && a->shape.bits == b->shape.bits;
}

bool glm_losses_agree(const struct glm_report *report, unsigned *odd)
{
	for (unsigned i = 0; i < report->n; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct glm_curve *a = &report->curves[i], *b = &report->curves[j];

			if (!is_same_training(&report->cases[i], &report->cases[j]))
				continue;
			for (unsigned e = 0; e < a->n; e++)
				if (a->epochs[e].loss != b->epochs[e].loss) {
					*odd = i;
					return false;
				}
		}
	return true;
}
