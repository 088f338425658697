/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --trees means: trees over names of hosts, a file with them, or a word,
 * become aggregators that have to be started and the text that workers get.
 */
#ifndef TRIB_CLI_TREES_H
#define TRIB_CLI_TREES_H

#include "net/accept.h"
#include "plan/tree.h"

#define TREES_SITES_MAX 64u
#define TREES_TEXT 65536u /* bytes that hold any forest over these */

/* Where an aggregator has to run. */
struct trees_site {
	char name[TREE_NAME_MAX];        /* as it was written: s1, h2:7700, 127.0.0.1:7700 */
	const struct cluster_host *host; /* NULL: on this machine */
	char address[48];                /* without the port */
	unsigned port;                   /* 0: not chosen yet */
};

struct trees {
	struct forest forest; /* with the sites' names */
	struct trees_site sites[TREES_SITES_MAX];
	unsigned n_sites;
};

/*
 * `wanted` is a forest as plan/tree.h has it, where a host of the cluster may
 * stand for its address; the name of a file that holds one; "star", everybody
 * below the first server; or "striped", one such star a server, and where there
 * are no servers one a worker's host; or "planned", what the planner makes of
 * the links. All ranks below `workers` have to be in
 * it. An empty cluster stands for this machine, where names are free.
 */
trib_status trees_read(struct trees *trees, const char *wanted, const struct cluster *cluster,
                       unsigned workers);

/* As TRIB_TREES wants it; all ports must have been chosen. */
trib_status trees_text(const struct trees *trees, char out[TREES_TEXT]);

/* The site at which a node of the forest is. */
const struct trees_site *trees_site(const struct trees *trees, const char *name);

/*
 * Lets the frames arrive that aggregators send from their XDP programs, until
 * accept_end or the end of this process. `framed`: the relay (net/relay.h)
 * does so for those of servers.
 */
trib_status trees_accept(const struct trees *trees, const struct cluster *cluster, bool framed,
                         struct accepted *out);

#endif
