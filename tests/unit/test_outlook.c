/* SPDX-License-Identifier: Apache-2.0 */
/* Turns planned ahead: for the jobs that need them, one at a time, and granted turns stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/draw.h"
#include "plan/turns/outlook.h"

#include <math.h>
#include <string.h>

#define JOBS 3u
#define OPS 8u
#define FIXED 0.002

static struct pattern patterns[JOBS];
static struct pattern_op ops[JOBS][OPS];
static struct outlook_job jobs[JOBS];
static struct outlook_turn turns[JOBS];
static struct outlook outlook;

/* A step of one second. From half of it on there are n allreduces, with these durations. */
static void job_fill(unsigned j, unsigned n, double plain, double fast)
{
	for (unsigned i = 0; i < n; i++)
		ops[j][i] = (struct pattern_op){ .start_s = 0.5 + 0.4 * i / n,
			                         .plain_s = plain,
			                         .fast_s = fast };
	pattern_close(&patterns[j], ops[j], n, 1);
	jobs[j] = (struct outlook_job){ .pattern = &patterns[j], .pace = 1, .fixed_s = FIXED };
}

static int setup(void **state)
{
	(void)state;
	memset(turns, 0, sizeof(turns));
	outlook = (struct outlook){ .capacity = 1, .handover_s = 0.003 };
	return 0;
}

static void alone(void **state)
{
	(void)state;
	job_fill(0, 4, 0.2, 0.1); /* ends at 1.3; aggregated: at 1 */
	outlook_plan(&outlook, jobs, 1, turns);
	assert_int_equal(turns[0].step, 0);
	assert_int_equal(turns[0].from, 0);
	assert_int_equal(turns[0].to, 3); /* with these it ends at 1 */
	assert_float_equal(turns[0].begin_s, 0.5, 1e-9);
	assert_float_equal(turns[0].end_s, 0.8, 1e-9);

	/* An allreduce that starts at once is too soon, so the turn is for the next one. */
	jobs[0].began_s = -0.499;
	outlook_plan(&outlook, jobs, 1, turns);
	assert_int_equal(turns[0].from, 1);
	assert_int_equal(turns[0].to, 4);

	/* All allreduces of this step have begun. The turn is for the next step, at 1.3. */
	jobs[0] =
		(struct outlook_job){ .pattern = &patterns[0], .pace = 1, .at = 4, .free_s = 1.3 };
	outlook_plan(&outlook, jobs, 1, turns);
	assert_int_equal(turns[0].step, 1);
	assert_int_equal(turns[0].from, 0);
	assert_float_equal(turns[0].begin_s, 1.8, 1e-9);
}

static void who_gains_nothing_gets_nothing(void **state)
{
	(void)state;
	job_fill(0, 4, 0.05, 0.03); /* ends at 1 in any case */
	job_fill(1, 4, 0.2, 0.1);
	outlook_plan(&outlook, jobs, 2, turns);
	assert_int_equal(turns[0].to, 0);
	assert_int_equal(turns[1].from, 0);
	assert_int_equal(turns[1].to, 3);
}

static void what_is_agreed_on_stays(void **state)
{
	(void)state;
	/* The second job would gain much, but the first one holds the turn. */
	job_fill(0, 4, 0.2, 0.1);
	job_fill(1, 4, 0.2, 0.02);
	jobs[0].began_s = jobs[1].began_s = -0.49;
	jobs[0].holds = true;
	jobs[0].given = 4;
	outlook_plan(&outlook, jobs, 2, turns);
	assert_int_equal(turns[0].from, 0);
	assert_int_equal(turns[0].to, 4);
	assert_true(turns[1].begin_s >= turns[0].end_s + outlook.handover_s);
	/* There is room for both. */
	outlook.capacity = 2;
	outlook_plan(&outlook, jobs, 2, turns);
	assert_int_equal(turns[1].step, 0);
	assert_int_equal(turns[1].from, 0);
}

/* Turns of random jobs: within steps, not too soon, and at most `capacity` at a time. */
static void one_at_a_time(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		outlook.capacity = 1 + draw_below(&seed, 2);
		for (unsigned j = 0; j < JOBS; j++) {
			double plain = 0.01 + draw_below(&seed, 100) * 2e-3;

			job_fill(j, 1 + draw_below(&seed, OPS), plain, plain / 1.6);
			jobs[j].at = draw_below(&seed, patterns[j].n + 1);
			jobs[j].began_s = -0.01 * draw_below(&seed, 100);
			jobs[j].free_s = 0.01 * draw_below(&seed, 10);
		}
		outlook_plan(&outlook, jobs, JOBS, turns);
		for (unsigned j = 0; j < JOBS; j++) {
			unsigned others = 0;

			assert_true(turns[j].from <= turns[j].to && turns[j].to <= patterns[j].n);
			if (!turns[j].to)
				continue;
			assert_true(turns[j].begin_s >= FIXED);
			assert_true(turns[j].step || turns[j].from >= jobs[j].at);
			assert_true(turns[j].end_s >=
			            turns[j].begin_s + ops[j][turns[j].from].fast_s - 1e-9);
			/*
			 * When it begins, the first allreduce of another job's turn may be in
			 * flight.
			 */
			for (unsigned k = 0; k < JOBS; k++)
				others += k != j && turns[k].to &&
				          turns[k].begin_s <= turns[j].begin_s &&
				          turns[k].begin_s + ops[k][turns[k].from].fast_s >
				                  turns[j].begin_s;
			assert_true(others < outlook.capacity);
		}
	}
}

