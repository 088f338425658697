/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of --trees: trees over names of hosts, a file of them, or a word.
 * They become a list of aggregators to start, and the text that workers get.
 */
#ifndef TRIB_LAUNCH_TREE_LAYOUT_H
#define TRIB_LAUNCH_TREE_LAYOUT_H

#include "net/accept.h"
#include "plan/tree/tree.h"

#define LAYOUT_SITES_MAX 64u
#define LAYOUT_TEXT 65536u /* bytes for the text of any forest over these */

/* A place where an aggregator has to run. */
struct tree_site {
	char name[TREE_NAME_MAX];        /* as the user wrote it: s1, h2:7700, 127.0.0.1:7700 */
	const struct cluster_host *host; /* NULL: on this machine */
	char address[48];                /* without the port */
	unsigned port;                   /* 0: not chosen yet */
};

struct tree_layout {
	struct forest forest; /* its nodes have the names of the sites */
	struct tree_site sites[LAYOUT_SITES_MAX];
	unsigned n_sites;
};

/*
 * Fills the layout from `wanted`, which is one of:
 * - trees as in plan/tree/tree.h; a host's name may stand for its address;
 * - the name of a file that holds such trees;
 * - "star": all ranks below the first server;
 * - "striped": one star for each server, or for each worker's host if there are
 *   no servers;
 * - "planned": what the planner makes of the links.
 * All ranks below `workers` must be in the trees. An empty cluster stands for
 * this machine, where names are free.
 */
trib_status layout_read(struct tree_layout *trees, const char *wanted,
                        const struct cluster *cluster, unsigned workers);

/* Writes the text for TRIB_TREES. All ports must have been chosen. */
trib_status layout_text(const struct tree_layout *trees, char out[LAYOUT_TEXT]);

/* The site of a node of the forest. */
const struct tree_site *layout_site(const struct tree_layout *trees, const char *name);

/*
 * Lets hosts receive the frames that aggregators send from their XDP programs,
 * until accept_end or the end of this process. `framed`: the relay (net/relay.h)
 * does that for servers.
 */
trib_status layout_accept(const struct tree_layout *trees, const struct cluster *cluster,
                          bool framed, struct accepted *out);

#endif
