/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench deploy: how long an aggregator takes until it is ready. This room starts
 * tribd again and again and times it; it has no load of its own (bench/load has).
 */
#ifndef TRIB_BENCH_DEPLOY_BENCH_DEPLOY_H
#define TRIB_BENCH_DEPLOY_BENCH_DEPLOY_H

int bench_deploy_run(int argc, char **argv);

#endif
