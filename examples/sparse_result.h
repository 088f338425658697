/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_result: what a sparse example reports: progress, JSON, and a plot of the loss. */
#ifndef EXAMPLES_SPARSE_RESULT_H
#define EXAMPLES_SPARSE_RESULT_H

#include "progress.h"

#include <tributary/sparse.h>

enum { MEASURES_MAX = 2 };

/* A figure of a test, and the same figure of a method that learns nothing. */
struct job_measure {
	const char *name; /* "recall_20" */
	double value, baseline;
};

struct job_epoch {
	double loss;    /* mean of all workers' samples */
	double seconds; /* since the begin of the training, tests included */
	struct job_measure measures[MEASURES_MAX];
	size_t n_measures;
};

struct job_result {
	const char *job, *data, *baseline; /* `baseline`: name of the method that learns nothing */
	int workers;
	size_t batch, width, keys, steps; /* steps of this worker */
	size_t samples;                   /* of this worker, in all epochs */
	double train_s, total_s;          /* total_s: with tests */
	double *losses;                   /* mean loss of each step of this worker */
	size_t n_losses;
	struct job_epoch *epochs;
	size_t n_epochs;
	trib_sparse_stats stats;
};

void job_result_step(struct job_result *result, double loss);
struct job_epoch *job_result_epoch(struct job_result *result);
void job_result_free(struct job_result *result);

struct job_progress {
	size_t epoch, epochs, step, steps; /* counted from 1 */
	double loss;                       /* moving average */
	double rows_s;                     /* rows pushed in a second */
	double hot_share;                  /* of the rows pushed */
};

void job_progress_show(struct progress *p, const struct job_progress *s, double now);
void job_result_print(const struct job_result *result, struct progress *p);
/* Both return 0, or -1 with errno set. */
int job_result_write(const struct job_result *result, const char *path);
int job_result_plot(const struct job_result *result, const char *path);

#endif
