/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The experiments of MINA's paper, and one of our own. Each is a table of cells, and each cell is
 * simulated with a number of seeds.
 */
#include "cli/sim/sim_command.h"
#include "cli/sim/sim_paper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MINA_CANDIDATES 5u
#define SHARING_STEPS 100 /* steps of the longer job, in fig12 */
#define MODELS_N 7u

static void policies_set(struct sim_setup *setup, const struct paper_policies *policies)
{
	setup->sim.placement = policies->placement;
	setup->sim.trees = policies->trees;
	setup->sim.sharing = policies->sharing;
	setup->sim.candidates = policies->candidates;
}

/* ---- table1: the effect of each of the three parts ---- */

static const struct paper_policies ablation[] = {
	{ "first, first, greedy", SIM_PLACE_FIRST, SIM_TREES_FIRST, TURN_GREEDY, 0, .263, .080 },
	{ "smart, first, greedy", SIM_PLACE_SMART, SIM_TREES_FIRST, TURN_GREEDY, 0, .483, .129 },
	{ "smart, smart, greedy", SIM_PLACE_SMART, SIM_TREES_SMART, TURN_GREEDY, MINA_CANDIDATES,
	  .900, .223 },
	{ "smart, smart, smart", SIM_PLACE_SMART, SIM_TREES_SMART, TURN_SMART, MINA_CANDIDATES,
	  .982, .224 },
	{ "first, smart, smart", SIM_PLACE_FIRST, SIM_TREES_SMART, TURN_SMART, MINA_CANDIDATES,
	  .947, .199 },
	{ "smart, first, smart", SIM_PLACE_SMART, SIM_TREES_FIRST, TURN_SMART, 0, .979, .123 },
	{ "first, first, smart", SIM_PLACE_FIRST, SIM_TREES_FIRST, TURN_SMART, 0, 0, 0 },
	{ "smart, smart, frugal", SIM_PLACE_SMART, SIM_TREES_SMART, TURN_FRUGAL, 0, 0, 0 },
};

static trib_status table1_make(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
                               struct sim_task *task)
{
	struct sim_setup setup = *paper->setup;
	struct fabric fabric;
	trib_status status = fabric_make(&fabric, &setup);

	(void)column;
	policies_set(&setup, &ablation[row]);
	return status == TRIB_OK ? task_make(task, &setup, paper->models, &fabric, seed) : status;
}

static void table1_row(unsigned row, char *name, size_t room)
{
	snprintf(name, room, "%s", ablation[row].name);
}

/* ---- fig11: all ten traces ---- */

static const struct paper_policies sets[] = {
	{ "baseline", SIM_PLACE_FIRST, SIM_TREES_FIRST, TURN_GREEDY, 0, 0, 0 },
	{ "smart", SIM_PLACE_SMART, SIM_TREES_SMART, TURN_SMART, MINA_CANDIDATES, 0, 0 },
	{ "frugal", SIM_PLACE_SMART, SIM_TREES_SMART, TURN_FRUGAL, 0, 0, 0 },
};

static trib_status fig11_make(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
                              struct sim_task *task)
{
	struct sim_setup setup = *paper->setup;
	struct fabric fabric;
	trib_status status = fabric_make(&fabric, &setup);

	policies_set(&setup, &sets[column]);
	setup.trace = row + 1;
	return status == TRIB_OK ? task_make(task, &setup, paper->models, &fabric, seed) : status;
}

static void fig11_row(unsigned row, char *name, size_t room)
{
	snprintf(name, room, "trace #%u", row + 1);
}

/* ---- fig12: two jobs on one aggregator ---- */

static const enum turn_policy turns[] = { TURN_GREEDY, TURN_SMART, TURN_FRUGAL, TURN_AHEAD };

static double step_plain(const struct sim_step *step, const struct sim_options *options)
{
	double t = 0;

	for (unsigned i = 0; i < step->n; i++)
		t = fmax(t, step->start_s[i] / options->speedup) + options->wire.latency_s +
		    (double)step->bytes[i] / options->wire.bytes_per_s;
	return fmax(t, step->compute_s / options->speedup);
}

static trib_status fig12_make(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
                              struct sim_task *task)
{
	struct sim_options *options = &task->input.options;
	const uint32_t models[2] = { row / MODELS_N, row % MODELS_N };
	trib_status status = TRIB_OK;

