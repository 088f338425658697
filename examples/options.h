/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "progress.h"

#include <stddef.h>
#include <stdint.h>

enum { BUCKETS_MAX = 28 };

struct options {
	const char *data; /* NULL: look for MNIST, else draw */
	const char *json; /* NULL: none */
	size_t epochs, batch, hidden, buckets;
	size_t samples; /* 0: all */
	double rate;
	uint64_t seed;
	enum progress_mode progress;
};

/* Ends the program after --help, and on a wrong argument after a sentence about it. */
struct options options_parse(int argc, char **argv);

#endif
