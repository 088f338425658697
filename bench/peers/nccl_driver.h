/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_driver: what NCCL does with a network plugin, without NCCL and without a GPU. The benchmark
 * and the tests of adapters/nccl stand on it.
 *
 * Functions return a result of NCCL (enum nccl_result). NCCL polls for ever; here every wait ends
 * at a deadline, with NCCL_IN_PROGRESS, so that a plugin that hangs is found.
 */
#ifndef TRIB_BENCH_NCCL_DRIVER_H
#define TRIB_BENCH_NCCL_DRIVER_H

#include "../../adapters/nccl/common/nccl_abi.h"

#include <stdbool.h>

#define NCCL_STEPS 8 /* calls of a channel that run at once */
#define NCCL_CHANNELS_MAX 8

struct nccl_plugin {
	void *library;
	const struct nccl_net_v11 *net;
	const struct nccl_collnet_v11 *coll;
};

/* The ranks of a communicator, and how they exchange a few bytes before they are connected. */
struct nccl_ranks {
	int rank, size;
	/* Gives all ranks the `bytes` of each, in order of rank. 0: done. */
	int (*gather)(void *context, const void *mine, void *all, size_t bytes);
	void *context;
	double patience_s; /* longest wait for others */
};

/* Both need the symbols of version 11. Prints why it fails, and returns false. */
bool nccl_plugin_load(struct nccl_plugin *plugin, const char *path);
/* False: dlclose failed. */
bool nccl_plugin_unload(struct nccl_plugin *plugin);
/* Prints warnings and decisions to stderr, as NCCL does with NCCL_DEBUG=INFO. */
void nccl_log_print(int level, unsigned long flags, const char *file, int line, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));

/* A communicator that sums in the network. */
struct nccl_tree {
	const struct nccl_collnet_v11 *coll;
	void *context, *comm;
	double patience_s;
};

/* Opens it as NCCL does: all ranks succeed, or none. */
int nccl_tree_open(struct nccl_tree *tree, const struct nccl_plugin *plugin,
                   const struct nccl_ranks *ranks);
int nccl_tree_close(struct nccl_tree *tree);
/*
 * Sums a vector in place, in calls of `call_bytes` each, of which NCCL_STEPS run at once. The GPU
 * copies between vector and buffers without the processor, so nothing is copied here.
 */
int nccl_tree_allreduce(struct nccl_tree *tree, void *data, size_t count, int type,
                        size_t type_size, int op, size_t call_bytes);
/* Tests a request until it is done. */
int nccl_tree_wait(struct nccl_tree *tree, void *request);

/* The connections of a ring: of each channel, one to the next rank and one from the previous. */
struct nccl_ring {
	const struct nccl_net_v11 *net;
	void *context;
	void *send[NCCL_CHANNELS_MAX], *receive[NCCL_CHANNELS_MAX];
	unsigned channels;
	int rank, size;
	char *slots; /* NCCL_STEPS chunks for each channel */
	size_t chunk;
	double patience_s;
};

int nccl_ring_open(struct nccl_ring *ring, const struct nccl_plugin *plugin,
                   const struct nccl_ranks *ranks, unsigned channels, size_t chunk);
int nccl_ring_close(struct nccl_ring *ring);
/* Sums a vector in place. `add` does what the GPU does: to[i] += from[i]. */
int nccl_ring_allreduce(struct nccl_ring *ring, void *data, size_t count, size_t type_size,
                        void (*add)(void *to, const void *from, size_t n));

double nccl_now_s(void);
/* Between two polls that found nothing. */
void nccl_poll_pause(void);

#endif
