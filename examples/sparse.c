/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of rows that all workers train together:
 *
 *     trib run -n 4 --servers 2 -- build/examples/sparse
 *
 * Each row has a goal, the sine of its key. A worker draws keys, pulls their rows, and pushes the
 * gradient of the squared distance to the goal. It prints the largest distance at the end.
 */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tributary/sparse.h>

enum { KEYS = 1000, WIDTH = 16, BATCH = 200, STEPS = 200 };

int main(void)
{
	trib_sparse_options options = TRIB_SPARSE_OPTIONS_INIT;
	static float rows[KEYS * WIDTH];
	uint64_t keys[KEYS];
	trib_sparse *table;
	double worst = 0;

	options.width = WIDTH;
	options.rate = 0.1;
	options.is_bounded = 1; /* no worker is more than 2 steps ahead */
	options.staleness = 2;
	if (trib_sparse_open(&table, &options) != TRIB_OK)
		errx(1, "%s", trib_last_error());
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < BATCH; i++)
			keys[i] = (uint64_t)(rand() % KEYS);
		if (trib_sparse_pull(table, keys, rows, BATCH, NULL) != TRIB_OK)
			errx(1, "%s", trib_last_error());
		for (int i = 0; i < BATCH * WIDTH; i++)
			rows[i] -= sinf((float)keys[i / WIDTH]);
		if (trib_sparse_push(table, keys, rows, BATCH, NULL) != TRIB_OK ||
		    trib_sparse_step(table) != TRIB_OK)
			errx(1, "%s", trib_last_error());
	}
	for (int i = 0; i < KEYS; i++)
		keys[i] = (uint64_t)i;
	if (trib_sparse_flush(table) != TRIB_OK ||
	    trib_sparse_pull(table, keys, rows, KEYS, NULL) != TRIB_OK)
		errx(1, "%s", trib_last_error());
	for (int i = 0; i < KEYS * WIDTH; i++)
		worst = fmax(worst, fabs(rows[i] - sin(i / WIDTH)));
	printf("largest distance %.4f\n", worst);
	if (trib_sparse_close(table) != TRIB_OK)
		errx(1, "%s", trib_last_error());
	return 0;
}
