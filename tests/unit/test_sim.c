/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator compared with a second one, as simple as the model: for each event it looks at all
 * jobs, and it has no sharing groups, turns or trees. Also properties that hold for all policies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "short.h"
#include "plan/cluster/draw.h"
#include "sim/generate.h"
#include "sim/jitter.h"
#include "sim/sim.h"
#include "sim/ties.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODELS 4u
#define OPS 6u
#define JOBS 60u

static double start_s[MODELS][OPS];
static uint64_t bytes[MODELS][OPS];
static struct sim_step steps[MODELS];
static struct sim_job jobs[JOBS];
static struct sim_outcome outcomes[JOBS];

static void input_draw(struct sim_input *input, uint64_t *seed, uint32_t hosts_most, bool arrive)
{
	double now = 0;

	for (unsigned m = 0; m < MODELS; m++) {
		double t = 0;

		steps[m] = (struct sim_step){ .name = "model",
			                      .n = draw_below(seed, OPS + 1),
			                      .start_s = start_s[m],
			                      .bytes = bytes[m] };
		for (unsigned i = 0; i < steps[m].n; i++) {
			t += (1 + draw_below(seed, 1000)) * 1e-5;
			start_s[m][i] = t;
			bytes[m][i] = draw_below(seed, 300000000);
		}
		steps[m].compute_s = t + (1 + draw_below(seed, 1000)) * 1e-5;
	}
	for (unsigned i = 0; i < JOBS; i++) {
		if (arrive)
			now += draw_below(seed, 100) * 1e-3;
		jobs[i] = (struct sim_job){ .arrive_s = now,
			                    .step = draw_below(seed, MODELS),
			                    .hosts = 1 + draw_below(seed, hosts_most),
			                    .steps = 1 + draw_below(seed, 12) };
	}
	input->steps = steps;
	input->n_steps = MODELS;
	input->jobs = jobs;
	input->n_jobs = JOBS;
}

/* ---- the simple simulator: one switch, one job at a time on it, the first free hosts ---- */

struct plain_job {
	bool is_running, is_sending, is_fast, is_started;
	unsigned op, step;
	double began, end, start;
};

struct plain_op {
	double start, plain, fast;
};

static struct plain_job plain[JOBS];

static struct plain_op op_of(unsigned job, unsigned op)
{
	unsigned m = jobs[job].step;
	double size = (double)bytes[m][op];

	if (jobs[job].hosts == 1)
		return (struct plain_op){ start_s[m][op], 50e-6, 50e-6 };
	return (struct plain_op){ start_s[m][op], 50e-6 + size / 12.5e9,
		                  50e-6 + size / (12.5e9 * 2) };
}

static double next_time(unsigned i)
{
	const struct plain_job *job = &plain[i];
	const struct sim_step *step = &steps[jobs[i].step];

	if (!job->is_started)
		return job->start;
	if (job->is_sending)
		return job->end;
	if (job->op == step->n)
		return fmax(job->end, job->began + step->compute_s);
	return fmax(job->end, job->began + op_of(i, job->op).start);
}

/* F of the model: when the step ends if this op is aggregated, or is not, and no later op is. */
static double step_end(unsigned i, double began, double now, unsigned op, bool fast)
{
	double t = now + (fast ? op_of(i, op).fast : op_of(i, op).plain);

	for (unsigned k = op + 1; k < steps[jobs[i].step].n; k++)
		t = fmax(t, began + op_of(i, k).start) + op_of(i, k).plain;
	return fmax(t, began + steps[jobs[i].step].compute_s);
}

/* A job's next op: its start, duration and gain. False: it has none. */
static bool next_op(unsigned i, double *start, double *fast, double *gain)
{
	const struct plain_job *job = &plain[i];
	const struct sim_step *step = &steps[jobs[i].step];
	unsigned op = job->op + job->is_sending;
	double began = job->began, t = job->end;

	if (!job->is_started || !step->n)
		return false;
	if (op == step->n) {
		if (job->step + 1 == jobs[i].steps)
			return false;
		began = t = fmax(t, began + step->compute_s);
		op = 0;
	}
	*start = fmax(t, began + op_of(i, op).start);
	*fast = op_of(i, op).fast;
	*gain = step_end(i, began, *start, op, false) - step_end(i, began, *start, op, true);
	return true;
}

