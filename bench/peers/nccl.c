/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl: NCCL's allreduces over the plugin of adapters/nccl, without NCCL and without a GPU.
 *
 *     --algorithm collnet   chunks through iallreduce of the CollNet table
 *     --algorithm ring      a ring over isend and irecv of the ncclNet table
 *     (neither)             as NCCL chooses: collnet, or ring if it cannot connect
 *
 * `trib run --nccl` sets what it needs: MASTER_ADDR and MASTER_PORT, where rank 0 listens for the
 * others, and NCCL_NET_PLUGIN, the path of the plugin.
 */
#include "bootstrap.h"
#include "nccl_driver.h"
#include "peer.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What NCCL takes for one GPU a node and links of a few Gb/s: two channels, chunks of 128 KiB in a
 * call of CollNet, and of 512 KiB in a ring.
 */
#define CHANNELS 2
#define COLL_CHUNK (128u << 10)
#define RING_CHUNK (512u << 10)
#define PATIENCE 2 /* times TRIB_TIMEOUT: what hangs longer hangs for ever */

struct nccl {
	struct bootstrap bootstrap;
	struct nccl_tree tree;
	struct nccl_ring ring;
	bool is_tree;
};

static const int types[] = {
	[PEER_F32] = NCCL_F32, [PEER_F16] = NCCL_F16, [PEER_BF16] = NCCL_BF16, [PEER_I32] = NCCL_I32
};

static int nccl_barrier(void *context)
{
	struct nccl *nccl = context;
	char mine = 0, all[BOOTSTRAP_RANKS_MAX];

	return bootstrap_gather(&nccl->bootstrap, &mine, all, sizeof(mine));
}

static void add_f32(void *to, const void *from, size_t n)
{
	peer_add(PEER_F32, to, from, n);
}

static void add_f16(void *to, const void *from, size_t n)
{
	peer_add(PEER_F16, to, from, n);
}

static void add_bf16(void *to, const void *from, size_t n)
{
	peer_add(PEER_BF16, to, from, n);
}

static void add_i32(void *to, const void *from, size_t n)
{
	peer_add(PEER_I32, to, from, n);
}

static int nccl_allreduce(void *context, void *data, size_t count, enum peer_type type)
{
	static void (*const adds[])(void *, const void *, size_t) = { [PEER_F32] = add_f32,
		                                                      [PEER_F16] = add_f16,
		                                                      [PEER_BF16] = add_bf16,
		                                                      [PEER_I32] = add_i32 };
	struct nccl *nccl = context;
	size_t size = peer_type_size(type);
	int result = nccl->is_tree
	                     ? nccl_tree_allreduce(&nccl->tree, data, count, types[type], size,
	                                           NCCL_SUM, CHANNELS * COLL_CHUNK)
	                     : nccl_ring_allreduce(&nccl->ring, data, count, size, adds[type]);

	if (result == NCCL_SUCCESS)
		return 0;
	warnx("allreduce: %s: result %d of NCCL",
	      result == NCCL_IN_PROGRESS ? "it hangs" : "an error of the plugin", result);
	return -1;
}

static int nccl_open(struct nccl *nccl, const struct nccl_plugin *plugin, const char *algorithm)
{
	const char *timeout = getenv("TRIB_TIMEOUT");
	struct nccl_ranks ranks = { .rank = nccl->bootstrap.rank,
		                    .size = nccl->bootstrap.size,
		                    .gather = bootstrap_gather,
		                    .context = &nccl->bootstrap,
		                    .patience_s = PATIENCE * (timeout ? atof(timeout) : 30) };
	int result = NCCL_INTERNAL_ERROR;

	if (strcmp(algorithm, "ring") != 0)
		result = nccl_tree_open(&nccl->tree, plugin, &ranks);
	nccl->is_tree = result == NCCL_SUCCESS;
	if (!nccl->is_tree && strcmp(algorithm, "collnet") != 0)
		result = nccl_ring_open(&nccl->ring, plugin, &ranks, CHANNELS, RING_CHUNK);
	if (result != NCCL_SUCCESS)
		warnx("the plugin does not connect: result %d of NCCL", result);
	else if (!*algorithm)
		warnx("this rank uses %s", nccl->is_tree ? "collnet" : "ring");
	return result == NCCL_SUCCESS ? 0 : -1;
}

static int nccl_close(struct nccl *nccl)
{
	return nccl->is_tree ? nccl_tree_close(&nccl->tree) : nccl_ring_close(&nccl->ring);
}

int main(int argc, char **argv)
{
	const char *path = getenv("NCCL_NET_PLUGIN");
	const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	struct peer_options options;
	struct nccl_plugin plugin;
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct nccl nccl = { 0 };
	double *samples;
	int rank, size, rc;

	peer_parse(argc, argv, &options);
	peer_rank_from_env(&rank, &size);
	if (!path || !address || !port || inet_pton(AF_INET, address, &at.sin_addr) != 1)
		errx(2, "NCCL_NET_PLUGIN, MASTER_ADDR (an address) and MASTER_PORT must be set");
	at.sin_port = htons((uint16_t)atoi(port));
	if (bootstrap_open(&nccl.bootstrap, &at, rank, size) || !nccl_plugin_load(&plugin, path))
		return 1;
	samples = peer_alloc(options.iterations * sizeof(*samples));
	rc = nccl_open(&nccl, &plugin, options.algorithm ? options.algorithm : "");
	if (rc == 0) {
		rc = peer_measure(&(struct peer){ .rank = rank,
		                                  .size = size,
		                                  .context = &nccl,
		                                  .barrier = nccl_barrier,
		                                  .allreduce = nccl_allreduce },
		                  &options, samples);
		if (rc == 0) {
			peer_print(rank, samples, options.iterations);
			peer_print_cpu();
		}
		if (nccl_close(&nccl) != NCCL_SUCCESS) {
			warnx("the plugin does not close");
			rc = -1;
		}
	}
	if (!nccl_plugin_unload(&plugin)) {
		warnx("the plugin cannot be unloaded");
		rc = -1;
	}
	bootstrap_close(&nccl.bootstrap);
	free(samples);
	return rc ? 1 : 0;
}
