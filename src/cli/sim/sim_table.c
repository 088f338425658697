/* SPDX-License-Identifier: Apache-2.0 */
/* Prints simulations: a table, JSON, and a CSV line for each job. */
#include "cli/sim/sim_command.h"
#include "options/json.h"

#include <string.h>

const char *placement_name(enum sim_placement placement)
{
	static const char *const names[] = { "first", "random", "smart" };

	return names[placement];
}

const char *trees_name(enum sim_trees trees)
{
	static const char *const names[] = { "none", "first", "random", "smart" };

	return names[trees];
}

const char *sharing_name(enum turn_policy policy)
{
	static const char *const names[] = { "none", "greedy", "smart", "frugal", "ahead" };

	return names[policy];
}

/* ---- for people ---- */

static double jct_mean(const struct sim_result *result)
{
	return result->done ? result->jct_s / (double)result->done : 0;
}

static double events_a_second(const struct sim_task *task)
{
	return task->cpu_s > 0 ? (double)task->result.events / task->cpu_s : 0;
}

static void task_print(const struct sim_task *task)
{
	const struct sim_result *result = &task->result;

	printf("%8llu %7.4f %7.4f %8.3f %% %12.3f %12.3f %12.3f %9.2f %6llu %10llu %6.1f M/s\n",
	       (unsigned long long)task->input.options.seed, sim_score(result),
	       sim_utilization(result), 100 * sim_gain(result), result->jct_s, result->jct_all_s,
	       result->jct_none_s, result->done ? result->wait_s / (double)result->done : 0,
	       (unsigned long long)result->migrations, (unsigned long long)result->events,
	       events_a_second(task) / 1e6);
}

static void spread_print(const char *what, struct sim_spread spread, double scale, const char *unit)
{
	printf("%-12s %10.4f%s  (%.4f to %.4f)\n", what, spread.mean * scale, unit,
	       spread.low * scale, spread.high * scale);
}

/* Says why a score means nothing here. */
static void nothing_print(const struct sim_task *tasks, unsigned n)
{
	uint32_t largest = 0;

	for (unsigned t = 0; t < n; t++)
		for (uint32_t i = 0; i < tasks[t].input.n_jobs; i++)
			if (tasks[t].input.jobs[i].hosts > largest)
				largest = tasks[t].input.jobs[i].hosts;
	printf("There is nothing to gain: %s.\n",
	       largest > 1 ? "no job is slower without aggregation"
	                   : "no job has more than one host (see --gpus for GPUs of a host)");
}

void sim_show_text(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n)
{
	const struct sim_input *input = &tasks[0].input;
	const struct sim_options *options = &input->options;
	const struct sim_result *result = &tasks[0].result;

	printf("%u hosts, %u switch%s; %u job%s; placement %s, trees %s, sharing %s\n",
	       input->fabric.hosts, input->fabric.switches, input->fabric.switches == 1 ? "" : "es",
	       input->n_jobs, input->n_jobs == 1 ? "" : "s", placement_name(options->placement),
	       trees_name(options->trees), sharing_name(options->sharing));
	if (!setup->traces)
		printf("steps are computed from the sizes of models; --traces takes measured "
		       "ones\n");
	printf("%.4g GB/s, %.3g times with aggregation; computation %.3g times as fast",
	       options->wire.bytes_per_s / 1e9, options->wire.ratio, options->speedup);
	if (options->jitter > 0)
		printf(", and varies by %.3g %%", 100 * options->jitter);
	printf("\n\n");
	printf("%8s %7s %7s %10s %12s %12s %12s %9s %6s %10s %10s\n", "seed", "score", "util",
	       "gain", "JCT s", "if all agg.", "if none", "queued s", "moves", "events", "speed");
	for (unsigned i = 0; i < n; i++)
		task_print(&tasks[i]);
	printf("\n");
	spread_print("score", spread_of(tasks, n, sim_score), 1, "  ");
	spread_print("utilization", spread_of(tasks, n, sim_utilization), 1, "  ");
	spread_print("gain", spread_of(tasks, n, sim_gain), 100, " %");
	spread_print("JCT", spread_of(tasks, n, jct_mean), 1, " s");
	if (spread_of(tasks, n, sim_gain_all).high <= 0)
		nothing_print(tasks, n);
	if (n == 1 && result->done && !setup->paper)
		printf("placement %.3f ms a job, trees %.3f ms (at most %.3f ms at once)\n",
		       (double)result->place_ns / 1e6 / (double)result->done,
		       (double)result->trees_ns / 1e6 / (double)result->done,
		       (double)result->trees_longest_ns / 1e6);
}

/* ---- for programs ---- */

static void result_json(const struct sim_task *task)
{
	const struct sim_result *result = &task->result;

	printf("\"seed\":%llu,\"events\":%llu,\"score\":%.9g,\"score_weighted\":%.9g,"
	       "\"utilization\":%.9g,\"gain\":%.9g,\"jct_s\":%.9f,\"jct_all_s\":%.9f,"
	       "\"jct_none_s\":%.9f,\"wait_s\":%.9g,\"end_s\":%.9g,\"host_utilization\":%.9g,"
	       "\"jobs\":%u,\"done\":%llu,\"moves\":%llu,\"unserved\":%llu,\"peak\":%llu,"
	       "\"wall_s\":%.6f,\"cpu_s\":%.6f,\"events_per_s\":%.0f,\"place_s\":%.6f,\"trees_s\":%"
	       ".6f,\"trees_longest_s\":%.6f",
	       (unsigned long long)task->input.options.seed, (unsigned long long)result->events,
	       sim_score(result), sim_score_weighted(result), sim_utilization(result),
	       sim_gain(result), result->jct_s, result->jct_all_s, result->jct_none_s,
	       result->wait_s, result->end_s,
	       result->end_s > 0 ? result->host_s / (result->end_s * task->input.fabric.hosts) : 0,
	       task->input.n_jobs, (unsigned long long)result->done,
	       (unsigned long long)result->migrations, (unsigned long long)result->unserved,
	       (unsigned long long)result->peak, task->wall_s, task->cpu_s, events_a_second(task),
	       (double)result->place_ns / 1e9, (double)result->trees_ns / 1e9,
	       (double)result->trees_longest_ns / 1e9);
}

