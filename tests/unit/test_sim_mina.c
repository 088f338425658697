/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MINA's own input and figures: the same events, the same sums, the same scores. Skipped if its
 * traces are missing. They are in the folder mina of TRIB_DATA, or of ../shared/data beside the
 * sources.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "short.h"
#include "sim/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODELS 7u
#define TEXT_MAX (1u << 20)

static const char *const names[MODELS] = { "opt-125m",   "opt-350m", "opt-1.3b", "bert-base",
	                                   "bert-large", "vit-base", "vit-large" };
static struct sim_step steps[MODELS];
static struct sim_list list;
static char text[TEXT_MAX];

static bool text_load(const char *name)
{
	const char *folder = getenv("TRIB_DATA");
	char path[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/mina/%s", folder ? folder : TRIB_DATA_FOLDER, name);
	file = fopen(path, "r");
	if (!file)
		return false;
	n = fread(text, 1, TEXT_MAX - 1, file);
	text[n] = 0;
	fclose(file);
	return true;
}

static trib_status model_find(void *context, const char *name, uint32_t *step)
{
	(void)context;
	for (*step = 0; *step < MODELS; ++*step) {
		char path[64];

		snprintf(path, sizeof(path), "traces/%s-4.json", names[*step]);
		if (!strcmp(path, name))
			return TRIB_OK;
	}
	return status_fail(TRIB_ERR_CONFIG, "no model %s", name);
}

static bool data_load(void)
{
	static const struct read_models models = { .find = model_find };

	for (unsigned i = 0; i < MODELS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s-4.json", names[i]);
		if (!text_load(name) || read_step(&steps[i], text) != TRIB_OK)
			return false;
	}
	return text_load("jobs_trace1_seed42.csv") && read_jobs(&list, text, &models) == TRIB_OK;
}

static struct sim_result run(enum sim_placement placement, enum sim_trees trees,
                             enum turn_policy sharing, uint32_t candidates)
{
	struct sim_input input = { .steps = steps,
		                   .n_steps = MODELS,
		                   .jobs = list.jobs,
		                   .n_jobs = list.n,
		                   .options = SIM_OPTIONS_DEFAULT };
	struct sim_result result;

	input.fabric.link_jobs = 1;
	assert_int_equal(fabric_fat_tree(&input.fabric, 16, 1), TRIB_OK);
	input.options.placement = placement;
	input.options.trees = trees;
	input.options.sharing = sharing;
	input.options.candidates = candidates;
	assert_int_equal(sim_run(&input, NULL, &result), TRIB_OK);
	return result;
}

static bool near(double is, double wanted, double by)
{
	return fabs(is - wanted) <= by;
}

static void sums_are_exact(void **state)
{
	struct sim_result result = run(SIM_PLACE_FIRST, SIM_TREES_FIRST, TURN_GREEDY, 0);

	(void)state;
	assert_int_equal(list.n, 2000);
	assert_int_equal(result.events, 7641270);
	assert_true(near(result.jct_all_s, 23283.056576, 5e-7));
	assert_true(near(result.jct_none_s, 23336.742786, 5e-7));
}

/* A short run has only this row of each table: smart placement and smart sharing. */
#define SHORT_ROW 2u

/* Rows without randomness, exact to the last known digit. */
static void rows_are_exact(void **state)
{
	static const struct {
		enum sim_placement placement;
		enum turn_policy sharing;
		double score, utilization;
	} rows[] = {
		{ SIM_PLACE_FIRST, TURN_GREEDY, .2626, .0799 },
		{ SIM_PLACE_SMART, TURN_GREEDY, .4828, .1286 },
		{ SIM_PLACE_SMART, TURN_SMART, .9794, .1231 },
		{ SIM_PLACE_FIRST, TURN_SMART, .9634, .0793 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_result result;

		if (test_is_short() && i != SHORT_ROW)
			continue;
		result = run(rows[i].placement, SIM_TREES_FIRST, rows[i].sharing, 0);
		assert_true(near(sim_score(&result), rows[i].score, 5.1e-5));
		assert_true(near(sim_utilization(&result), rows[i].utilization, 5.1e-5));
	}
}

/* The other rows are better, because the trees are. */
static void rows_with_trees_are_better(void **state)
{
	static const struct {
		enum sim_placement placement;
		enum turn_policy sharing;
		uint32_t candidates;
		double score; /* at least */
	} rows[] = {
		{ SIM_PLACE_SMART, TURN_GREEDY, 5, .9001 },
		{ SIM_PLACE_FIRST, TURN_SMART, 5, .9468 },
		{ SIM_PLACE_SMART, TURN_SMART, 5, .9824 },
		{ SIM_PLACE_SMART, TURN_FRUGAL, 0, .999 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_result result;

		if (test_is_short() && i != SHORT_ROW)
			continue;
		result = run(rows[i].placement, SIM_TREES_SMART, rows[i].sharing,
		             rows[i].candidates);
		assert_true(sim_score(&result) >= rows[i].score);
	}
}

static struct sim_result run_varying(enum turn_policy sharing, double jitter, bool is_slow)
{
	struct sim_input input = { .steps = steps,
		                   .n_steps = MODELS,
		                   .jobs = list.jobs,
		                   .n_jobs = 1000,
		                   .options = SIM_OPTIONS_DEFAULT };
	struct sim_result result;

	input.fabric.link_jobs = 1;
	assert_int_equal(fabric_fat_tree(&input.fabric, 16, 1), TRIB_OK);
	input.options.sharing = sharing;
	input.options.jitter = jitter;
	if (is_slow) {
		input.options.wire.bytes_per_s /= 4;
		input.options.wire.ratio = input.options.speedup = 1.5;
	}
	assert_int_equal(sim_run(&input, NULL, &result), TRIB_OK);
	return result;
}

/*
 * If steps vary, the rules of ours are not below MINA's. Where the network is the bottleneck of all
 * jobs, they are the same.
 */
static void steps_may_vary(void **state)
{
	static const double jitters[] = { 0.02, 0.1 };

	(void)state;
	for (unsigned i = 0; i < 2 && (!i || !test_is_short()); i++)
		for (int slow = 0; slow < 2 - test_is_short(); slow++) {
			struct sim_result smart = run_varying(TURN_SMART, jitters[i], slow);
			struct sim_result frugal = run_varying(TURN_FRUGAL, jitters[i], slow);
			struct sim_result ahead = run_varying(TURN_AHEAD, jitters[i], slow);

			assert_true(sim_score(&frugal) >= sim_score(&smart));
			assert_true(sim_score(&ahead) >= sim_score(&smart));
			assert_true(slow || sim_score(&frugal) > .99);
		}
}

static double step_plain(unsigned model)
{
	double t = 0;

	for (unsigned i = 0; i < steps[model].n; i++)
		t = fmax(t, steps[model].start_s[i] / 1.5) + 50e-6 +
		    (double)steps[model].bytes[i] / 12.5e9;
	return fmax(t, steps[model].compute_s / 1.5);
}

static double pair_score(unsigned a, unsigned b, enum turn_policy sharing)
{
	struct sim_job jobs[2] = { { .step = a, .hosts = 2 }, { .step = b, .hosts = 2 } };
	struct sim_input input = { .steps = steps,
		                   .n_steps = MODELS,
		                   .jobs = jobs,
		                   .n_jobs = 2,
		                   .options = SIM_OPTIONS_DEFAULT };
	struct sim_result result;

	input.fabric = (struct fabric){ .levels = 1, .down = { 4 }, .up = { 1 }, .switch_jobs = 1 };
	assert_int_equal(fabric_complete(&input.fabric), TRIB_OK);
	input.options.trees = SIM_TREES_FIRST;
	input.options.sharing = sharing;
	input.options.wire.ratio = 1.5;
	input.options.speedup = 1.5;
	input.options.until_s = 100 * fmax(step_plain(a), step_plain(b));
	assert_int_equal(sim_run(&input, NULL, &result), TRIB_OK);
	return sim_score_weighted(&result);
}

static void pairs_are_exact(void **state)
{
	double frugal = 0, smart = 0;
	char *at;

	(void)state;
	assert_true(text_load("sharing_reference.json"));
	at = strchr(strstr(text, "result_2_jobs"), '[');
	for (unsigned i = 0; i < MODELS * MODELS; i++) {
		double wanted = strtod(at + 1, &at);

		if (test_is_short() && i % 5)
			continue;
		assert_true(near(pair_score(i / MODELS, i % MODELS, TURN_SMART), wanted, 1e-3));
		smart += wanted / (MODELS * MODELS);
		frugal += pair_score(i / MODELS, i % MODELS, TURN_FRUGAL) / (MODELS * MODELS);
	}
	assert_true(frugal > smart + 0.01 || test_is_short());
}

/* One job of each model only, because each decision is expensive. */
static void looking_ahead_is_better(void **state)
{
	double frugal = 0, ahead = 0;

	(void)state;
	for (unsigned other = 0; other < MODELS && !test_is_short(); other++) {
		frugal += pair_score(0, other, TURN_FRUGAL) / MODELS;
		ahead += pair_score(0, other, TURN_AHEAD) / MODELS;
	}
	assert_true(ahead > frugal + 0.003 || test_is_short());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_exact),
		cmocka_unit_test(rows_are_exact),
		cmocka_unit_test(rows_with_trees_are_better),
		cmocka_unit_test(steps_may_vary),
		cmocka_unit_test(pairs_are_exact),
		cmocka_unit_test(looking_ahead_is_better),
	};

	if (!data_load()) {
		printf("skipped: MINA's traces are not in " TRIB_DATA_FOLDER "/mina\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
