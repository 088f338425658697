/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/columns.h"

#include <string.h>

#define HOSTS COLUMNS_HOSTS_MAX
#define ROWS (3 * HOSTS + 1) /* in, out and cores of each host; the slowest worker's link */
#define TURNS_MAX 1000u
#define TINY 1e-9

/* A tree: each host's take (0: no place), and the host of the root. */
struct column {
	uint32_t take[HOSTS];
	unsigned root;
};

struct columns {
	const struct model *model;
	uint32_t hosts[HOSTS];
	unsigned n, rows, most; /* hosts; rows of the linear program; largest take of a place */
	double room[ROWS];      /* capacity of each row, in units of the slowest worker's rate */
	/*
	 * State of the revised simplex method: the inverse of the basis, the values of the basic
	 * variables, and the rows' prices.
	 */
	double inverse[ROWS][ROWS], level[ROWS], price[ROWS];
	bool is_tree[ROWS]; /* the basic variable is a tree, else a row's slack */
	struct column basis[ROWS];
	/* Derived from the prices. */
	double each[HOSTS], place[HOSTS], saved[HOSTS]; /* a stream; a place; saving of a root */
	unsigned order[HOSTS];                          /* hosts by the price of a full place */
};

/* Row of a host's link in (`what` 0), link out (1) or cores (2). */
static unsigned row_of(unsigned host, unsigned what)
{
	return 3 * host + what;
}

/* Finds the hosts that may aggregate. False: too many hosts, or too few for the workers. */
static bool hosts_find(struct columns *columns)
{
	const struct model *model = columns->model;
	unsigned slowest;
	double unit = model_worker_rate(model, &slowest);

	for (uint32_t i = 0; i < model->n; i++) {
		const struct model_host *host = &model->caps[i];

		if (!(host->cpu > 0))
			continue;
		if (columns->n == HOSTS)
			return false;
		columns->room[row_of(columns->n, 0)] = host->in / unit;
		columns->room[row_of(columns->n, 1)] = host->out / unit;
		columns->room[row_of(columns->n, 2)] = host->cpu / unit;
		columns->hosts[columns->n++] = i;
	}
	columns->rows = 3 * columns->n + 1;
	columns->room[columns->rows - 1] = 1;
	columns->most = model->children - 1;
	/* Each place takes at most `most` streams. */
	return (uint64_t)columns->n * columns->most >= model->workers - 1;
}

static enum model_kind kind_of(const struct columns *columns, unsigned host)
{
	return columns->model->caps[columns->hosts[host]].kind;
}

/* The cost of the tree at rate 1, for each row. */
static void column_cost(const struct columns *columns, const struct column *column, double *cost)
{
	for (unsigned h = 0; h < columns->n; h++) {
		enum model_kind kind = kind_of(columns, h);
		double own = kind == MODEL_WORKER;
		struct model_cost place = { 0 };

		if (column->take[h])
			place = model_cost(columns->model, kind, column->take[h],
			                   h == column->root);
		cost[row_of(h, 0)] = own + place.in;
		cost[row_of(h, 1)] = own + place.out;
		cost[row_of(h, 2)] = place.cpu;
	}
	cost[columns->rows - 1] = 1;
}

/* A place's price is linear in its take, so the prices of take 1 and take 2 determine it. */
static void prices_split(struct columns *columns)
{
	for (unsigned h = 0; h < columns->n; h++) {
		enum model_kind kind = kind_of(columns, h);
		struct model_cost one = model_cost(columns->model, kind, 1, false);
		struct model_cost two = model_cost(columns->model, kind, 2, false);
		struct model_cost root = model_cost(columns->model, kind, 1, true);
		const double *price = &columns->price[row_of(h, 0)];

		columns->each[h] = (two.in - one.in) * price[0] + (two.out - one.out) * price[1] +
		                   (two.cpu - one.cpu) * price[2];
		columns->place[h] = one.in * price[0] + one.out * price[1] + one.cpu * price[2] -
		                    columns->each[h];
		columns->saved[h] = (one.in - root.in) * price[0] + (one.out - root.out) * price[1];
	}
}

