/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Benchmarks of linear models.
 *
 * bench glm: real trainings on the hosts of a bed (src/bench/bed), by several systems in turns.
 * bench_glm.c reads the command line and measures, glm_systems.c knows the systems and how each is
 * started, glm_case.c has the parts without input and output, glm_table.c shows rows and writes
 * JSON, glm_plot.c draws.
 *
 * bench glm-kernel: samples a second of the loops, beside what the memory allows (glm_roofline.c).
 * It uses no network and no cluster.
 *
 * They must not touch the hot path: they measure the programs that users run.
 */
#ifndef TRIB_BENCH_GLM_BENCH_GLM_H
#define TRIB_BENCH_GLM_BENCH_GLM_H

int bench_glm_run(int argc, char **argv);
int bench_glm_kernel_run(int argc, char **argv);

#endif
