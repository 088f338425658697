/* SPDX-License-Identifier: Apache-2.0 */
/* result: the outcome of a training run, as text and as JSON. */
#ifndef EXAMPLES_RESULT_H
#define EXAMPLES_RESULT_H

#include "curve.h"
#include "progress.h"

#include <stdint.h>

struct result {
	const char *data;  /* "mnist" or "drawn" */
	const char *model; /* "mlp" or "conv" */
	int workers;
	size_t steps, batch, hidden, buckets, gradient_bytes;
	size_t tested, correct;
	double loss;         /* average of the last epoch over rank 0's share */
	double total_s;      /* steps and tests */
	double step_total_s; /* steps only */
	double comm_s;       /* time in the steps' collectives; overlapped time does not count */
	bool weights_equal;
	struct curve curve;
};

double result_accuracy(const struct result *r);
void result_print(const struct result *r, struct progress *p);
/* Returns 0, or -1 with errno set. */
int result_write(const struct result *r, const char *path);

#endif
