/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_options: command lines of the sparse examples, as a table that the help also comes from.
 */
#ifndef EXAMPLES_SPARSE_OPTIONS_H
#define EXAMPLES_SPARSE_OPTIONS_H

#include "progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_USAGE = 2, JOB_OPTIONS_MAX = 48 };

enum job_option_kind {
	JOB_COUNT,  /* size_t, from `low` to `high` */
	JOB_NUMBER, /* double, from `low` to `high` */
	JOB_TEXT,   /* const char * */
	JOB_CHOICE  /* const char *, one of the words of `argument`: "sgd|adam" */
};

struct job_option {
	const char *name;
	enum job_option_kind kind;
	void *value;
	double low, high;
	const char *argument, *help;
};

/* The options that all sparse examples have. */
struct job_options {
	const char *data;
	size_t epochs, batch, width;
	size_t samples; /* of the data, at most; 0: all */
	size_t steps;   /* of an epoch, at most; 0: all */
	size_t seed;
	double rate, init, largest, timeout_s;
	double sample; /* percent of the steps that are counted ahead, for trib_sparse_heat */
	const char *optimizer, *path, *sums, *wire, *servers;
	const char *staleness; /* a number of steps, or "none" */
	const char *json, *plot, *tensors, *progress;
};

struct job_usage {
	const char *name, *what, *example;
	const struct job_option *own; /* ended by an option without a name */
};

/* What an example begins with; batch, width and init are its own to set. */
struct job_options job_options_default(void);

/* Reads the command line, or prints the help, or says what is wrong, and exits then. */
void job_options_parse(const struct job_usage *usage, struct job_options *options, int argc,
                       char **argv);

/* -1: none */
int job_staleness(const struct job_options *options);
enum progress_mode job_progress(const struct job_options *options);

#endif
