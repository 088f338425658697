/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench sparse-store: how much memory a parameter server's store takes for the rows that were
 * touched, beside the bytes of these rows and of the optimizer's state.
 *
 * store_memory.c fills a store and measures, bench_store.c reads the command line and shows.
 *
 * This room uses no network and no log.
 */
#ifndef TRIB_BENCH_STORE_BENCH_STORE_H
#define TRIB_BENCH_STORE_BENCH_STORE_H

int bench_store_run(int argc, char **argv);

#endif