static double place_price(const struct columns *columns, unsigned host, uint32_t take)
{
	return columns->place[host] + columns->each[host] * take;
}

static void order_fill(struct columns *columns)
{
	for (unsigned h = 0; h < columns->n; h++) {
		double price = place_price(columns, h, columns->most);
		unsigned at = h;

		for (; at && place_price(columns, columns->order[at - 1], columns->most) > price;
		     at--)
			columns->order[at] = columns->order[at - 1];
		columns->order[at] = h;
	}
}

/*
 * The price of the cheapest tree with these takes at the root and at `last`. All other places are
 * full.
 */
static double tree_price(const struct columns *columns, unsigned root, uint32_t at_root,
                         unsigned last, uint32_t at_last, struct column *column)
{
	uint32_t left = columns->model->workers - 1 - at_root - at_last;
	double price = place_price(columns, root, at_root) - columns->saved[root];

	*column = (struct column){ .root = root };
	column->take[root] = at_root;
	if (at_last) {
		column->take[last] = at_last;
		price += place_price(columns, last, at_last);
	}
	for (unsigned i = 0; left && i < columns->n; i++) {
		unsigned h = columns->order[i];

		if (h == root || (at_last && h == last))
			continue;
		column->take[h] = columns->most;
		price += place_price(columns, h, columns->most);
		left -= columns->most;
	}
	return left ? INFINITY : price;
}

/*
 * Finds the cheapest tree. Of two partly filled places, one could pass its streams to the other
 * without a higher price, so at most one place is partly filled. It is either the root; or another
 * place, with a full root; or another place, with a root that takes a single stream. Such a root
 * costs a worker's host no link capacity.
 */
static double tree_find(const struct columns *columns, struct column *best, uint64_t *steps)
{
	uint32_t need = columns->model->workers - 1, most = columns->most;
	const uint32_t roots[] = { 1, (need - 1) % most + 1, need < most ? need : most };
	double least = INFINITY, own = columns->price[columns->rows - 1];
	struct column column;

	for (unsigned h = 0; h < columns->n; h++)
		if (kind_of(columns, h) == MODEL_WORKER)
			own += columns->price[row_of(h, 0)] + columns->price[row_of(h, 1)];
	for (unsigned root = 0; root < columns->n; root++)
		for (unsigned i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
			uint32_t rest = need - roots[i];
			uint32_t at_last = rest ? (rest - 1) % most + 1 : 0;

			for (unsigned last = 0; last < (rest ? columns->n : 1); last++) {
				double price;

				if (rest && last == root)
					continue;
				price = tree_price(columns, root, roots[i], last, at_last, &column);
				*steps += 1;
				if (price < least) {
					least = price;
					*best = column;
				}
			}
		}
	return own + least;
}

/* Computes the rows' prices, so that each tree of the basis costs exactly its value. */
static void prices_find(struct columns *columns)
{
	for (unsigned r = 0; r < columns->rows; r++) {
		columns->price[r] = 0;
		for (unsigned b = 0; b < columns->rows; b++)
			if (columns->is_tree[b])
				columns->price[r] += columns->inverse[b][r];
	}
}

/*
 * Puts a column into the basis, in place of the variable that reaches 0 first. `cost`: the column.
 */
static bool basis_enter(struct columns *columns, const double *cost, const struct column *tree)
{
	double step[ROWS], least = INFINITY;
	unsigned out = ROWS;

	for (unsigned b = 0; b < columns->rows; b++) {
		step[b] = 0;
		for (unsigned r = 0; r < columns->rows; r++)
			step[b] += columns->inverse[b][r] * cost[r];
		if (step[b] > TINY && (columns->level[b] / step[b] < least - TINY ||
		                       (out < ROWS && columns->level[b] / step[b] < least + TINY &&
		                        step[b] > step[out]))) {
			least = fmax(columns->level[b] / step[b], 0);
			out = b;
		}
	}
	if (out == ROWS)
		return false;
	for (unsigned r = 0; r < columns->rows; r++)
		columns->inverse[out][r] /= step[out];
	for (unsigned b = 0; b < columns->rows; b++) {
		if (b == out)
			continue;
		columns->level[b] = fmax(columns->level[b] - least * step[b], 0);
		for (unsigned r = 0; r < columns->rows; r++)
			columns->inverse[b][r] -= step[b] * columns->inverse[out][r];
	}
	columns->level[out] = least;
	columns->is_tree[out] = tree != NULL;
	if (tree)
		columns->basis[out] = *tree;
	return true;
}

