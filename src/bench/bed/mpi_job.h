/* SPDX-License-Identifier: Apache-2.0 */
/* How Open MPI and MPICH are started, and the algorithms that they are tried with. */
#ifndef TRIB_BENCH_BED_MPI_JOB_H
#define TRIB_BENCH_BED_MPI_JOB_H

#include "bench/bed/job_build.h"

/* Words of a variant: Open MPI's algorithm of this number, by this parameter. */
#define OPENMPI_TUNED_CALL(parameter, algorithm) \
	"--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", parameter, algorithm
#define OPENMPI_TUNED(algorithm) OPENMPI_TUNED_CALL("coll_tuned_allreduce_algorithm", algorithm)

extern const struct bench_variant bench_openmpi_variants[], bench_openmpi_scatter[],
	bench_openmpi_gather[], bench_mpich_variants[], bench_mpich_scatter[], bench_mpich_gather[];

trib_status openmpi_prepare(const struct bench_run *run, struct bench_job *job);
/* The same; every rank gets these variables, NAME=VALUE. */
trib_status openmpi_prepare_with(const struct bench_run *run, struct bench_job *job,
                                 const struct word_list *env);
trib_status mpich_prepare(const struct bench_run *run, struct bench_job *job);

#endif
