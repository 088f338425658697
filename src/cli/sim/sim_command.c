/* SPDX-License-Identifier: Apache-2.0 */
/* trib sim: simulates many jobs on one fabric. */
#include "cli/sim/sim_command.h"

#include "base/status.h"
#include "cli/cmd/cmd.h"
#include "options/options.h"
#include "sim/jitter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODELS "opt-125m-4,opt-350m-4,opt-1.3b-4,bert-base-4,bert-large-4,vit-base-4,vit-large-4"
#define JOBS_DEFAULT 2000u
#define SEEDS_MAX 10000u
#define SEEDS_PAPER 5u

static int fail(void)
{
	fprintf(stderr, "trib sim: %s\n", trib_last_error());
	return EXIT_FAILURE;
}

/* ---- options ---- */

static trib_status name_take(const char *text, const char *const *names, unsigned n,
                             unsigned *found)
{
	for (*found = 0; *found < n; ++*found)
		if (names[*found] && !strcmp(text, names[*found]))
			return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not one of the values in --help", text);
}

static trib_status placement_take(void *context, const char *text)
{
	static const char *const names[] = { "first", "random", "smart" };
	unsigned found;
	trib_status status = name_take(text, names, 3, &found);

	*(enum sim_placement *)context = (enum sim_placement)found;
	return status;
}

static trib_status trees_take(void *context, const char *text)
{
	static const char *const names[] = { "none", "first", "random", "smart" };
	unsigned found;
	trib_status status = name_take(text, names, 4, &found);

	*(enum sim_trees *)context = (enum sim_trees)found;
	return status;
}

static trib_status sharing_take(void *context, const char *text)
{
	static const char *const names[] = { "none", "greedy", "smart", "frugal", "ahead" };
	unsigned found;
	trib_status status = name_take(text, names, 5, &found);

	*(enum turn_policy *)context = (enum turn_policy)found;
	return status;
}

static trib_status ties_take(void *context, const char *text)
{
	static const char *const names[] = { "mina", "arrival" };
	unsigned found;
	trib_status status = name_take(text, names, 2, &found);

	*(bool *)context = found == 1;
	return status;
}

static trib_status number_take(void *context, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a number of 0 or more", text);
	*(double *)context = value;
	return TRIB_OK;
}

/* What is wrong with the options; NULL: nothing. */
static const char *setup_fault(struct sim_setup *setup)
{
	unsigned given = !!setup->jobs + !!setup->philly + !!setup->gavel;

	if (given > 1)
		return "give only one of --jobs, --philly and --gavel";
	if (given && setup->generate)
		return "--generate makes random jobs: leave --generate or the file out";
	if (setup->paper && setup->per_job)
		return "--per-job shows one simulation, and --paper runs many";
	if (!given && setup->limit)
		return "--limit takes the first jobs of a file: use --generate for random jobs";
	if (!setup->generate)
		setup->generate = JOBS_DEFAULT;
	if (setup->generate > READ_JOBS_MAX)
		return "--generate is from 1 to 16777216 jobs";
	if (!setup->trace || setup->trace > GENERATE_TRACES)
		return "--trace is from 1 to 10";
	if (!setup->seeds)
		setup->seeds = setup->paper && !setup->jobs ? SEEDS_PAPER : 1;
	if (setup->seeds > SEEDS_MAX)
		return "--seeds is from 1 to 10000";
	if (!setup->gpus || setup->gpus > 1024)
		return "--gpus is from 1 to 1024";
	if (setup->link > FABRIC_HOSTS_MAX || setup->switches > FABRIC_HOSTS_MAX ||
	    setup->candidates > FABRIC_HOSTS_MAX || setup->limit > READ_JOBS_MAX)
		return "a number is too large";
	if (!(setup->shrink > 0) || !(setup->sim.speedup > 0) || !(setup->sim.wire.ratio >= 1))
		return "--shrink and --speedup are above 0, --ratio is 1 or more";
	if (setup->sim.jitter > JITTER_MOST)
		return "--jitter is from 0 to 0.3333: 0.05 means 5 % of the computation";
	if (!setup->bandwidth)
		return "--bandwidth is a rate above 0";
	setup->sim.candidates = (uint32_t)setup->candidates;
	setup->sim.wire.bytes_per_s = (double)setup->bandwidth / 8;
	return NULL;
}

/* ---- the runs ---- */

static trib_status tasks_make(struct sim_task *tasks, const struct sim_setup *setup,
                              struct sim_models *models)
{
	struct fabric fabric;
	trib_status status = fabric_make(&fabric, setup);

	/* A job list names its models; otherwise models are drawn. */
	if (status == TRIB_OK && !setup->jobs)
		status = models_read(models, setup->models);
	for (unsigned i = 0; status == TRIB_OK && i < setup->seeds; i++)
		status = task_make(&tasks[i], setup, models, &fabric, setup->seed + i);
	for (unsigned i = 0; i < setup->seeds; i++) {
		tasks[i].input.steps = models->steps;
		tasks[i].input.n_steps = models->n;
	}
	return status;
}

