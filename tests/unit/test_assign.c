/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees for jobs: never more on a link or switch than its capacity. If GLPK is available, at least
 * 90 % of the jobs served, or of the worth, that its integer program finds. No job migrates if that
 * costs more than it gains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "plan/fabric/assign.h"
#include "plan/cluster/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_GLPK
#include <glpk.h>
#endif

#define JOBS_MAX 24u
#define PODS_MAX 64u

static struct fabric fabric;
static struct assign assign;
static uint32_t pods[JOBS_MAX][PODS_MAX], job_hosts[JOBS_MAX][16], job_n[JOBS_MAX], n_jobs;
static void *work;

static void fabric_set(const uint32_t *down, const uint32_t *up, uint32_t links, uint32_t switches)
{
	fabric = (struct fabric){ .levels = 3, .link_jobs = links, .switch_jobs = switches };
	memcpy(fabric.down, down, 3 * sizeof(*down));
	memcpy(fabric.up, up, 3 * sizeof(*up));
	assert_int_equal(fabric_complete(&fabric), TRIB_OK);
	work = malloc(assign_bytes(&fabric, JOBS_MAX));
	assert_non_null(work);
	assign_init(&assign, &fabric, JOBS_MAX, work);
}

/* Draws random jobs with hosts of their own, until few hosts are left. */
static void jobs_draw(uint64_t *seed, bool weighted)
{
	uint32_t order[64], used = 0;

	for (uint32_t i = 0; i < fabric.hosts; i++)
		order[i] = i;
	for (uint32_t i = fabric.hosts - 1; i > 0; i--) {
		uint32_t k = draw_below(seed, i + 1), swap = order[i];

		order[i] = order[k];
		order[k] = swap;
	}
	for (n_jobs = 0; n_jobs < JOBS_MAX && used + 6 <= fabric.hosts; n_jobs++) {
		uint32_t n = 2 + draw_below(seed, 4), *hosts = job_hosts[n_jobs];
		struct footprint footprint;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t at = i;

			for (; at && hosts[at - 1] > order[used + i]; at--)
				hosts[at] = hosts[at - 1];
			hosts[at] = order[used + i];
		}
		used += n;
		job_n[n_jobs] = n;
		footprint_fill(&footprint, &fabric, hosts, n, pods[n_jobs]);
		assign_enter(&assign, n_jobs, &footprint, weighted ? 1 + draw_below(seed, 9) : 1, 0,
		             (uint32_t)random_next(seed));
	}
}

/* How often a job is listed among a resource's known users. */
static uint32_t users_of(uint32_t resource, uint32_t slot)
{
	uint32_t n = 0;

	for (uint32_t u = 0; u < assign.known[resource]; u++)
		n += assign.users[(size_t)resource * assign.wide + u] == slot;
	return n;
}

static void assign_check(void)
{
	uint32_t *count = calloc(fabric.resources, sizeof(*count)), tree[256];
	uint32_t *known = calloc(fabric.resources, sizeof(*known));

	assert_true(count && known);
	for (uint32_t slot = 0; slot < n_jobs; slot++) {
		const struct assign_job *job = &assign.jobs[slot];

		if (!job->is_in || job->root == ASSIGN_NONE)
			continue;
		for (uint32_t i = fabric_tree(&fabric, &job->footprint, job->root, tree);
		     i-- > 0;) {
			count[tree[i]]++;
			known[tree[i]] += users_of(tree[i], slot);
			assert_in_range(users_of(tree[i], slot), 0, 1);
		}
	}
	/* No other users are known. */
	for (uint32_t i = 0; i < fabric.resources; i++) {
		assert_true(count[i] <= fabric_capacity(&fabric, i));
		assert_int_equal(count[i], assign.count[i]);
		assert_int_equal(known[i], assign.known[i]);
	}
	free(count);
	free(known);
}

#ifdef HAVE_GLPK
static void jobs_serve(void)
{
	for (uint32_t i = 0; i < n_jobs; i++) {
		if (assign.jobs[i].root == ASSIGN_NONE)
			assign_serve(&assign, i, false);
		assign_check();
	}
}

/* The sum of the worths of jobs that have a tree. */
static double worth_served(void)
{
	double sum = 0;

	for (uint32_t i = 0; i < n_jobs; i++)
		if (assign.jobs[i].root != ASSIGN_NONE)
			sum += assign.jobs[i].worth;
	return sum;
}

