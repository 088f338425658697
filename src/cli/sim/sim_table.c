/* SPDX-License-Identifier: Apache-2.0 */
/* Prints simulations: a table, JSON, and a CSV line for each job. */
#include "cli/sim/sim_command.h"

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

static void result_json(struct json_writer *json, const struct sim_task *task)
{
	const struct sim_result *result = &task->result;
	double host_s = result->end_s * task->input.fabric.hosts;

	json_put_count(json, "seed", task->input.options.seed);
	json_put_count(json, "events", result->events);
	json_put_number(json, "score", "%.9g", sim_score(result));
	json_put_number(json, "score_weighted", "%.9g", sim_score_weighted(result));
	json_put_number(json, "utilization", "%.9g", sim_utilization(result));
	json_put_number(json, "gain", "%.9g", sim_gain(result));
	json_put_number(json, "jct_s", "%.9f", result->jct_s);
	json_put_number(json, "jct_all_s", "%.9f", result->jct_all_s);
	json_put_number(json, "jct_none_s", "%.9f", result->jct_none_s);
	json_put_number(json, "wait_s", "%.9g", result->wait_s);
	json_put_number(json, "end_s", "%.9g", result->end_s);
	json_put_number(json, "host_utilization", "%.9g",
	                result->end_s > 0 ? result->host_s / host_s : 0);
	json_put_count(json, "jobs", task->input.n_jobs);
	json_put_count(json, "done", result->done);
	json_put_count(json, "moves", result->migrations);
	json_put_count(json, "unserved", result->unserved);
	json_put_count(json, "peak", result->peak);
	json_put_number(json, "wall_s", "%.6f", task->wall_s);
	json_put_number(json, "cpu_s", "%.6f", task->cpu_s);
	json_put_number(json, "events_per_s", "%.0f", events_a_second(task));
	json_put_number(json, "place_s", "%.6f", (double)result->place_ns / 1e9);
	json_put_number(json, "trees_s", "%.6f", (double)result->trees_ns / 1e9);
	json_put_number(json, "trees_longest_s", "%.6f", (double)result->trees_longest_ns / 1e9);
}

/*
 * Options of a simulation. "levels" of a fabric: from the hosts upward, the children and the
 * parents of each node.
 */
void sim_options_json(struct json_writer *json, const struct sim_task *task)
{
	const struct fabric *fabric = &task->input.fabric;
	const struct sim_options *options = &task->input.options;

	json_put_count(json, "hosts", fabric->hosts);
	json_put_count(json, "switches", fabric->switches);
	json_open_list(json, "levels");
	for (unsigned l = 0; l < fabric->levels; l++) {
		json_open_list(json, NULL);
		json_put_count(json, NULL, fabric->down[l]);
		json_put_count(json, NULL, fabric->up[l]);
		json_close(json);
	}
	json_close(json);
	json_put_count(json, "link", fabric->link_jobs);
	json_put_count(json, "switch", fabric->switch_jobs);
	json_put_text(json, "placement", placement_name(options->placement));
	json_put_text(json, "trees", trees_name(options->trees));
	json_put_text(json, "sharing", sharing_name(options->sharing));
	json_put_text(json, "ties", options->public_ties ? "mina" : "arrival");
	json_put_number(json, "bytes_per_s", "%.9g", options->wire.bytes_per_s);
	json_put_number(json, "ratio", "%.9g", options->wire.ratio);
	json_put_number(json, "latency_s", "%.9g", options->wire.latency_s);
	json_put_number(json, "speedup", "%.9g", options->speedup);
	json_put_number(json, "jitter", "%.9g", options->jitter);
	json_put_number(json, "alpha", "%.9g", options->alpha);
	json_put_count(json, "candidates", options->candidates);
	json_put_number(json, "migrate_s", "%.9g", options->migrate_s);
	json_put_number(json, "until_s", "%.9g", options->until_s);
}

/* Where jobs come from: a list, a trace, or a generator. */
void sim_jobs_json(struct json_writer *json, const struct sim_setup *setup)
{
	bool is_cluster = setup->philly || setup->gavel;

	json_put_text(json, "traces", setup->traces ? setup->traces : "");
	json_put_text(json, "list", setup->jobs);
	json_put_text(json, "philly", setup->philly);
	json_put_text(json, "gavel", setup->gavel);
	json_put_text(json, "models", setup->jobs ? NULL : setup->models);
	if (is_cluster || setup->jobs)
		json_put_count(json, "limit", setup->limit);
	if (is_cluster) {
		json_put_number(json, "shrink", "%.9g", setup->shrink);
		json_put_count(json, "gpus", setup->gpus);
	}
	if (is_cluster || setup->jobs)
		return;
	json_put_count(json, "generate", setup->generate);
	json_put_number(json, "arrivals", "%.9g", setup->arrivals);
	json_put_text(json, "sizes", setup->sizes);
	if (setup->trace && !setup->sizes)
		json_put_count(json, "trace", setup->trace);
}

static void spread_json(struct json_writer *json, const char *name, const struct sim_task *tasks,
                        unsigned n, sim_figure *figure)
{
	struct sim_spread spread = spread_of(tasks, n, figure);
	const double values[] = { spread.mean, spread.low, spread.high };
	static const char *const ends[] = { "mean", "low", "high" };
	char full[40];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(full, sizeof(full), "%s_%s", name, ends[i]);
		json_put_number(json, full, "%.9g", values[i]);
	}
}

void sim_show_json(const struct sim_setup *setup, const struct sim_task *tasks, unsigned n)
{
	struct json_writer json = { .out = stdout };

	json_open_object(&json, NULL);
	result_json(&json, &tasks[0]);
	json_open_object(&json, "settings");
	sim_options_json(&json, &tasks[0]);
	json_put_text(&json, "fabric", setup->fabric);
	sim_jobs_json(&json, setup);
	json_close(&json);
	if (n > 1) {
		json_put_count(&json, "seeds", n);
		spread_json(&json, "score", tasks, n, sim_score);
		spread_json(&json, "utilization", tasks, n, sim_utilization);
		spread_json(&json, "gain", tasks, n, sim_gain);
		json_open_list(&json, "runs");
		for (unsigned i = 0; i < n; i++) {
			json_open_object(&json, NULL);
			result_json(&json, &tasks[i]);
			json_close(&json);
		}
		json_close(&json);
	}
	json_close(&json);
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
