/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of runs. Systems take turns within every repeat, so that a change of the machine's
 * load affects all of them alike.
 */
#include "bench/bed/peer_job.h"
#include "bench/bed/size_list.h"
#include "bench/report/cpu_time.h"
#include "bench/report/progress.h"
#include "base/clock.h"
#include "wire/packet.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TUNE_LEAST 7 /* iterations of a trial: a fifth of those of a run, within these bounds */
#define TUNE_MOST 200
#define TUNE_SHARE 5
#define PATIENCE_S 20 /* seconds to start and to end a run */
#define QUIET_WAIT_S 1
#define CALL_S 0.004 /* longest time of an allreduce without its bytes, for each rank */
/* Ports below the range that the kernel uses for outgoing connections; every run has its own. */
#define PORT_FIRST 20000
#define PORT_SPAN 12000

struct progress {
	unsigned done, all;
};

static volatile sig_atomic_t stopped;

static void stop_take(int signal)
{
	(void)signal;
	stopped = 1;
}

static void progress_show(const struct progress *progress, const char *what, uint64_t bytes)
{
	char size[24];

	progress_tell(progress->done, progress->all, "%s, %s", what, bench_bytes_text(bytes, size));
}

/* ---- one run ---- */

static unsigned port_next(unsigned workers)
{
	static unsigned used;
	unsigned at = (unsigned)getpid() * 64 + used;

	used += workers;
	return PORT_FIRST + at % (PORT_SPAN - CLUSTER_HOSTS_MAX);
}

/* Ten times the expected time: some systems never end. */
static double timeout_choose(const struct bench_options *options, const struct bench_place *place,
                             uint64_t bytes, unsigned rounds)
{
	double rate = place->slowest_bps ? (double)place->slowest_bps : 1e9;
	double many = options->many > 1 ? (double)options->many : 1;
	double one = 2 * many * (double)bytes * 8 / rate;

	if (place->server_bps)
		one *= fmax(1, place->workers * rate / (double)place->server_bps);
	one += bench_latest(options);
	return options->timeout_s > 0
	               ? options->timeout_s
	               : PATIENCE_S + ceil(rounds * (10 * one + CALL_S * place->workers * many));
}

static trib_status run_once(const struct bench_options *options, const struct bench_result *result,
                            const struct bench_variant *variant, unsigned iterations,
                            unsigned warmup, struct bench_outcome *outcome)
{
	const struct bench_place *place = result->place;
	struct bench_run run = {
		.options = options,
		.place = place,
		.system = result->system,
		.variant = variant,
		.bytes = result->bytes,
		.iterations = iterations,
		.warmup = warmup,
		.stop = &stopped,
		.timeout_s = timeout_choose(options, place, result->bytes, iterations + warmup),
		.port = port_next(place->workers +
		                  (result->system->trees ? result->system->trees->n_sites : 1) *
		                          WIRE_LANES_MAX),
	};
	trib_status status = bench_run_once(&run, outcome);

	if (outcome->stopped)
		stopped = 1;
	return status;
}

/* ---- choosing the best variant at a size ---- */

static bool variant_fits(const struct bench_variant *variant, const struct bench_result *result)
{
	return !(variant->spins && result->place->workers > cpu_count()) &&
	       result->bytes >= variant->from && (!variant->to || result->bytes <= variant->to);
}

/* Few iterations in a run mean that each takes long. */
static unsigned trial_iterations(const struct bench_result *result)
{
	unsigned n = result->iterations / TUNE_SHARE;

	n = n < TUNE_LEAST ? TUNE_LEAST : n > TUNE_MOST ? TUNE_MOST : n;
	return n < result->iterations ? n : result->iterations;
}

/* The median of a trial; NaN: it failed, and outcome->why says why. */
static double variant_try(const struct bench_options *options, struct bench_result *result,
                          const struct bench_variant *variant, struct bench_outcome *outcome)
{
	unsigned n = trial_iterations(result), warmup = result->warmup / 2;

	if (!options->hurry)
		cpu_wait_quiet(QUIET_WAIT_S);
	if (run_once(options, result, variant, n, warmup > 1 ? warmup : 1, outcome) != TRIB_OK)
		return NAN;
	return stats_median(outcome->times, n);
}

static unsigned trials(const struct bench_options *options)
{
	return options->trials ? options->trials : 1;
}

static void result_tune(const struct bench_options *options, struct bench_result *result,
                        struct progress *progress)
{
	const struct bench_variant *variants = result->system->variants, *variant;
	double times[TUNE_MOST], best = INFINITY, median;
	struct bench_outcome outcome = { .times = times };
	char what[96];

	for (unsigned trial = 0; trial < trials(options); trial++)
		for (variant = variants; variant->name && !stopped; variant++, progress->done++) {
			if (!variant_fits(variant, result))
				continue;
			snprintf(what, sizeof(what), "trying %s, %s", result->system->name,
			         variant->name);
			progress_show(progress, what, result->bytes);
			median = variant_try(options, result, variant, &outcome);
			if (median < best) {
				best = median;
				result->variant = variant;
			}
		}
	if (isfinite(best) || stopped)
		return;
	/* No variant works: more runs would only take the others' time. */
	result->runs = result->failed = (unsigned)options->repeats;
	snprintf(result->note, sizeof(result->note), "%s", outcome.why);
}

