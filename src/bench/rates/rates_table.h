/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the results of trib bench rates: as a table, as JSON, as a plot. */
#ifndef TRIB_BENCH_RATES_RATES_TABLE_H
#define TRIB_BENCH_RATES_RATES_TABLE_H

#include "bench/rates/rates_agree.h"
#include "bench/rates/rates_halve.h"

#define RATES_PLANES_MAX 3u
#define RATES_RUNS_MAX 20u
#define RATES_LEVELS_MAX 2u

struct rates_report {
	struct halve_options halve;
	struct halve_result results[RATES_PLANES_MAX * RATES_RUNS_MAX]; /* planes in turn */
	unsigned n, planes;
	struct agree_result agreed[RATES_LEVELS_MAX];
	unsigned n_agreed;
};

void rates_print(const struct rates_report *report);
trib_status rates_json(const struct rates_report *report, const char *path);
trib_status rates_plot(const struct rates_report *report, const char *path);

#endif
