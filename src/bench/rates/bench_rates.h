/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench rates: how long workers and aggregators take to agree on rates
 * (rates_agree.c), and what happens when a link becomes slow while a job sums
 * (rates_halve.c). rates_table.c shows both. This room makes its own virtual
 * clusters; it changes nothing in the worker or the plane that it measures.
 */
#ifndef TRIB_BENCH_RATES_BENCH_RATES_H
#define TRIB_BENCH_RATES_BENCH_RATES_H

int bench_rates_run(int argc, char **argv);

#endif
