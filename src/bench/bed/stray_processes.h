/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI's daemons leave their process groups, and a daemon that hangs would disturb
 * all later runs. Everything that a run starts inherits a mark in its environment,
 * by which it is found.
 */
#ifndef TRIB_BENCH_BED_STRAY_PROCESSES_H
#define TRIB_BENCH_BED_STRAY_PROCESSES_H

#include <stddef.h>

/* Writes the mark "TRIB_BENCH_RUN=...", different for every run. */
void stray_processes_mark(char *out, size_t room, unsigned run);
/* Gives processes with the mark a moment to end by themselves, then kills them. */
void stray_processes_end(const char *mark);

#endif
