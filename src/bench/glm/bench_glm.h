/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench glm-kernel: samples a second of the loops of linear models, beside what the memory allows.
 * This room measures: no sockets, no network, no cluster.
 */
#ifndef TRIB_BENCH_GLM_BENCH_GLM_H
#define TRIB_BENCH_GLM_BENCH_GLM_H

int bench_glm_kernel_run(int argc, char **argv);

#endif
