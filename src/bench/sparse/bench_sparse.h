/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench sparse: how many updates of rows a second workers can push, when the servers' links are the
 * bottleneck. Three systems take turns on the same hosts (src/bench/bed): hot rows by an
 * aggregator and cold ones by the servers, all rows by the servers, and an allreduce of the whole
 * table's gradient.
 *
 * bench_sparse.c reads the command line and measures. push_systems.c knows the systems and how each
 * is started: bench/peers/sparse.c is the worker of all. push_lines.c has the parts without input
 * and output. link_bytes.c counts the bytes of the servers' links. push_table.c shows rows and
 * writes JSON, push_plot.c draws.
 *
 * This room starts no process: bed does. It must not use the inside of src/sparse: it measures what
 * users call.
 */
#ifndef TRIB_BENCH_SPARSE_BENCH_SPARSE_H
#define TRIB_BENCH_SPARSE_BENCH_SPARSE_H

int bench_sparse_run(int argc, char **argv);

#endif