static trib_status setup_run(const struct sim_setup *setup, struct sim_task *tasks,
                             struct sim_models *models)
{
	unsigned n = (unsigned)setup->seeds;
	trib_status status = tasks_make(tasks, setup, models);

	if (status == TRIB_OK)
		status = tasks_run(tasks, n, true);
	if (status != TRIB_OK)
		return status;
	if (setup->json)
		sim_show_json(setup, tasks, n);
	else
		sim_show_text(setup, tasks, n);
	if (setup->per_job)
		status = sim_show_jobs(setup->per_job, &tasks[0], models);
	if (status == TRIB_OK && setup->plot)
		status = sim_plot(setup, tasks, n);
	return status;
}

static int sim_start(const struct sim_setup *setup)
{
	static struct sim_models models;
	struct sim_task *tasks;
	trib_status status;
	int code;

	models.folder = setup->traces;
	if (setup->paper) {
		code = sim_paper(setup, &models);
		models_free(&models);
		return code;
	}
	tasks = calloc(setup->seeds, sizeof(*tasks));
	if (!tasks)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %llu seeds",
		                     (unsigned long long)setup->seeds);
	else
		status = setup_run(setup, tasks, &models);
	code = status == TRIB_OK ? EXIT_SUCCESS : fail();
	tasks_free(tasks, (unsigned)setup->seeds);
	models_free(&models);
	return code;
}

/* ---- the table of options ---- */

static struct sim_setup asked = { .fabric = "fat-tree:16",
	                          .models = MODELS,
	                          .trace = 1,
	                          .seed = 1,
	                          .gpus = 8,
	                          .link = 1,
	                          .shrink = 1,
	                          .bandwidth = 100000000000 };

static struct option_hook placement_hook = { placement_take, &asked.sim.placement },
			  trees_hook = { trees_take, &asked.sim.trees },
			  sharing_hook = { sharing_take, &asked.sim.sharing },
			  ties_hook = { ties_take, &asked.by_arrival },
			  arrivals_hook = { number_take, &asked.arrivals },
			  alpha_hook = { number_take, &asked.sim.alpha },
			  migrate_hook = { number_take, &asked.sim.migrate_s },
			  ratio_hook = { number_take, &asked.sim.wire.ratio },
			  latency_hook = { number_take, &asked.sim.wire.latency_s },
			  speedup_hook = { number_take, &asked.sim.speedup },
			  jitter_hook = { number_take, &asked.sim.jitter },
			  shrink_hook = { number_take, &asked.shrink };

