/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one system once: starts its processes, collects their times, and ends them. */
#ifndef TRIB_BENCH_BED_PEER_JOB_H
#define TRIB_BENCH_BED_PEER_JOB_H

#include "bench/bed/job_build.h"

struct bench_outcome {
	double *times;               /* a time for each iteration */
	double cpu_s, payload_bytes; /* of the aggregators */
	double worker_cpu_s;         /* of all workers, in the timed allreduces; 0: not measured */
	struct bench_packets packets;
	bool stopped;  /* by a signal: the whole benchmark ends */
	char why[400]; /* why the run failed */
};

trib_status bench_run_once(const struct bench_run *run, struct bench_outcome *outcome);

#endif