	*options = paper->setup->sim;
	options->placement = SIM_PLACE_FIRST;
	options->trees = SIM_TREES_FIRST;
	options->sharing = turns[column];
	options->wire.ratio = 1.5;
	options->speedup = 1.5;
	options->seed = seed;
	options->until_s = 0;
	task->input.fabric =
		(struct fabric){ .levels = 1, .down = { 4 }, .up = { 1 }, .switch_jobs = 1 };
	for (unsigned i = 0; status == TRIB_OK && i < 2; i++) {
		struct sim_job job = { .step = models[i], .hosts = 2, .steps = SIM_ENDLESS };

		options->until_s =
			fmax(options->until_s,
		             SHARING_STEPS * step_plain(&paper->models->steps[models[i]], options));
		status = list_add(&task->list, &job);
	}
	task->input.jobs = task->list.jobs;
	task->input.n_jobs = task->list.n;
	return status == TRIB_OK ? fabric_complete(&task->input.fabric) : status;
}

static void fig12_row(unsigned row, char *name, size_t room)
{
	static const char *const models[MODELS_N] = { "opt-125m",  "opt-350m",   "opt-1.3b",
		                                      "bert-base", "bert-large", "vit-base",
		                                      "vit-large" };

	snprintf(name, room, "%s, %s", models[row / MODELS_N], models[row % MODELS_N]);
}

/* ---- fig13: fewer links upward ---- */

static const enum sim_placement placements[] = { SIM_PLACE_RANDOM, SIM_PLACE_FIRST,
	                                         SIM_PLACE_SMART };

static trib_status fig13_make(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
                              struct sim_task *task)
{
	struct sim_setup setup = *paper->setup;
	struct fabric fabric = { .levels = 3,
		                 .down = { 8, 8, 16 },
		                 .up = { 1, row + 1, row + 1 },
		                 .link_jobs = (uint32_t)setup.link,
		                 .switch_jobs = (uint32_t)setup.switches };
	trib_status status = fabric_complete(&fabric);

	setup.sim.placement = placements[column];
	setup.sim.trees = SIM_TREES_SMART;
	setup.sim.candidates = MINA_CANDIDATES;
	setup.sim.sharing = TURN_GREEDY;
	return status == TRIB_OK ? task_make(task, &setup, paper->models, &fabric, seed) : status;
}

static void fig13_row(unsigned row, char *name, size_t room)
{
	snprintf(name, room, "8:%u", row + 1);
}

/* ---- fig14: more trees to choose from ---- */

static trib_status fig14_make(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
                              struct sim_task *task)
{
	struct sim_setup setup = *paper->setup;
	struct fabric fabric;
	trib_status status = fabric_make(&fabric, &setup);

	(void)column;
	setup.sim.placement = SIM_PLACE_SMART;
	setup.sim.trees = SIM_TREES_SMART;
	setup.sim.sharing = TURN_GREEDY;
	setup.sim.candidates = row < 10 ? row + 1 : 0;
	return status == TRIB_OK ? task_make(task, &setup, paper->models, &fabric, seed) : status;
}

static void fig14_row(unsigned row, char *name, size_t room)
{
	if (row < 10)
		snprintf(name, room, "k = %u", row + 1);
	else
		snprintf(name, room, "all");
}

/* ---- jitter: steps that vary; not in the paper ---- */

static const double jitters[] = { 0, 2, 5, 10, 30 }; /* % */

static trib_status jitter_make(struct paper *paper, unsigned row, unsigned column, uint64_t seed,
                               struct sim_task *task)
{
	struct sim_setup setup = *paper->setup;
	struct fabric fabric;
	trib_status status = fabric_make(&fabric, &setup);

	setup.sim.sharing = turns[column];
	setup.sim.jitter = jitters[row] / 100;
	return status == TRIB_OK ? task_make(task, &setup, paper->models, &fabric, seed) : status;
}

static void jitter_row(unsigned row, char *name, size_t room)
{
	snprintf(name, room, "%.0f %%", jitters[row]);
}

/* ---- all of them ---- */

