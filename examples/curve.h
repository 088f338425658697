/* SPDX-License-Identifier: Apache-2.0 */
/* curve: the learning curve, as CSV and as JSON. */
#ifndef EXAMPLES_CURVE_H
#define EXAMPLES_CURVE_H

#include <stddef.h>
#include <stdio.h>

struct curve_point {
	double epoch;    /* epochs done, with their fraction */
	size_t samples;  /* trained on so far, by all ranks */
	double loss;     /* mean over the samples since the last point, of all ranks */
	double accuracy; /* in the test, from 0 to 1 */
};

struct curve {
	struct curve_point *points;
	size_t count;
};

/* Returns 0, or -1 if memory is short. */
int curve_add(struct curve *curve, struct curve_point point);
void curve_free(struct curve *curve);

/* A line for each point, below a line of names. Returns 0, or -1 with errno set. */
int curve_write(const struct curve *curve, const char *path);
/* An array of objects with the same names. */
void curve_print_json(const struct curve *curve, FILE *file);

#endif
