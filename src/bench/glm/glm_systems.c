/* SPDX-License-Identifier: Apache-2.0 */
/* The systems of `trib bench glm`, and how a training of each is started. */
#include "bench/glm/glm_bench.h"

#include "bench/bed/mpi_job.h"
#include "launch/local_daemon.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What `trib bench latency` finds best for small vectors on hosts like these. */
static const struct bench_variant openmpi[] = {
	{ .name = "default" },
	{ .name = "default, spinning", .spins = true },
	{ .name = "recursive doubling", .words = { OPENMPI_TUNED("3") } },
	{ .name = "recursive doubling, spinning", .words = { OPENMPI_TUNED("3") }, .spins = true },
	{ 0 },
};

static const char *const names[] = { [GLM_MODEL] = "model",
	                             [GLM_VANILLA] = "vanilla",
	                             [GLM_DATA] = "data",
	                             [GLM_MPI] = "mpi",
	                             NULL };

/* Arguments of `trib glm train`. */
static const char *const arguments[][5] = {
	[GLM_MODEL] = { 0 },
	[GLM_VANILLA] = { "--pipeline", "off" },
	[GLM_DATA] = { "--parallel", "data" },
	[GLM_MPI] = { "--exchange", "mpi", "--pipeline", "off" },
};

/* ---- hooks of the bed ---- */

static const struct glm_case *case_of(const struct bench_run *run)
{
	return (const struct glm_case *)run->system;
}

static void training_words(const struct bench_run *run, struct word_list *argv)
{
	const struct glm_case *row = case_of(run);
	char self[2048], data[160];

	self_find(self, sizeof(self));
	glm_data_name(&row->shape, data, sizeof(data));
	words_add(argv, "%s", self);
	words_add(argv, "glm");
	words_add(argv, "train");
	words_add(argv, "%s", data);
	words_add(argv, "--json");
	words_add(argv, "-");
	words_add_count(argv, "--epochs", run->iterations + run->warmup);
	words_add_count(argv, "--batch", row->shape.batch);
	words_add_count(argv, "--threads", row->threads);
	if (row->shape.bits)
		words_add_count(argv, "--bits", row->shape.bits);
	for (const char *const *word = arguments[row->of->way]; *word; word++)
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

static trib_status system_add(void *context, unsigned way, const char *plane)
{
	struct glm_report *report = context;
	const char *base = way == GLM_MPI ? "openmpi" : "tributary", *why;
	struct glm_system system = { .way = (enum glm_way)way,
		                     .bed = *bench_system_find(base, strlen(base)) };

	system.bed.variants = way == GLM_MPI ? openmpi : bench_plain_variants;
	if (way != GLM_MPI)
		system.bed.plane = plane;
	snprintf(system.name, sizeof(system.name), "%s", names[way]);
	why = way == GLM_MPI ? bench_system_missing(&system.bed) : plane_missing(plane);
	if (why)
		left_out_add(report->left_out, system.name, system.bed.plane, why);
	else if (report->n_systems == GLM_SYSTEMS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %u systems", GLM_SYSTEMS_MAX);
	else
		report->systems[report->n_systems++] = system;
	return TRIB_OK;
}

trib_status glm_systems_choose(struct glm_report *report)
{
	static const char *const planes[] = { "xdp", "udp", "tcp", "pisa", NULL };
	static const struct plane_ways ways = { names, planes, system_add };
	trib_status status =
		plane_ways_choose(&ways, report->options->systems, report->options->planes, report);

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
