/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of NCCL as threads of one process. They share a loaded plugin and, as with cluster.h, an
 * aggregator on loopback.
 */
#ifndef TRIB_TESTS_NCCL_THREADS_H
#define TRIB_TESTS_NCCL_THREADS_H

#include "cluster.h"
#include "../../bench/peers/nccl_driver.h"

#define NCCL_THREADS_MAX 8

struct nccl_thread {
	const struct nccl_plugin *plugin;
	struct nccl_ranks ranks;
	void *job;
};

/* Runs body() in `size` threads, one for each rank. */
void nccl_threads_run(const struct nccl_plugin *plugin, int size, double patience_s,
                      void (*body)(struct nccl_thread *rank), void *job);
/* A barrier of the ranks. */
void nccl_thread_meet(struct nccl_thread *rank);

/* The plugin of this build. */
void nccl_threads_load(struct nccl_plugin *plugin);

#endif