/* The result whose variant this one takes; NULL: none. */
static const struct bench_result *model_of(const struct bench_result *result,
                                           const struct bench_result *results, unsigned n)
{
	const char *name = result->system->tuned_as;

	for (unsigned i = 0; i < n && name; i++)
		if (strcmp(results[i].system->name, name) == 0 &&
		    results[i].place == result->place && results[i].bytes == result->bytes)
			return &results[i];
	return NULL;
}

static void results_tune(const struct bench_options *options, struct bench_result *results,
                         unsigned n, struct progress *progress)
{
	for (unsigned i = 0; i < n && !stopped; i++)
		if (results[i].system->tuned && !model_of(&results[i], results, n))
			result_tune(options, &results[i], progress);
	for (unsigned i = 0; i < n; i++) {
		const struct bench_result *model = model_of(&results[i], results, n);

		if (model)
			results[i].variant = model->variant;
	}
}

/* ---- measuring all systems ---- */

static void result_measure(const struct bench_options *options, struct bench_result *result)
{
	unsigned good = result->runs - result->failed, repeat = result->runs;
	struct bench_outcome outcome = { .times = result->times +
		                                  (size_t)good * result->iterations };
	trib_status status;

	if (result->runs == options->repeats)
		return;
	if (!options->hurry && !cpu_wait_quiet(QUIET_WAIT_S))
		result->disturbed++;
	status = run_once(options, result, result->variant, result->iterations, result->warmup,
	                  &outcome);
	if (stopped)
		return;
	result->runs++;
	if (status != TRIB_OK) {
		result->failed++;
		snprintf(result->note, sizeof(result->note), "%s", outcome.why);
		return;
	}
	result->cpu_s += outcome.cpu_s;
	result->worker_cpu_s += outcome.worker_cpu_s;
	if (result->system->aggregates && outcome.cpu_s > 0 && outcome.payload_bytes > 0)
		result->added[repeat] = outcome.payload_bytes * 8e-9 / outcome.cpu_s;
	result->packets.fragments += outcome.packets.fragments;
	result->packets.fragments_again += outcome.packets.fragments_again;
	result->packets.results_again += outcome.packets.results_again;
}

static void result_prepare(const struct bench_options *options, struct bench_result *result,
                           bool tunes, struct progress *progress)
{
	result->times = calloc(options->repeats * result->iterations, sizeof(double));
	result->added = calloc(options->repeats, sizeof(double));
	if (!result->times || !result->added)
		abort();
	for (unsigned r = 0; r < options->repeats; r++)
		result->added[r] = NAN;
	progress->all += (unsigned)options->repeats;
	for (const struct bench_variant *v = result->system->variants; tunes && v->name; v++)
		progress->all += trials(options);
}

static void results_condense(const struct bench_options *options, struct bench_result *results,
                             unsigned n)
{
	unsigned repeats = (unsigned)options->repeats;

	for (unsigned i = 0; i < n; i++) {
		struct bench_result *result = &results[i];

		stats_compute(result->times, result->runs - result->failed, result->iterations,
		              &result->stats);
		stats_range(result->added, repeats, &result->added_gb);
		if (result->first && result != result->first)
			stats_ratio(result->first->added, result->added, repeats,
			            &result->cpu_times);
		free(result->times);
		result->times = NULL;
	}
	for (unsigned i = 0; i < n; i++) {
		free(results[i].added);
		results[i].added = NULL;
	}
}

struct bench_result bench_result_of(const struct bench_options *options,
                                    const struct bench_system *system,
                                    const struct bench_place *place, uint64_t bytes)
{
	return (struct bench_result){ .system = system,
		                      .variant = system->variants,
		                      .place = place,
		                      .bytes = bytes,
		                      .iterations = (unsigned)options->iterations,
		                      .warmup = (unsigned)options->warmup };
}

trib_status bench_interleave(const struct bench_options *options, struct bench_result *results,
                             unsigned n)
{
	struct progress progress = { 0 };
	struct sigaction take = { .sa_handler = stop_take }, was[2];

	sigaction(SIGINT, &take, &was[0]);
	sigaction(SIGTERM, &take, &was[1]);
	for (unsigned i = 0; i < n; i++)
		result_prepare(options, &results[i],
		               results[i].system->tuned && !model_of(&results[i], results, n),
		               &progress);
	results_tune(options, results, n, &progress);
	for (unsigned r = 0; r < options->repeats; r++) {
		for (unsigned i = 0; i < n && !stopped; i++, progress.done++) {
			progress_show(&progress, results[i].system->name, results[i].bytes);
			result_measure(options, &results[i]);
		}
	}
	progress_clear();
	results_condense(options, results, n);
	sigaction(SIGINT, &was[0], NULL);
	sigaction(SIGTERM, &was[1], NULL);
	return stopped ? status_fail(TRIB_ERR_CLOSED, "stopped before everything was measured")
	               : TRIB_OK;
}
