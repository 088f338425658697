/* SPDX-License-Identifier: Apache-2.0 */
/* server_shards: the parameter servers that `trib run --servers` starts for a job. */
#ifndef TRIB_LAUNCH_SERVER_SHARDS_H
#define TRIB_LAUNCH_SERVER_SHARDS_H

#include "launch/tree_layout.h"

#define SHARDS_RUN_MAX 64u

struct server_shard {
	const struct cluster_host *host; /* NULL: on this machine */
	unsigned port;
	char label[32], address[64], number[16], folder[320];
	char *argv[20];
};

struct server_shards {
	unsigned n;
	struct server_shard shards[SHARDS_RUN_MAX];
	char program[512];                    /* trib itself */
	char folder[256];                     /* of all shards */
	bool is_temporary;                    /* the folder is removed at the end */
	char aggregators[512];                /* "": none */
	char where[32 + SHARDS_RUN_MAX * 64]; /* TRIB_SPARSE_SERVERS=... for workers */
};

/*
 * Places `n` shards. In a cluster they run on its servers in turn, beginning with the second, since
 * the first one aggregates; a switch is no server here. Without servers they run on the hosts of
 * workers, the last one first. `folder` is NULL for a temporary one.
 */
trib_status shards_plan(struct server_shards *out, unsigned n, const char *folder,
                        const struct cluster *cluster, const struct tree_layout *trees);
/* Fills the shards' command lines. `aggregator`: HOST:PORT,...; NULL or "": none. */
void shards_command(struct server_shards *shards, const char *aggregators);
/* Removes a temporary folder. */
void shards_end(struct server_shards *shards);

#endif
