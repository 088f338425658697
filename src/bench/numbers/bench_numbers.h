/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench numbers: how far sums are from the exact ones, here and in a ring that rounds at each
 * hop. This room computes: no sockets, no network, no cluster.
 */
#ifndef TRIB_BENCH_NUMBERS_BENCH_NUMBERS_H
#define TRIB_BENCH_NUMBERS_BENCH_NUMBERS_H

int bench_numbers_run(int argc, char **argv);

#endif
