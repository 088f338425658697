/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI's daemons leave their process groups, and what of them hangs would
 * disturb all runs that follow. Whatever a run starts inherits a mark in its
 * environment, and is found by it.
 */
#ifndef TRIB_CLI_BENCH_STRAYS_H
#define TRIB_CLI_BENCH_STRAYS_H

#include <stddef.h>

/* "TRIB_BENCH_RUN=...", different for every run. */
void strays_mark(char *out, size_t room, unsigned run);
/* Gives what has the mark a moment to end by itself, then kills it. */
void strays_end(const char *mark);

#endif
