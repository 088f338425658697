/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a run of `trib bench sparse` print, and lists of its command line. Pure. */
#ifndef TRIB_BENCH_SPARSE_PUSH_LINES_H
#define TRIB_BENCH_SPARSE_PUSH_LINES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Sums over all workers of a run, or of several runs, without the warm-up. */
struct push_figures {
	double rows, hot_rows, packets, repeats, server_bytes;
	double step_bytes; /* of one worker */
	double hot_set;    /* rows that are hot at the end */
	/* Of the aggregator, with the warm-up; 0: its plane has none. */
	double switch_packets, recirculations;
	double added_bytes, kernel_bytes; /* payload that it added, and of it in the kernel */
};

/* "SAMPLE <iteration> <seconds> <hot share>". False: the line is about something else. */
bool push_sample_read(const char *line, unsigned *iteration, double *seconds, double *hot_share);
/* Adds a line of figures, of a worker or of an aggregator. False: it is another line. */
bool push_figures_read(const char *line, struct push_figures *figures);
void push_figures_add(struct push_figures *sum, const struct push_figures *one);

/* "0,0.001": probabilities from 0 to below 1, none twice. */
trib_status push_losses_parse(const char *text, double *out, unsigned most, unsigned *n);

#endif
