/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run came to, for people and for programs. */
#ifndef EXAMPLES_RESULT_H
#define EXAMPLES_RESULT_H

#include "progress.h"

#include <stdint.h>

struct result {
	const char *data; /* "mnist" or "drawn" */
	int workers;
	size_t steps, batch, hidden, buckets, gradient_bytes;
	size_t tested, correct;
	double loss;         /* mean of the last epoch over rank 0's share */
	double total_s;      /* steps and test */
	double step_total_s; /* steps only */
	double comm_s;       /* inside collectives of the steps; what is overlapped costs nothing */
	bool weights_equal;
};

void result_print(const struct result *r, struct progress *p);
/* Returns 0, or -1 with errno set. */
int result_write(const struct result *r, const char *path);

#endif