static const struct paper_about abouts[] = {
	{ "table1",
	  "Placement, trees, sharing: what each is good for",
	  PAPER_JOBS_ASKED,
	  sizeof(ablation) / sizeof(ablation[0]),
	  1,
	  { "" },
	  table1_make,
	  table1_row,
	  ablation,
	  NULL },
	{ "fig11",
	  "The ten traces",
	  PAPER_JOBS_TRACES,
	  GENERATE_TRACES,
	  3,
	  { "baseline", "smart, k = 5", "frugal" },
	  fig11_make,
	  fig11_row,
	  NULL,
	  NULL },
	{ "fig12",
	  "Two jobs share one aggregator",
	  PAPER_JOBS_PAIRS,
	  MODELS_N *MODELS_N,
	  4,
	  { "greedy", "smart", "frugal", "ahead" },
	  fig12_make,
	  fig12_row,
	  NULL,
	  NULL },
	{ "fig13",
	  "Links down to links up; sharing greedy",
	  PAPER_JOBS_ASKED,
	  8,
	  3,
	  { "random", "first", "smart" },
	  fig13_make,
	  fig13_row,
	  NULL,
	  NULL },
	{ "fig14",
	  "Trees of a job that are looked at; sharing greedy",
	  PAPER_JOBS_ASKED,
	  11,
	  1,
	  { "" },
	  fig14_make,
	  fig14_row,
	  NULL,
	  NULL },
	{ "jitter",
	  "Steps whose computation varies",
	  PAPER_JOBS_ASKED,
	  sizeof(jitters) / sizeof(jitters[0]),
	  4,
	  { "greedy", "smart", "frugal", "ahead" },
	  jitter_make,
	  jitter_row,
	  NULL,
	  jitters },
};

static trib_status paper_make(struct paper *paper)
{
	unsigned seeds = paper->seeds;
	trib_status status = models_read(paper->models, paper->setup->models);

	for (unsigned i = 0; status == TRIB_OK && i < paper->n_tasks; i++) {
		unsigned cell = i / seeds;

		status = paper->about->make(paper, cell / paper->about->columns,
		                            cell % paper->about->columns,
		                            paper->setup->seed + i % seeds, &paper->tasks[i]);
	}
	for (unsigned i = 0; i < paper->n_tasks; i++) {
		paper->tasks[i].input.steps = paper->models->steps;
		paper->tasks[i].input.n_steps = paper->models->n;
	}
	return status;
}

static int paper_run(struct paper *paper)
{
	trib_status status;

	/* Two jobs involve no random choice, so one seed is enough. */
	paper->seeds = paper->about->jobs == PAPER_JOBS_PAIRS ? 1 : (unsigned)paper->setup->seeds;
	paper->n_tasks = paper->about->rows * paper->about->columns * paper->seeds;
	paper->tasks = calloc(paper->n_tasks, sizeof(*paper->tasks));
	if (!paper->tasks)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u simulations",
		                     paper->n_tasks);
	else if ((status = paper_make(paper)) == TRIB_OK)
		status = tasks_run(paper->tasks, paper->n_tasks, true);
	if (status == TRIB_OK)
		status = paper_show(paper);
	tasks_free(paper->tasks, paper->n_tasks);
	if (status != TRIB_OK)
		fprintf(stderr, "trib sim: %s\n", trib_last_error());
	return status == TRIB_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Options that have no effect here are named in a warning and ignored. */
static void jobs_choose(struct sim_setup *setup, const struct paper_about *about)
{
	if (about->jobs == PAPER_JOBS_ASKED)
		return;
	if (setup->jobs || setup->philly || setup->gavel)
		fprintf(stderr,
		        "trib sim: %s has jobs of its own: those of the file are not used\n",
		        about->name);
	setup->jobs = setup->philly = setup->gavel = NULL;
	setup->trace = 0;
}

int sim_paper(const struct sim_setup *setup, struct sim_models *models)
{
	struct sim_setup own = *setup;
	struct paper paper = { .setup = &own, .models = models };

	for (unsigned i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++)
		if (!strcmp(setup->paper, abouts[i].name)) {
			paper.about = &abouts[i];
			jobs_choose(&own, paper.about);
			return paper_run(&paper);
		}
	fprintf(stderr,
	        "trib sim: --paper %s: expected table1, fig11, fig12, fig13, fig14 "
	        "or jitter\n",
	        setup->paper);
	return 2;
}
