/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long rates take to be agreed on: until all workers of a job that joins
 * know theirs, and until all workers of a job that sends know another one
 * because a second job begins or ends to send. On a virtual cluster, with one
 * aggregator or with two and a root above them.
 */
#ifndef TRIB_CLI_RATES_AGREE_H
#define TRIB_CLI_RATES_AGREE_H

#include "base/status.h"

#include <stdint.h>

#define AGREE_REPEATS_MAX 1000u

enum agree_what { AGREE_FIRST, AGREE_BEGINS, AGREE_ENDS, AGREE_WHATS };

struct agree_result {
	unsigned levels;
	unsigned n;
	double times[AGREE_WHATS][AGREE_REPEATS_MAX]; /* seconds, ascending */
};

trib_status agree_run(unsigned workers, uint64_t link_bps, unsigned levels, unsigned repeats,
                      struct agree_result *out);

#endif