static bool decide(unsigned i, double now, enum turn_policy policy)
{
	double start, fast, gain, score;

	if (jobs[i].hosts == 1)
		return policy != TURN_NONE;
	for (unsigned k = 0; k < JOBS; k++)
		if (plain[k].is_running && plain[k].is_sending && plain[k].is_fast &&
		    jobs[k].hosts > 1)
			return false;
	if (policy != TURN_SMART)
		return policy == TURN_GREEDY;
	assert_true(next_op(i, &start, &fast, &gain));
	score = gain / (start + fast - now);
	for (unsigned k = 0; k < JOBS; k++) {
		double other_start, other_fast, other_gain;

		if (k == i || !plain[k].is_running || jobs[k].hosts == 1 ||
		    !next_op(k, &other_start, &other_fast, &other_gain))
			continue;
		if (other_start < now + fast &&
		    other_gain / (other_start + other_fast - now) > score + 1e-12)
			return false;
	}
	return true;
}

static bool event(unsigned i, double now, enum turn_policy policy)
{
	struct plain_job *job = &plain[i];
	const struct sim_step *step = &steps[jobs[i].step];

	if (!job->is_started) {
		job->is_started = true;
		job->began = job->end = now;
	} else if (job->is_sending) {
		job->is_sending = false;
		job->op++;
	} else if (job->op < step->n) {
		bool fast = decide(i, now, policy);

		job->is_sending = true;
		job->is_fast = fast;
		job->end = now + (fast ? op_of(i, job->op).fast : op_of(i, job->op).plain);
	} else {
		job->op = 0;
		job->began = job->end = now;
		if (++job->step == jobs[i].steps)
			return true;
	}
	return false;
}

static uint64_t plain_run(uint32_t hosts, enum turn_policy policy, double *jct)
{
	uint32_t unused = hosts, head = 0, running = 0;
	uint64_t events = 0;
	double now = 0;

	memset(plain, 0, sizeof(plain));
	*jct = 0;
	for (;;) {
		unsigned first = JOBS;

		for (; head < JOBS && jobs[head].arrive_s <= now && jobs[head].hosts <= unused;
		     head++) {
			unused -= jobs[head].hosts;
			plain[head].is_running = true;
			plain[head].start = now;
			running++;
		}
		for (unsigned i = 0; i < JOBS; i++)
			if (plain[i].is_running &&
			    (first == JOBS || next_time(i) < next_time(first)))
				first = i;
		if (head < JOBS && jobs[head].arrive_s > now &&
		    (first == JOBS || jobs[head].arrive_s <= next_time(first))) {
			now = jobs[head].arrive_s;
			continue;
		}
		if (!running)
			return events;
		now = next_time(first);
		events++;
		if (event(first, now, policy)) {
			plain[first].is_running = false;
			running--;
			unused += jobs[first].hosts;
			*jct += now - plain[first].start;
		}
	}
}

static void engines_agree(void **state)
{
	uint64_t seed = 21;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct sim_input input = { .options = SIM_OPTIONS_DEFAULT };
		struct sim_result result;
		enum turn_policy policy = (enum turn_policy)(round % 3);
		uint64_t events;
		double jct;

		input.fabric = (struct fabric){
			.levels = 1, .down = { 16 }, .up = { 1 }, .switch_jobs = 1
		};
		assert_int_equal(fabric_complete(&input.fabric), TRIB_OK);
		input_draw(&input, &seed, 6, round / 3 % 2);
		input.options.placement = SIM_PLACE_FIRST;
		input.options.trees = SIM_TREES_SMART; /* there is one switch */
		input.options.sharing = policy;
		input.options.public_ties = false;
		assert_int_equal(sim_run(&input, outcomes, &result), TRIB_OK);
		events = plain_run(16, policy, &jct);
		assert_int_equal(result.events, events);
		assert_int_equal(result.done, JOBS);
		assert_true(fabs(result.jct_s - jct) < 1e-6 * jct);
	}
}

