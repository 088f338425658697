/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan/plan_exact.h"
#include "plan/stripes/model.h"

#include "base/status.h"

#include <glpk.h>
#include <stdlib.h>

#define SCALE 1e9 /* GLPK computes best with numbers near 1 */
#define ROW_MAX 8

/* Columns: the rate, then three for each host. */
enum { RATE = 1, PER_HOST = 3 };
enum what { TAKES, PLACES, ROOTS };

struct program {
	glp_prob *lp;
	const struct model *model;
};

static int column(unsigned host, enum what what)
{
	return RATE + 1 + (int)(host * PER_HOST + what);
}

/* Adds a row: the sum of factor * column over its entries is at most `most`. */
struct row {
	int n;
	int columns[ROW_MAX];
	double factors[ROW_MAX];
};

static void row_add(struct row *row, int at, double factor)
{
	row->n++;
	row->columns[row->n] = at;
	row->factors[row->n] = factor;
}

static void row_end(glp_prob *lp, const struct row *row, double most)
{
	int at = glp_add_rows(lp, 1);

	glp_set_row_bnds(lp, at, GLP_UP, 0, most);
	glp_set_mat_row(lp, at, row->n, row->columns, row->factors);
}

/* What a host's places in trees cost its link (model_cost), for each kind of place. */
static void link_row(const struct program *program, unsigned host, double link, bool is_out)
{
	const struct model *model = program->model;
	enum model_kind kind = model->caps[host].kind;
	bool once = is_out && model->multicast;
	struct row row = { 0 };

	if (kind == MODEL_SWITCH) {
		row_add(&row, column(host, PLACES), 1);
	} else {
		if (kind == MODEL_WORKER)
			row_add(&row, RATE, 1);
		if (!once)
			row_add(&row, column(host, TAKES), 1);
		/* A place sends one result; a place that is not a root also receives one. */
		row_add(&row, column(host, PLACES), kind == MODEL_SERVER ? 2 : once ? 1 : 0);
		row_add(&row, column(host, ROOTS), -1);
	}
	row_end(program->lp, &row, link / SCALE);
}

static void host_rows(const struct program *program, unsigned host)
{
	const struct model *model = program->model;
	const struct model_host *caps = &model->caps[host];
	double root = model->children - 1.0, inner = fmin(root, model->workers - 2.0);
	struct row cpu = { 0 }, most = { 0 }, least = { 0 }, roots = { 0 }, places = { 0 };

	link_row(program, host, caps->in, false);
	link_row(program, host, caps->out, true);
	row_add(&cpu, column(host, TAKES), 1);
	row_add(&cpu, column(host, PLACES), 1);
	row_end(program->lp, &cpu, caps->cpu / SCALE);
	/* At most `inner` children in a place, `root` at the root; at least one. */
	row_add(&most, column(host, TAKES), 1);
	row_add(&most, column(host, PLACES), -inner);
	row_add(&most, column(host, ROOTS), inner - root);
	row_end(program->lp, &most, 0);
	row_add(&least, column(host, PLACES), 1);
	row_add(&least, column(host, TAKES), -1);
	row_end(program->lp, &least, 0);
	/* A root is one of the host's places, and a host has one place in a tree. */
	row_add(&roots, column(host, ROOTS), 1);
	row_add(&roots, column(host, PLACES), -1);
	row_end(program->lp, &roots, 0);
	row_add(&places, column(host, PLACES), 1);
	row_add(&places, RATE, -1);
	row_end(program->lp, &places, 0);
}

/* A sum over all hosts is at least (GLP_LO) or exactly (GLP_FX) a multiple of the rate. */
static void sum_row(const struct program *program, enum what what, int type, double of_rate)
{
	unsigned n = program->model->n;
	int *columns = calloc(n + 2, sizeof(*columns));
	double *factors = calloc(n + 2, sizeof(*factors));
	int at = glp_add_rows(program->lp, 1);

	if (!columns || !factors)
		abort();
	for (unsigned i = 0; i < n; i++) {
		columns[i + 1] = column(i, what);
		factors[i + 1] = 1;
	}
	columns[n + 1] = RATE;
	factors[n + 1] = -of_rate;
	glp_set_row_bnds(program->lp, at, type, 0, 0);
	glp_set_mat_row(program->lp, at, (int)n + 1, columns, factors);
	free(columns);
	free(factors);
}

/* Workers - 1 streams are merged; every tree has a root and as many places as it needs. */
static void tree_rows(const struct program *program)
{
	unsigned takes = program->model->workers - 1, most = program->model->children - 1;
	unsigned places = (takes + most - 1) / most;

	sum_row(program, TAKES, GLP_FX, takes);
	sum_row(program, ROOTS, GLP_FX, 1);
	sum_row(program, PLACES, GLP_LO, places);
}

static trib_status program_solve(const struct program *program, double *bps)
{
	glp_prob *lp = program->lp;
	const struct model *model = program->model;
	unsigned slowest;
	int columns = RATE + PER_HOST * (int)model->n;
	glp_smcp how;

	glp_term_out(GLP_OFF);
	glp_init_smcp(&how);
	how.presolve = GLP_ON;
	glp_set_obj_dir(lp, GLP_MAX);
	glp_add_cols(lp, columns);
	for (int i = 1; i <= columns; i++)
		glp_set_col_bnds(lp, i, GLP_LO, 0, 0);
	glp_set_col_bnds(lp, RATE, GLP_DB, 0, model_worker_rate(model, &slowest) / SCALE);
	glp_set_obj_coef(lp, RATE, 1);
	for (unsigned i = 0; i < model->n; i++)
		host_rows(program, i);
	tree_rows(program);
	if (glp_simplex(lp, &how) || glp_get_status(lp) != GLP_OPT)
		return status_fail(TRIB_ERR_CONFIG, "GLPK does not solve the program for %u hosts",
		                   model->n);
	*bps = glp_get_obj_val(lp) * SCALE;
	return TRIB_OK;
}

trib_status exact_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                       double *bps)
{
	struct model model = { .hosts = hosts, .n = n };
	struct program program = { .model = &model };
	trib_status status = TRIB_ERR_NO_MEMORY;

	model.caps = calloc(n, sizeof(*model.caps));
	model.ranks = calloc(n, sizeof(*model.ranks));
	model.order = calloc(n, sizeof(*model.order));
	if (!model.caps || !model.ranks || !model.order)
		status_fail(status, "no memory for a program of %u hosts", n);
	else if ((status = model_fill(&model, limits)) == TRIB_OK) {
		program.lp = glp_create_prob();
		status = program_solve(&program, bps);
		glp_delete_prob(program.lp);
	}
	free(model.caps);
	free(model.ranks);
	free(model.order);
	return status;
}
