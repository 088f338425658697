/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a report, for the table and for JSON alike. */
#ifndef TRIB_BENCH_ALLREDUCE_RESULT_ROWS_H
#define TRIB_BENCH_ALLREDUCE_RESULT_ROWS_H

#include "bench/allreduce/bench_allreduce.h"
#include "bench/report/table.h"

/* One row a result of a struct bench_report. To be closed with table_close. */
void bench_rows_fill(const void *context, struct table *table);

#endif