/* ---- properties of all policies ---- */

static void policies_hold(void **state)
{
	uint64_t seed = 31, rounds = test_count("inputs", 300, 36);

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		struct sim_input input = { .options = SIM_OPTIONS_DEFAULT };
		struct sim_result result, again;
		double jct = 0;

		input.fabric.link_jobs = round % 3;
		input.fabric.switch_jobs = round / 3 % 3;
		assert_int_equal(fabric_fat_tree(&input.fabric, 4, 1 + round / 9 % 2), TRIB_OK);
		input_draw(&input, &seed, 8, round % 2);
		input.options.placement = (enum sim_placement)draw_below(&seed, 3);
		input.options.trees = (enum sim_trees)draw_below(&seed, 4);
		input.options.sharing = (enum turn_policy)draw_below(&seed, 5);
		input.options.candidates = draw_below(&seed, 3);
		input.options.migrate_s = draw_below(&seed, 2) * 0.01;
		input.options.public_ties = draw_below(&seed, 2);
		input.options.jitter = draw_below(&seed, 4) * 0.1;
		assert_int_equal(sim_run(&input, outcomes, &result), TRIB_OK);
		assert_int_equal(result.done, JOBS);
		for (unsigned i = 0; i < JOBS; i++) {
			double took = outcomes[i].end_s - outcomes[i].start_s;

			assert_true(outcomes[i].start_s >= jobs[i].arrive_s);
			assert_true(took >= outcomes[i].fast_s * (1 - 1e-9));
			assert_true(took <= outcomes[i].plain_s * (1 + 1e-9));
			jct += took;
		}
		assert_true(fabs(jct - result.jct_s) < 1e-6 * jct);
		if (input.options.trees == SIM_TREES_NONE || input.options.sharing == TURN_NONE)
			assert_true(fabs(result.jct_s - result.jct_none_s) < 1e-6 * jct);
		/* Without limits there are no conflicts. */
		if (!input.fabric.resources && input.options.trees != SIM_TREES_NONE &&
		    input.options.sharing != TURN_NONE)
			assert_true(fabs(result.jct_s - result.jct_all_s) < 1e-6 * jct);
		assert_int_equal(sim_run(&input, NULL, &again), TRIB_OK);
		assert_memory_equal(&result, &again, sizeof(result));
	}
}

/* Steps vary around their mean, and vary alike for all policies. */
static void jitter_is_of_the_seed(void **state)
{
	struct sim_input input = { .options = SIM_OPTIONS_DEFAULT };
	struct sim_result even, greedy, frugal, other;
	double sum = 0, squares = 0;
	uint64_t seed = 51;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		double pace = jitter_pace(0.2, 7, i / 100, i % 100);

		assert_true(pace >= 0.4 && pace <= 1.6);
		sum += pace - 1;
		squares += (pace - 1) * (pace - 1);
	}
	assert_true(fabs(sum / 10000) < 0.01);
	assert_true(fabs(sqrt(squares / 10000) - 0.2) < 0.01);
	input.fabric.link_jobs = 1;
	assert_int_equal(fabric_fat_tree(&input.fabric, 4, 1), TRIB_OK);
	input_draw(&input, &seed, 8, false);
	assert_int_equal(sim_run(&input, NULL, &even), TRIB_OK);
	input.options.jitter = 0.2;
	assert_int_equal(sim_run(&input, NULL, &frugal), TRIB_OK);
	input.options.sharing = TURN_GREEDY;
	assert_int_equal(sim_run(&input, NULL, &greedy), TRIB_OK);
	input.options.seed = 2;
	assert_int_equal(sim_run(&input, NULL, &other), TRIB_OK);
	assert_true(fabs(frugal.jct_all_s - even.jct_all_s) > 1e-6);
	assert_true(fabs(frugal.jct_all_s - greedy.jct_all_s) < 1e-6);
	assert_true(fabs(other.jct_all_s - greedy.jct_all_s) > 1e-6);
}

