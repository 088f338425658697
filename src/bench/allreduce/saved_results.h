/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of `trib bench allreduce --json` from memory. */
#ifndef TRIB_BENCH_ALLREDUCE_SAVED_RESULTS_H
#define TRIB_BENCH_ALLREDUCE_SAVED_RESULTS_H

#include "base/status.h"

#include <stddef.h>

#define SAVED_ROWS_MAX 192u

/* A value as it stands in the text, which must outlive it; 0 bytes: it is missing. */
struct saved_raw {
	const char *at;
	size_t bytes;
};

/* Null becomes 0. */
struct saved_row {
	char system[64], plane[8], algorithm[64], note[400];
	double bytes, median_s, min_s, p99_s, limit_s, spread;
	double cpu_s, gb_per_cpu_s, gb_per_cpu_s_min, gb_per_cpu_s_max;
	double cpu_times, cpu_times_min,
		cpu_times_max; /* compared with the first system of the file */
	double fragments_again, results_again;
	double repeats, failed;
};

struct bench_saved {
	char place[256], collective[16], type[8], left_out[512];
	double hosts, loss, dup, reorder, corrupt, busy;
	double iterations, repeats, pool_bytes, lanes;
	struct saved_raw links, is_switch, offload, late, own_cores, copied, nic, trees;
	struct saved_row rows[SAVED_ROWS_MAX];
	unsigned n;
};

/* An error message begins with the number of the line. */
trib_status saved_read(struct bench_saved *saved, const char *text);

/* The setting in which two files differ, so that they cannot share a table; NULL: they can. */
const char *saved_unlike(const struct bench_saved *a, const struct bench_saved *b);

#endif