/* ---- compared with all possible decisions ---- */

#define PLAYED 2u /* number of jobs */
#define PLAYED_OPS 3u
#define PLAYED_STEPS 2u

struct play {
	struct outlook_job
		job[PLAYED]; /* times start at 0; free_s: also of jobs that have finished */
	unsigned step[PLAYED];
	double busy_until; /* of the aggregator */
	double sum;        /* sum of the times at which jobs finish */
	unsigned left;
};

/* When the next allreduce begins; INFINITY: the job has done its steps. */
static double play_begins(const struct play *play, unsigned j)
{
	const struct outlook_job *job = &play->job[j];

	return play->step[j] == PLAYED_STEPS
	               ? INFINITY
	               : fmax(job->free_s, job->began_s + job->pattern->ops[job->at].start_s);
}

static void play_op(struct play *play, unsigned j, bool is_fast)
{
	struct outlook_job *job = &play->job[j];
	const struct pattern_op *op = &job->pattern->ops[job->at];

	job->free_s = play_begins(play, j) + (is_fast ? op->fast_s : op->plain_s);
	job->holds = is_fast;
	if (is_fast)
		play->busy_until = job->free_s;
	if (++job->at < job->pattern->n)
		return;
	job->began_s = job->free_s = fmax(job->free_s, job->began_s + job->pattern->compute_s);
	job->at = 0;
	if (++play->step[j] == PLAYED_STEPS) {
		play->sum += job->began_s;
		play->left--;
	}
}

/* Decides as the controller does, but at the start of an allreduce. */
static bool play_asks(const struct play *play, unsigned j, double now)
{
	struct outlook it = { .capacity = 1 };
	struct outlook_job asked[PLAYED];
	struct outlook_turn found[PLAYED];

	for (unsigned k = 0; k < PLAYED; k++) {
		asked[k] = play->job[k];
		asked[k].began_s -= now;
		asked[k].free_s = fmax(asked[k].free_s - now, 0);
		asked[k].holds = play->job[k].holds && play->job[k].free_s > now;
	}
	outlook_plan(&it, asked, PLAYED, found);
	return found[j].to && !found[j].step && found[j].from == asked[j].at;
}

enum play_how { BEST, PLAIN, GREEDY, ASKED };

static double play_on(struct play play, enum play_how how)
{
	while (play.left) {
		unsigned j = play_begins(&play, 1) < play_begins(&play, 0);
		double now = play_begins(&play, j);
		bool is_fast = play.busy_until <= now && how != PLAIN;

		if (is_fast && how == BEST) {
			struct play other = play;
			double sum;

			play_op(&other, j, false);
			sum = play_on(other, how);
			play_op(&play, j, true);
			return fmin(sum, play_on(play, how));
		}
		play_op(&play, j, is_fast && (how != ASKED || play_asks(&play, j, now)));
	}
	return play.sum;
}

/* The plan is nearly the best possible, and better than taking every free turn. */
static void nearly_the_best(void **state)
{
	double sum[4] = { 0 };
	uint64_t seed = 11;

	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		struct play play = { .left = PLAYED };

		for (unsigned j = 0; j < PLAYED; j++) {
			job_fill(j, PLAYED_OPS, 0.1, 0.1);
			for (unsigned i = 0; i < PLAYED_OPS; i++) {
				ops[j][i].plain_s = 0.05 + draw_below(&seed, 200) * 1e-3;
				ops[j][i].fast_s = ops[j][i].plain_s / 1.6;
			}
			pattern_close(&patterns[j], ops[j], PLAYED_OPS,
			              0.9 + draw_below(&seed, 200) * 1e-3);
			play.job[j] =
				(struct outlook_job){ .pattern = &patterns[j],
				                      .pace = 1,
				                      .began_s = draw_below(&seed, 500) * 1e-3 };
			play.job[j].free_s = play.job[j].began_s;
		}
		for (unsigned how = BEST; how <= ASKED; how++)
			sum[how] += play_on(play, (enum play_how)how);
	}
	print_message("of the most that can be won, greedy has %.3f, the outlook %.3f\n",
	              (sum[PLAIN] - sum[GREEDY]) / (sum[PLAIN] - sum[BEST]),
	              (sum[PLAIN] - sum[ASKED]) / (sum[PLAIN] - sum[BEST]));
	assert_true(sum[PLAIN] - sum[ASKED] > 0.97 * (sum[PLAIN] - sum[BEST]));
	assert_true(sum[ASKED] < sum[GREEDY]);
}

/* Steps that take no time, beside others: the planner terminates. */
static void it_ends(void **state)
{
	(void)state;
	job_fill(0, 4, 0.2, 0.1);
	job_fill(1, 4, 0, 0);
	for (unsigned i = 0; i < 4; i++)
		ops[1][i].start_s = 0;
	pattern_close(&patterns[1], ops[1], 4, 0);
	outlook_plan(&outlook, jobs, 2, turns);
	assert_int_equal(turns[1].to, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(alone, setup),
		cmocka_unit_test_setup(who_gains_nothing_gets_nothing, setup),
		cmocka_unit_test_setup(what_is_agreed_on_stays, setup),
		cmocka_unit_test_setup(one_at_a_time, setup),
		cmocka_unit_test_setup(nearly_the_best, setup),
		cmocka_unit_test_setup(it_ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