/* The integer program (1) to (3) of the paper, with weights. */
static double glpk_best(void)
{
	glp_prob *lp = glp_create_prob();
	int columns = 0, rows = (int)(n_jobs + fabric.resources), entries = 0;
	int *row = malloc(sizeof(int) * 400000), *column = malloc(sizeof(int) * 400000);
	double *value = malloc(sizeof(double) * 400000), best;
	glp_iocp how;
	uint32_t tree[256];

	assert_true(row && column && value);
	glp_term_out(GLP_OFF);
	glp_set_obj_dir(lp, GLP_MAX);
	glp_add_rows(lp, rows);
	for (uint32_t i = 0; i < n_jobs; i++)
		glp_set_row_bnds(lp, (int)i + 1, GLP_UP, 0, 1);
	for (uint32_t i = 0; i < fabric.resources; i++)
		glp_set_row_bnds(lp, (int)(n_jobs + i) + 1, GLP_UP, 0, fabric_capacity(&fabric, i));
	for (uint32_t slot = 0; slot < n_jobs; slot++)
		for (uint32_t k = 0; k < assign_roots(&assign, slot); k++) {
			uint32_t n = fabric_tree(&fabric, &assign.jobs[slot].footprint,
			                         assign_root(&assign, slot, k), tree);

			columns = glp_add_cols(lp, 1);
			glp_set_col_kind(lp, columns, GLP_BV);
			glp_set_obj_coef(lp, columns, assign.jobs[slot].worth);
			for (uint32_t i = 0; i <= n; i++) {
				entries++;
				assert_true(entries < 400000);
				row[entries] = i < n ? (int)(n_jobs + tree[i]) + 1 : (int)slot + 1;
				column[entries] = columns;
				value[entries] = 1;
			}
		}
	glp_load_matrix(lp, entries, row, column, value);
	glp_init_iocp(&how);
	how.presolve = GLP_ON;
	assert_int_equal(glp_intopt(lp, &how), 0);
	best = glp_mip_obj_val(lp);
	glp_delete_prob(lp);
	free(row);
	free(column);
	free(value);
	return best;
}

/* Nearly as many jobs have a tree, or as much worth, as if an integer program had chosen. */
static void close_to_the_program(void **state)
{
	static const uint32_t downs[][3] = { { 2, 3, 4 }, { 3, 2, 4 }, { 2, 2, 6 }, { 4, 2, 3 } };
	static const uint32_t ups[][3] = { { 1, 2, 2 }, { 1, 1, 2 }, { 1, 2, 1 }, { 1, 1, 1 } };
	uint64_t seed = getenv("TRIB_SEED") ? strtoull(getenv("TRIB_SEED"), NULL, 10) : 5;
	double ours_all[2] = { 0 }, best_all[2] = { 0 };
	unsigned equal[2] = { 0 };

	(void)state;
	for (unsigned round = 0; round < 160; round++) {
		uint32_t links = 1 + round % 3, switches = round / 2 % 4;
		bool weighted = round / 8 % 2;
		double best, ours;

		fabric_set(downs[round % 4], ups[round / 4 % 4], links, switches);
		assign.candidates = round / 16 % 2 ? 3 : 0;
		jobs_draw(&seed, weighted);
		jobs_serve();
		best = glpk_best();
		ours = worth_served();
		assert_true(ours <= best + 1e-6);
		ours_all[weighted] += ours;
		best_all[weighted] += best;
		equal[weighted] += ours > best - 1e-6;
		free(work);
	}
	for (unsigned weighted = 0; weighted < 2; weighted++) {
		print_message("%s: %.1f %% of the optimum, reached in %u of 80 fabrics\n",
		              weighted ? "worth" : "trees",
		              100 * ours_all[weighted] / best_all[weighted], equal[weighted]);
		assert_true(ours_all[weighted] >= 0.9 * best_all[weighted]);
		assert_true(equal[weighted] >= 50);
	}
}
#endif

/* Each job of a full fabric can migrate, so all are served. Jobs come and go at random. */
static void jobs_come_and_go(void **state)
{
	static const uint32_t down[] = { 2, 3, 4 }, up[] = { 1, 2, 2 };
	uint64_t seed = 9;

	(void)state;
	fabric_set(down, up, 1, 0);
	jobs_draw(&seed, true);
	for (unsigned round = 0; round < 500; round++) {
		uint32_t slot = draw_below(&seed, n_jobs);
		struct footprint footprint;

		assign_clear(&assign);
		if (assign.jobs[slot].is_in) {
			assign_exit(&assign, slot);
		} else {
			footprint_fill(&footprint, &fabric, job_hosts[slot], job_n[slot],
			               pods[slot]);
			assign_enter(&assign, slot, &footprint, 1 + draw_below(&seed, 9), 0, 0);
			assign_serve(&assign, slot, draw_below(&seed, 2));
		}
		assign_check();
	}
	free(work);
}