static const struct option_row rows[] = {
	{ "jobs", 0, OPTION_TEXT, &asked.jobs, "FILE",
	  "file with lines index,model,hosts,steps[,arrival in s]", NULL },
	{ "generate", 'n', OPTION_COUNT, &asked.generate, "N",
	  "number of random jobs (default 2000)", NULL },
	{ "trace", 0, OPTION_COUNT, &asked.trace, "1..10",
	  "sizes of random jobs, as in one of MINA's traces (default 1)", NULL },
	{ "sizes", 0, OPTION_TEXT, &asked.sizes, "LIST",
	  "sizes of random jobs as HOSTS:WEIGHT,HOSTS:WEIGHT...", "1:3,8:1" },
	{ "arrivals", 0, OPTION_HOOK, &arrivals_hook, "RATE",
	  "random arrivals a second (default 0: all jobs are there from the start)", NULL },
	{ "philly", 0, OPTION_TEXT, &asked.philly, "FILE", "jobs of Microsoft's Philly trace (CSV)",
	  NULL },
	{ "gavel", 0, OPTION_TEXT, &asked.gavel, "FILE", "jobs of one of Gavel's traces", NULL },
	{ "shrink", 0, OPTION_HOOK, &shrink_hook, "X",
	  "divide durations and arrivals of Philly and Gavel jobs by X (default 1)", NULL },
	{ "limit", 0, OPTION_COUNT, &asked.limit, "N",
	  "take only the first N jobs of the file, in order of arrival", NULL },
	{ "gpus", 0, OPTION_COUNT, &asked.gpus, "N", "GPUs of a host in those traces (default 8)",
	  NULL },
	{ "traces", 't', OPTION_TEXT, &asked.traces, "DIR",
	  "folder with MODEL.json, a measured step, for each model (default: steps computed from "
	  "the sizes of MINA's seven models)",
	  NULL },
	{ "models", 0, OPTION_TEXT, &asked.models, "LIST",
	  "models of random jobs (default: MINA's seven)", "opt-125m-4,vit-base-4" },
	{ "fabric", 'f', OPTION_TEXT, &asked.fabric, "FABRIC",
	  "fat-tree:DEGREE[:RATIO], leaf-spine:HOSTS:LEAVES:SPINES, or a file (default "
	  "fat-tree:16)",
	  NULL },
	{ "link", 0, OPTION_COUNT, &asked.link, "N",
	  "jobs that a link aggregates at once (default 1; 0: any number)", NULL },
	{ "switch", 0, OPTION_COUNT, &asked.switches, "N",
	  "jobs that a switch aggregates at once (default 0: any number)", NULL },
	{ "placement", 'p', OPTION_HOOK, &placement_hook, "POLICY",
	  "how hosts are chosen: first, random, smart (default smart)", NULL },
	{ "alpha", 0, OPTION_HOOK, &alpha_hook, "A",
	  "with --placement smart: weight of the fragments left free (default 0.5)", NULL },
	{ "trees", 0, OPTION_HOOK, &trees_hook, "POLICY",
	  "how trees are chosen: none, first, random, smart (default smart)", NULL },
	{ "candidates", 'k', OPTION_COUNT, &asked.candidates, "K",
	  "with --trees smart: number of trees considered for each job (default: all)", NULL },
	{ "migrate", 0, OPTION_HOOK, &migrate_hook, "SECONDS",
	  "time without aggregation while a job migrates (default 0)", "0.559" },
	{ "sharing", 's', OPTION_HOOK, &sharing_hook, "POLICY",
	  "which job has the turn: none, greedy, smart (MINA's), frugal, ahead (the controller's) "
	  "(default frugal)",
	  NULL },
	{ "bandwidth", 'b', OPTION_RATE, &asked.bandwidth, "RATE",
	  "rate of an allreduce without aggregation (default 100gbit)", NULL },
	{ "ratio", 0, OPTION_HOOK, &ratio_hook, "R",
	  "how many times faster an allreduce is with aggregation (default 2)", NULL },
	{ "latency", 0, OPTION_HOOK, &latency_hook, "SECONDS",
	  "latency of each allreduce (default 50e-6)", NULL },
	{ "speedup", 0, OPTION_HOOK, &speedup_hook, "X",
	  "computation is X times as fast as measured (default 1)", NULL },
	{ "jitter", 0, OPTION_HOOK, &jitter_hook, "S",
	  "steps vary: standard deviation of their computation, of its mean (default 0; up to "
	  "0.3333)",
	  "0.05" },
	{ "until", 0, OPTION_SECONDS, &asked.sim.until_s, "SECONDS",
	  "stop the simulation at this time", NULL },
	{ "ties", 0, OPTION_HOOK, &ties_hook, "ORDER",
	  "order of events at the same time: mina, arrival (default mina, up to 4096 hosts)",
	  NULL },
	{ "seed", 0, OPTION_COUNT, &asked.seed, "S", "first seed of everything random (default 1)",
	  NULL },
	{ "seeds", 0, OPTION_COUNT, &asked.seeds, "N",
	  "number of runs, from --seed on, on all cores (default 1; --paper: 5)", NULL },
	{ "paper", 0, OPTION_TEXT, &asked.paper, "NAME",
	  "run one of MINA's experiments: table1, fig11, fig12, fig13, fig14; or jitter, steps "
	  "that vary",
	  NULL },
	{ "json", 'j', OPTION_JSON, &asked.json, "FILE", "print JSON, or write it to FILE", NULL },
	{ "per-job", 0, OPTION_TEXT, &asked.per_job, "FILE",
	  "write a line for each job of the first run", NULL },
	{ "plot", 0, OPTION_TEXT, &asked.plot, "PREFIX",
	  "draw PREFIX-gain.svg, -score, -time and -utilization", NULL },
	{ 0 },
};

static const struct options usage = {
	.usage = "trib sim [OPTION]...",
	.about = "Simulates many training jobs on one fabric whose links and switches can "
		 "aggregate few\n"
		 "jobs at once: where jobs are placed, which trees they get, and how they take "
		 "turns. Prints\n"
		 "which part of the possible savings is reached (score), and which part of the "
		 "jobs' time\n"
		 "that is (gain).",
	.example = "trib sim --generate 200\n"
		   "  trib sim --traces mina --jobs mina/jobs_trace1_seed42.csv --sharing "
		   "smart\n"
		   "  trib sim -t mina --seeds 10 --bandwidth 25gbit --ratio 1.5 --speedup "
		   "1.5\n"
		   "  trib sim -t mina -f leaf-spine:16:64:8 --switch 1 --plot out\n"
		   "  xz -dc philly.csv.xz | trib sim -t mina --philly - --shrink 1000 "
		   "--limit 5000\n"
		   "  trib sim -t mina --paper table1",
	.rows = rows,
};

int cli_sim(int argc, char **argv)
{
	const char *fault;
	int code;

	asked.sim = SIM_OPTIONS_DEFAULT;
	if (!options_parse_all(&usage, argc, argv, &code))
		return code;
	if ((fault = setup_fault(&asked)))
		return options_fail(&usage, "%s", fault);
	return sim_start(&asked);
}
