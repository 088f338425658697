/* SPDX-License-Identifier: Apache-2.0 */
/* What `trib bench allreduce --json` wrote, read again, from text in memory. */
#ifndef TRIB_CLI_BENCH_SAVED_H
#define TRIB_CLI_BENCH_SAVED_H

#include "base/status.h"

#include <stddef.h>

#define SAVED_ROWS_MAX 192u

/* A value as it stands in the text, which has to stay; 0 bytes: it is not there. */
struct saved_raw {
	const char *at;
	size_t bytes;
};

/* Figures that are null are 0. */
struct saved_row {
	char system[64], plane[8], algorithm[64], note[400];
	double bytes, median_s, min_s, p99_s, limit_s, spread;
	double cpu_s, gb_per_cpu_s, gb_per_cpu_s_min, gb_per_cpu_s_max;
	double cpu_times, cpu_times_min, cpu_times_max; /* against the first of the file */
	double fragments_again, results_again;
	double repeats, failed;
};

struct bench_saved {
	char place[256], collective[16], left_out[512];
	double hosts, loss, dup, reorder, corrupt, busy;
	double iterations, repeats, pool_bytes, lanes;
	struct saved_raw links, is_switch, offload, late, own_cores, copied, nic, trees;
	struct saved_row rows[SAVED_ROWS_MAX];
	unsigned n;
};

/* An error begins with the number of the line that is wrong. */
trib_status saved_read(struct bench_saved *saved, const char *text);

/* The setting by which two differ that may not stand in one table; NULL: none. */
const char *saved_unlike(const struct bench_saved *a, const struct bench_saved *b);

#endif