/* One switch: with any policy, it never serves more jobs at once than its capacity. */
static void capacity_is_the_most(void **state)
{
	uint64_t seed = 41;
	unsigned full = 0;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct sim_input input = { .options = SIM_OPTIONS_DEFAULT };
		uint32_t capacity = 1 + round % 3;
		struct sim_result result;

		input.fabric = (struct fabric){
			.levels = 1, .down = { 32 }, .up = { 1 }, .switch_jobs = capacity
		};
		assert_int_equal(fabric_complete(&input.fabric), TRIB_OK);
		input_draw(&input, &seed, 3, false);
		for (unsigned i = 0; i < JOBS; i++)
			jobs[i].hosts += 1; /* on one host nothing is aggregated */
		input.options.sharing = (enum turn_policy)(TURN_GREEDY + round / 3 % 4);
		input.options.wire.bytes_per_s = 2e9;
		assert_int_equal(sim_run(&input, NULL, &result), TRIB_OK);
		assert_true(result.aggregated_s <= capacity * result.end_s * (1 + 1e-9));
		full += result.aggregated_s > 0.7 * capacity * result.end_s;
	}
	assert_in_range(full, 10, 60);
}

static struct sim_result run_migrating(uint64_t seed, double migrate_s)
{
	struct sim_input input = { .options = SIM_OPTIONS_DEFAULT };
	struct sim_result result;

	input.fabric.link_jobs = 1;
	assert_int_equal(fabric_fat_tree(&input.fabric, 6, 1), TRIB_OK);
	input_draw(&input, &seed, 4, true);
	for (unsigned m = 0; m < MODELS; m++) { /* all models gain by aggregation */
		steps[m].n = 1;
		bytes[m][0] = 1000000000;
		steps[m].compute_s = start_s[m][0];
	}
	input.options.placement = SIM_PLACE_RANDOM;
	input.options.sharing = TURN_GREEDY;
	input.options.migrate_s = migrate_s;
	input.options.seed = seed;
	assert_int_equal(sim_run(&input, outcomes, &result), TRIB_OK);
	return result;
}

/*
 * A job that migrates is without aggregation for a time, here until it ends. So if migration is
 * expensive, few jobs migrate: those that lost their tree to a job worth more.
 */
static void migration_has_its_cost(void **state)
{
	uint64_t migrations_free = 0, migrations_dear = 0;
	unsigned migrated = 0, hurt = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		migrations_free += run_migrating(seed, 0).migrations;
		migrations_dear += run_migrating(seed, 1000).migrations;
		for (unsigned i = 0; i < JOBS; i++)
			if (outcomes[i].migrations) {
				double took = outcomes[i].end_s - outcomes[i].start_s;

				migrated++;
				hurt += took > outcomes[i].fast_s * (1 + 1e-9);
			}
	}
	assert_true(migrated > 40 && migrations_dear < 0.75 * (double)migrations_free);
	/* Except jobs that migrated after their last allreduce had begun. */
	assert_true(hurt > 0.75 * migrated);
}

static void nothing_to_gain_is_no_failure(void **state)
{
	struct sim_result result = { .jct_s = 3, .jct_all_s = 3, .jct_none_s = 3 + 1e-14 };

	(void)state;
	assert_true(sim_score(&result) == 1 && sim_gain(&result) == 0);
	assert_true(sim_gain_all(&result) == 0 && sim_score_weighted(&result) == 1);
	result = (struct sim_result){ .jct_s = 3.5, .jct_all_s = 3, .jct_none_s = 4 };
	assert_true(sim_score(&result) == 0.5 && sim_gain(&result) == 0.125);
	assert_true(sim_gain_all(&result) == 0.25);
}

