/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "model.h"
#include "progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUCKETS_MAX = 28 };

struct options {
	const struct model *model;
	const char *data;      /* NULL: look for MNIST, else draw */
	const char *json;      /* NULL: none */
	const char *curve;     /* file for the learning curve; NULL: none */
	const char *gradients; /* file for copies of gradients; NULL: none */
	bool is_half;          /* gradients travel as bf16 */
	bool feedback;         /* what rounding takes from a gradient is added to the next one */
	size_t epochs, batch, hidden, buckets;
	size_t samples; /* 0: all */
	size_t points;  /* tests in an epoch; 0: only one, at the end */
	double rate;
	uint64_t seed;
	enum progress_mode progress;
};

/* Exits after --help, and after a message on a wrong argument. */
struct options options_parse(int argc, char **argv);

#endif