/* Two switches that serve more jobs than they list: unlisted jobs never have to migrate. */
static void many_on_a_switch(void **state)
{
	static const uint32_t one[] = { 0 }, both[] = { 0, 1 };
	uint64_t seed = 3;

	(void)state;
	fabric = (struct fabric){ .levels = 1, .down = { 1 }, .up = { 2 }, .switch_jobs = 10 };
	assert_int_equal(fabric_complete(&fabric), TRIB_OK);
	work = malloc(assign_bytes(&fabric, JOBS_MAX));
	assert_non_null(work);
	assign_init(&assign, &fabric, JOBS_MAX, work);
	assert_true(assign.wide < 10);
	n_jobs = JOBS_MAX;
	for (unsigned round = 0; round < 4000; round++) {
		uint32_t slot = draw_below(&seed, JOBS_MAX);
		struct footprint footprint = { .level = 1, .n = { 0, 1 }, .pods = pods[slot] };

		assign_clear(&assign);
		pods[slot][0] = 0;
		if (assign.jobs[slot].is_in) {
			assign_exit(&assign, slot);
		} else {
			assign_enter(&assign, slot, &footprint, 1 + draw_below(&seed, 9), 0, 0);
			assign_limit(&assign, slot, slot % 2 ? one : both, 2 - slot % 2);
			assign_serve(&assign, slot, false);
		}
		assign_check();
	}
	free(work);
}

/*
 * Two ways up from each of five switches. The last job is blocked on one by the first job, on the
 * other by the third. The first job could migrate.
 */
static void migration_has_to_pay(void **state)
{
	static const uint32_t down[] = { 3, 5, 1 }, up[] = { 1, 2, 1 };
	static const uint32_t hosts[4][2] = { { 0, 3 }, { 10, 12 }, { 7, 9 }, { 1, 6 } };
	static const uint32_t roots[3] = { 0, 0, 1 };

	(void)state;
	for (unsigned dear = 0; dear < 2; dear++) {
		fabric_set(down, up, 1, 0);
		for (n_jobs = 0; n_jobs < 4; n_jobs++) {
			struct footprint footprint;

			footprint_fill(&footprint, &fabric, hosts[n_jobs], 2, pods[n_jobs]);
			assign_clear(&assign);
			assign_enter(&assign, n_jobs, &footprint, 1, dear ? 5 : 0.5, 0);
			if (n_jobs < 3) {
				assert_true(assign_serve(&assign, n_jobs, false));
				assert_int_equal(assign.jobs[n_jobs].root, roots[n_jobs]);
			}
		}
		assert_false(assign_serve(&assign, 3, true));
		assert_int_equal(assign_serve(&assign, 3, false), !dear);
		assert_int_equal(assign.jobs[0].root, !dear);
		assert_int_equal(assign.n_changed, dear ? 0 : 2);
		assign_check();
		free(work);
	}
}

/*
 * One level, three switches with capacities 1, 2 and 1: which job may use which switch, and which
 * has to migrate.
 */
static void own_candidates(void **state)
{
	static const uint32_t serves[] = { 1, 2, 1 };
	static const uint32_t low[] = { 0, 1 }, mid[] = { 1 }, all[] = { 0, 1, 2 }, none[1];
	struct footprint footprint;

	(void)state;
	fabric = (struct fabric){ .levels = 1, .down = { 1 }, .up = { 3 }, .switch_jobs = 2 };
	assert_int_equal(fabric_complete(&fabric), TRIB_OK);
	assert_int_equal(fabric.resources, 3);
	fabric.serves = serves;
	work = malloc(assign_bytes(&fabric, JOBS_MAX));
	assert_non_null(work);
	assign_init(&assign, &fabric, JOBS_MAX, work);
	for (n_jobs = 0; n_jobs < 6; n_jobs++) {
		pods[n_jobs][0] = 0;
		footprint = (struct footprint){ .level = 1, .n = { 0, 1 }, .pods = pods[n_jobs] };
		assign_enter(&assign, n_jobs, &footprint, 1, 0.25, 0);
	}
	assign_limit(&assign, 0, all, 3);
	assign_limit(&assign, 1, low, 2);
	assign_limit(&assign, 2, mid, 1);
	assign_limit(&assign, 3, mid, 1);
	assign_limit(&assign, 4, none, 0);
	assign_limit(&assign, 5, all, 3);
	assert_true(assign_keep(&assign, 0, 0));
	assert_false(assign_keep(&assign, 1, 0));
	assert_true(assign_keep(&assign, 1, 1));
	assert_true(assign_serve(&assign, 2, false));
	assert_int_equal(assign.jobs[2].root, 1);
	/*
	 * Switch 1 is full: the second job gets the place of the first, which has a third
	 * candidate.
	 */
	assert_true(assign_serve(&assign, 3, false));
	assert_int_equal(assign.jobs[3].root, 1);
	assert_int_equal(assign.jobs[1].root, 0);
	assert_int_equal(assign.jobs[0].root, 2);
	assert_false(assign_serve(&assign, 4, false));
	assert_false(assign_serve(&assign, 5, false));
	assign_check();
	free(work);
	fabric.serves = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef HAVE_GLPK
		cmocka_unit_test(close_to_the_program),
#endif
		cmocka_unit_test(jobs_come_and_go),     cmocka_unit_test(many_on_a_switch),
		cmocka_unit_test(migration_has_to_pay), cmocka_unit_test(own_candidates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