static void text_json(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	json_print_text(stdout, text);
}

/*
 * Options of a simulation. "levels" of a fabric: from the hosts upward, the children and the
 * parents of each node.
 */
void sim_options_json(const struct sim_task *task)
{
	const struct fabric *fabric = &task->input.fabric;
	const struct sim_options *options = &task->input.options;

	printf("\"hosts\":%u,\"switches\":%u,\"levels\":[", fabric->hosts, fabric->switches);
	for (unsigned l = 0; l < fabric->levels; l++)
		printf("%s[%u,%u]", l ? "," : "", fabric->down[l], fabric->up[l]);
	printf("],\"link\":%u,\"switch\":%u", fabric->link_jobs, fabric->switch_jobs);
	text_json("placement", placement_name(options->placement));
	text_json("trees", trees_name(options->trees));
	text_json("sharing", sharing_name(options->sharing));
	text_json("ties", options->public_ties ? "mina" : "arrival");
	printf(",\"bytes_per_s\":%.9g,\"ratio\":%.9g,\"latency_s\":%.9g,\"speedup\":%.9g,"
	       "\"jitter\":%.9g,\"alpha\":%.9g,\"candidates\":%u,\"migrate_s\":%.9g,\"until_s\":%."
	       "9g",
	       options->wire.bytes_per_s, options->wire.ratio, options->wire.latency_s,
	       options->speedup, options->jitter, options->alpha, options->candidates,
	       options->migrate_s, options->until_s);
}

/* Where jobs come from: a list, a trace, or a generator. */
void sim_jobs_json(const struct sim_setup *setup)
{
	bool is_cluster = setup->philly || setup->gavel;

	text_json("traces", setup->traces ? setup->traces : "");
	text_json("list", setup->jobs);
	text_json("philly", setup->philly);
	text_json("gavel", setup->gavel);
	text_json("models", setup->jobs ? NULL : setup->models);
	if (is_cluster || setup->jobs)
		printf(",\"limit\":%llu", (unsigned long long)setup->limit);
	if (is_cluster)
		printf(",\"shrink\":%.9g,\"gpus\":%llu", setup->shrink,
		       (unsigned long long)setup->gpus);
	if (is_cluster || setup->jobs)
		return;
	printf(",\"generate\":%llu,\"arrivals\":%.9g", (unsigned long long)setup->generate,
	       setup->arrivals);
	text_json("sizes", setup->sizes);
	if (setup->trace && !setup->sizes)
		printf(",\"trace\":%llu", (unsigned long long)setup->trace);
}

static void settings_json(const struct sim_setup *setup, const struct sim_task *task)
{
	printf(",\n\"settings\":{");
	sim_options_json(task);
	text_json("fabric", setup->fabric);
	sim_jobs_json(setup);
	printf("}");
}

static void spread_json(const char *name, struct sim_spread spread)
{
	printf(",\"%s_mean\":%.9g,\"%s_low\":%.9g,\"%s_high\":%.9g", name, spread.mean, name,
	       spread.low, name, spread.high);
}

void sim_show_json(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n)
{
	printf("{");
	result_json(&tasks[0]);
	settings_json(setup, &tasks[0]);
	if (n > 1) {
		printf(",\n\"seeds\":%u", n);
		spread_json("score", spread_of(tasks, n, sim_score));
		spread_json("utilization", spread_of(tasks, n, sim_utilization));
		spread_json("gain", spread_of(tasks, n, sim_gain));
		printf(",\n\"runs\":[");
		for (unsigned i = 0; i < n; i++) {
			printf(i ? ",\n{" : "\n{");
			result_json(&tasks[i]);
			printf("}");
		}
		printf("]");
	}
	printf("}\n");
}

/* ---- CSV, a line for each job ---- */

trib_status sim_show_jobs(const char *path, const struct sim_task *task,
                          const struct sim_models *models)
{
	FILE *out = strcmp(path, "-") ? fopen(path, "w") : stdout;

	if (!out)
		return status_fail_errno("%s", path);
	fprintf(out, "index,model,hosts,steps,arrive_s,start_s,end_s,jct_s,jct_all_s,jct_none_s,"
	             "aggregated_s,moves\n");
	for (uint32_t i = 0; i < task->input.n_jobs; i++) {
		const struct sim_job *job = &task->input.jobs[i];
		const struct sim_outcome *outcome = &task->outcomes[i];

		fprintf(out, "%u,%s,%u,%u,%.6f,", i, models->names[job->step], job->hosts,
		        job->steps, job->arrive_s);
		if (outcome->end_s >= 0)
			fprintf(out, "%.6f,%.6f,%.6f,", outcome->start_s, outcome->end_s,
			        outcome->end_s - outcome->start_s);
		else
			fprintf(out, ",,,");
		fprintf(out, "%.6f,%.6f,%.6f,%u\n", outcome->fast_s, outcome->plain_s,
		        outcome->aggregated_s, outcome->migrations);
	}
	if (ferror(out) | (out != stdout && fclose(out)))
		return status_fail_errno("%s", path);
	return TRIB_OK;
}
