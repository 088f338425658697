/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roofline of the loops of linear models: how many samples a second one core takes forward and
 * backward, and how many the bandwidth of the memory would allow. The data is larger than the last
 * cache, and rows come in a random order, as in training.
 */
#ifndef TRIB_BENCH_GLM_ROOFLINE_H
#define TRIB_BENCH_GLM_ROOFLINE_H

#include "base/status.h"

#include <stdint.h>

struct roofline_plan {
	uint64_t bytes;              /* of the data */
	uint32_t batch, micro_batch; /* rows between two changes of the weights; rows of a call */
	uint32_t nonzeros;           /* of a sparse row */
	double seconds;              /* of one measurement, at least */
};

struct roofline_case {
	const char *name;
	uint32_t bits;   /* 0: float */
	uint32_t sparse; /* 1: sparse floats */
};

struct roofline_result {
	double samples;   /* a second */
	double row_bytes; /* that a sample reads at least: its row, once */
};

struct roofline; /* the data */

/* Bytes of the last cache as the system tells them; 0: unknown. */
uint64_t roofline_cache_bytes(void);
trib_status roofline_open(struct roofline **out, const struct roofline_plan *plan);
void roofline_close(struct roofline *roofline);
/* Bytes a second that one core reads, front to back. */
double roofline_bandwidth(struct roofline *roofline);
trib_status roofline_measure(struct roofline *roofline, const struct roofline_case *what,
                             uint32_t features, struct roofline_result *result);

#endif
