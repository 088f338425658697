/* SPDX-License-Identifier: Apache-2.0 */
/* The file of JSON that benchmarks over hosts write: settings, rows of the table, curves. */
#ifndef TRIB_BENCH_REPORT_JSON_REPORT_H
#define TRIB_BENCH_REPORT_JSON_REPORT_H

#include "bench/report/table.h"

/* What a benchmark says of it. `report` is the benchmark's own. */
struct json_report {
	/* Members of "settings", behind the version. */
	void (*settings)(struct json_writer *json, const void *report);
	/* Opens the table of "results", and fills it. */
	void (*rows)(const void *report, struct table *table);
	/* Elements of "curves"; NULL: there are none. */
	void (*curves)(struct json_writer *json, const void *report);
};

trib_status json_report_write(const struct json_report *kind, const void *report, const char *path);

#endif