/* The row with the lowest negative price, which wants slack; -1: none. */
static int row_find(const struct columns *columns)
{
	int least = -1;

	for (unsigned r = 0; r < columns->rows; r++)
		if (columns->price[r] < -TINY &&
		    (least < 0 || columns->price[r] < columns->price[least]))
			least = (int)r;
	return least;
}

/* Adds one column to the basis. False: no column improves it. */
static bool basis_improve(struct columns *columns, bool *failed, uint64_t *steps)
{
	double cost[ROWS] = { 0 };
	struct column tree;
	int row;

	prices_find(columns);
	row = row_find(columns);
	if (row >= 0) {
		cost[row] = 1;
		*failed = !basis_enter(columns, cost, NULL);
		return !*failed;
	}
	for (unsigned r = 0; r < columns->rows; r++)
		columns->price[r] = fmax(columns->price[r], 0);
	prices_split(columns);
	order_fill(columns);
	if (tree_find(columns, &tree, steps) >= 1 - TINY)
		return false;
	column_cost(columns, &tree, cost);
	*failed = !basis_enter(columns, cost, &tree);
	return !*failed;
}

/* Adds the places of a tree: the root first, then sorted by size. */
static bool places_add(const struct columns *columns, const struct column *column,
                       struct shape *shape)
{
	bool ok = shape_add(shape, columns->hosts[column->root], column->take[column->root]);
	uint32_t before = UINT32_MAX;

	while (ok && before) {
		uint32_t most = 0;

		for (unsigned h = 0; h < columns->n; h++)
			if (h != column->root && column->take[h] < before && column->take[h] > most)
				most = column->take[h];
		for (unsigned h = 0; ok && most && h < columns->n; h++)
			if (h != column->root && column->take[h] == most)
				ok = shape_add(shape, columns->hosts[h], most);
		before = most;
	}
	return ok;
}

/* Fills the shape with the fastest trees of the basis. */
static void shape_fill(const struct columns *columns, double unit, struct shape *shape)
{
	bool taken[ROWS] = { 0 };

	for (unsigned t = 0; t < columns->model->trees; t++) {
		int fastest = -1;

		for (unsigned b = 0; b < columns->rows; b++)
			if (columns->is_tree[b] && !taken[b] && columns->level[b] > TINY &&
			    (fastest < 0 || columns->level[b] > columns->level[fastest]))
				fastest = (int)b;
		if (fastest < 0)
			return;
		taken[fastest] = true;
		shape_start(shape, columns->level[fastest] * unit);
		if (!places_add(columns, &columns->basis[fastest], shape)) {
			shape_clear(shape);
			return;
		}
	}
}

double columns_fill(const struct model *model, struct shape *shape, uint64_t *steps)
{
	struct columns columns = { .model = model };
	unsigned slowest;
	double unit = model_worker_rate(model, &slowest), sum = 0;
	bool failed = false;

	shape_clear(shape);
	if (model->workers < 2 || !hosts_find(&columns))
		return INFINITY;
	for (unsigned r = 0; r < columns.rows; r++) {
		columns.inverse[r][r] = 1;
		columns.level[r] = columns.room[r];
	}
	for (unsigned turn = 0; basis_improve(&columns, &failed, steps); turn++)
		if (turn == TURNS_MAX) {
			failed = true;
			break;
		}
	for (unsigned b = 0; b < columns.rows; b++)
		sum += columns.is_tree[b] ? columns.level[b] : 0;
	shape_fill(&columns, unit, shape);
	return failed ? INFINITY : sum * unit;
}
