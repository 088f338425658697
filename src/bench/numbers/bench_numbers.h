/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench numbers: how far sums are from the exact ones, here and in a ring that rounds at each
 * hop. bench float-table: the same for sums by table look-up, beside fixed point. This room
 * computes: no sockets, no network, no cluster.
 */
#ifndef TRIB_BENCH_NUMBERS_BENCH_NUMBERS_H
#define TRIB_BENCH_NUMBERS_BENCH_NUMBERS_H

int bench_numbers_run(int argc, char **argv);
int bench_float_table_run(int argc, char **argv);

#endif