static void bad_input_is_refused(void **state)
{
	struct sim_input input = { .options = SIM_OPTIONS_DEFAULT };
	struct sim_result result;
	uint64_t seed = 1;

	(void)state;
	assert_int_equal(fabric_fat_tree(&input.fabric, 4, 1), TRIB_OK);
	input_draw(&input, &seed, 4, true);
	jobs[3].hosts = 17;
	assert_int_not_equal(sim_run(&input, NULL, &result), TRIB_OK);
	assert_non_null(strstr(trib_last_error(), "job 3 wants 17 hosts of 16"));
	jobs[3].hosts = 1;
	jobs[4].arrive_s = -1;
	assert_int_not_equal(sim_run(&input, NULL, &result), TRIB_OK);
	jobs[4].arrive_s = jobs[3].arrive_s;
	jobs[5].steps = SIM_ENDLESS;
	assert_int_not_equal(sim_run(&input, NULL, &result), TRIB_OK);
	input.options.until_s = 1;
	assert_int_equal(sim_run(&input, NULL, &result), TRIB_OK);
}

/* ---- the order of ties ---- */

static void map_visits_each_key_once(void **state)
{
	uint32_t next[201], buckets[TIES_BUCKETS(200)];
	struct ties_map map = { .next = next, .buckets = buckets };
	uint64_t seed = 6;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint8_t seen[200] = { 0 };
		unsigned n = 0, put = 0;

		ties_map_clear(&map);
		for (unsigned i = 0; i < 1 + round; i++) {
			uint32_t key = draw_below(&seed, 200);

			put += !seen[key];
			seen[key] = 1;
			ties_map_put(&map, key);
		}
		for (uint32_t key = ties_map_first(&map); key != UINT32_MAX;
		     key = ties_map_next(&map, key), n++)
			assert_int_equal(seen[key]--, 1);
		assert_int_equal(n, put);
	}
	/* As in libc++: the last entry added to an empty bucket is the first. */
	ties_map_clear(&map);
	ties_map_put(&map, 0);
	ties_map_put(&map, 1);
	assert_int_equal(ties_map_first(&map), 1);
	assert_int_equal(ties_map_next(&map, 1), 0);
}

static void generator_follows_weights(void **state)
{
	struct sim_list list = { 0 };
	struct generate_sizes sizes;
	struct generate generate = {
		.jobs = 40000, .models = 7, .sizes = &sizes, .arrivals = 2, .seed = 3
	};
	unsigned large = 0, models[7] = { 0 };

	(void)state;
	assert_int_equal(generate_sizes_parse(&sizes, "1:3,8:1"), TRIB_OK);
	assert_int_not_equal(generate_sizes_parse(&sizes, "1:3,"), TRIB_OK);
	assert_int_not_equal(generate_sizes_parse(&sizes, "1"), TRIB_OK);
	assert_int_not_equal(generate_sizes_parse(&sizes, "0:1"), TRIB_OK);
	assert_int_equal(generate_sizes_parse(&sizes, "1:3,8:1"), TRIB_OK);
	assert_int_equal(generate_jobs(&list, &generate), TRIB_OK);
	assert_int_equal(list.n, 40000);
	for (unsigned i = 0; i < list.n; i++) {
		large += list.jobs[i].hosts == 8;
		models[list.jobs[i].step]++;
		assert_true(list.jobs[i].steps % 10 == 0 && list.jobs[i].steps <= 100);
	}
	assert_in_range(large, 9600, 10400);
	assert_in_range(models[6], 5300, 6100);
	assert_in_range((unsigned)list.jobs[39999].arrive_s, 19400, 20600);
	list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engines_agree),
		cmocka_unit_test(policies_hold),
		cmocka_unit_test(jitter_is_of_the_seed),
		cmocka_unit_test(capacity_is_the_most),
		cmocka_unit_test(migration_has_its_cost),
		cmocka_unit_test(nothing_to_gain_is_no_failure),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(map_visits_each_key_once),
		cmocka_unit_test(generator_follows_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
