/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline of micro-batches and the order of rows: every interleaving of small cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/train/pipeline.h"
#include "glm/train/row_order.h"
#include "short.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ENGINES 2u
#define MICROS_MAX 5u

/* Several engines, and a network that returns results in the order of the posts. */
struct world {
	struct pipeline engines[ENGINES];
	uint32_t forwarded[MICROS_MAX]; /* engines that have done it */
	uint32_t returned[MICROS_MAX];
	uint32_t posted, arrived;
};

static uint64_t worlds;

static void engine_step(struct world *w, uint32_t e, struct pipeline_step step)
{
	if (step.what == PIPELINE_FORWARD) {
		assert_int_equal(step.micro, w->engines[e].forwarded);
		if (++w->forwarded[step.micro] == ENGINES) {
			/* Micro-batches are complete in their order, so posts are in order too. */
			assert_int_equal(w->posted, step.micro);
			w->posted++;
		}
	} else {
		assert_true(step.micro < w->arrived);
		w->returned[step.micro]++;
	}
	pipeline_take(&w->engines[e], step);
	assert_true(w->engines[e].forwarded - w->engines[e].returned <= w->engines[e].window);
}

/* Tries every next event; at least one has to be possible until all is done. */
static void explore(const struct world *w)
{
	bool done = true, moved = false;

	worlds++;
	if (w->arrived < w->posted) {
		struct world next = *w;

		next.arrived++;
		explore(&next);
		moved = true;
	}
	for (uint32_t e = 0; e < ENGINES; e++) {
		struct pipeline_step step = pipeline_next(&w->engines[e], w->arrived);
		struct world next = *w;

		if (step.what == PIPELINE_DONE)
			continue;
		done = false;
		/* Forward first: a backward comes only if no forward is possible. */
		if (step.what == PIPELINE_BACKWARD)
			assert_true(w->engines[e].forwarded == w->engines[e].micros ||
			            w->engines[e].forwarded - w->engines[e].returned ==
			                    w->engines[e].window);
		if (step.what == PIPELINE_WAIT) {
			assert_true(step.micro >= w->arrived);
			continue;
		}
		engine_step(&next, e, step);
		explore(&next);
		moved = true;
	}
	if (!done) {
		assert_true(moved);
		return;
	}
	for (uint32_t m = 0; m < w->engines[0].micros; m++) {
		assert_int_equal(w->forwarded[m], ENGINES);
		assert_int_equal(w->returned[m], ENGINES);
	}
}

static void test_interleavings(void **state)
{
	(void)state;
	for (uint32_t micros = 1; micros <= (test_is_short() ? 3 : 4); micros++)
		for (uint32_t window = 1; window <= micros; window++) {
			struct world w = { 0 };

			for (uint32_t e = 0; e < ENGINES; e++)
				w.engines[e] =
					(struct pipeline){ .micros = micros, .window = window };
			explore(&w);
		}
	assert_true(worlds > 1000);
}

/* ---- how many micro-batches ---- */

static uint32_t micros_of(double backward, double cut, double journey)
{
	struct pipeline_cost cost = { .backward = backward, .cut = cut, .journey = journey };

	return pipeline_micros(&cost, 8);
}

static void test_micros(void **state)
{
	(void)state;
	/* There is little to hide a journey behind, or no journey to hide. */
	assert_int_equal(micros_of(0, 20, 30), 1);
	assert_int_equal(micros_of(5, 20, 30), 1);
	assert_int_equal(micros_of(40, 20, 30), 1);
	assert_int_equal(micros_of(1000, 20, 15), 1);
	/* One backward hides it all: more cuts only cost. */
	assert_int_equal(micros_of(41, 20, 30), 2);
	assert_int_equal(micros_of(1000, 20, 30), 2);
	/* A long journey and cheap sums: as many as pay. 16 of 80 stay visible with 5, and 13.3
	 * with 6. */
	assert_int_equal(micros_of(80, 3, 80), 5);
	assert_int_equal(micros_of(80, 0.1, 80), 8);
}

/* ---- the order of rows ---- */

static void order_check(uint32_t rows, uint32_t batch, uint32_t size)
{
	struct row_share whole = { .rows = rows, .batch = batch, .size = 1 };
	uint32_t batches = row_batches(&whole), *scratch = calloc(rows, 4),
		 *order = calloc(rows, 4), *start = calloc(batches + 1, 4), *all = calloc(rows, 4),
		 *seen = calloc(rows, 4);
	uint32_t total = 0;

	row_order_fill(&whole, 7, 3, scratch, all, start);
	for (uint32_t i = 0; i < rows; i++)
		seen[all[i]]++;
	for (uint32_t i = 0; i < rows; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(start[batches], rows);
	for (uint32_t rank = 0; rank < size; rank++) {
		struct row_share share = {
			.rows = rows, .batch = batch, .rank = rank, .size = size
		};

		row_order_fill(&share, 7, 3, scratch, order, start);
		assert_int_equal(start[batches], rows / size + (rank < rows % size));
		total += start[batches];
		/* A worker's rows of a mini-batch are among the rows of that mini-batch. */
		for (uint32_t b = 0; b < batches; b++)
			for (uint32_t i = start[b]; i < start[b + 1]; i++) {
				uint32_t row = order[i] * size + rank, k = 0;

				while (k < row_batch_size(&whole, b) && all[b * batch + k] != row)
					k++;
				assert_true(k < row_batch_size(&whole, b));
			}
	}
	assert_int_equal(total, rows);
	free(scratch);
	free(order);
	free(start);
	free(all);
	free(seen);
}

static void test_rows(void **state)
{
	(void)state;
	order_check(1, 1, 1);
	order_check(100, 7, 3);
	order_check(64, 64, 4);
	order_check(5, 64, 5);
	order_check(129, 16, 2);
}

static void test_seeds(void **state)
{
	struct row_share share = { .rows = 50, .batch = 10, .size = 1 };
	uint32_t scratch[50], a[50], b[50], start[6];

	(void)state;
	row_order_fill(&share, 1, 0, scratch, a, start);
	row_order_fill(&share, 1, 0, scratch, b, start);
	assert_memory_equal(a, b, sizeof(a));
	row_order_fill(&share, 1, 1, scratch, b, start);
	assert_memory_not_equal(a, b, sizeof(a));
	row_order_fill(&share, 2, 0, scratch, b, start);
	assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interleavings),
		cmocka_unit_test(test_micros),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
