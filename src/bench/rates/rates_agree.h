/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long an agreement on rates takes. First: until all workers of a new
 * job know their rate. Then: a second job begins or stops sending, and the time is
 * taken until all workers of the first job know their new rate. Runs on a virtual
 * cluster, with one aggregator, or with two and a root above them.
 */
#ifndef TRIB_BENCH_RATES_RATES_AGREE_H
#define TRIB_BENCH_RATES_RATES_AGREE_H

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
