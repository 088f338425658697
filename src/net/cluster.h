/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net: a virtual cluster on one machine: namespaces as hosts, veth pairs as
 * links, shaped both ways. Tests, the demo and benchmarks stand on it; the
 * aggregation itself never looks here.
 *
 * Workers are h1..hN, servers s1..sM. Without `is_switch` all hosts hang on
 * one bridge, a link each. With it, server s1 itself has one port a worker
 * (a bridge inside s1's namespace carries its address). With `is_routed` as
 * well, s1 has no bridge either: each of its ports carries its address, and
 * workers reach s1 alone. Nothing is between the wire and the aggregator.
 */
#ifndef TRIB_NET_CLUSTER_H
#define TRIB_NET_CLUSTER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_HOSTS_MAX 128

struct cluster_host {
	char name[16];     /* h1, s1 */
	char ns[64];       /* its namespace, below /run/netns */
	char address[40];  /* IPv4, dotted */
	uint64_t rate_bps; /* its link, each way; 0: not shaped */
	bool is_server;
};

struct cluster {
	char name[32];
	bool is_switch;
	unsigned mtu;
	unsigned n; /* workers first, then servers */
	struct cluster_host hosts[CLUSTER_HOSTS_MAX];
};

struct cluster_options {
	const char *name; /* NULL: "trib" */
	unsigned workers, servers;
	bool is_switch, is_routed;
	bool is_framed;    /* links are cut in two, for relay.h: with both of these those of
	                      workers, without a switch those of servers */
	unsigned mtu;      /* 0: 1500 */
	uint64_t rate_bps; /* every link; 0: not shaped */
	struct {
		char host[16];
		uint64_t rate_bps;
	} unlike[CLUSTER_HOSTS_MAX]; /* links with a rate of their own */
	unsigned n_unlike;
	double loss, dup, reorder, corrupt; /* probabilities, on every link, each way */
	uint64_t seed;
	bool no_offload; /* packets cross one by one, as on a wire; implied by faults */
};

trib_status cluster_up(const struct cluster_options *options, struct cluster *out);
/* Removes all that has the name, also what a crash left half made. */
trib_status cluster_down(const char *name);
trib_status cluster_load(const char *name, struct cluster *out);
const struct cluster_host *cluster_find(const struct cluster *cluster, const char *host);
/* Another rate for a host's link, each way, while it is in use; where all hang on one bridge. */
trib_status cluster_shape(const struct cluster *cluster, const char *host, uint64_t bps,
                          bool batches);
/* Moves the calling thread into the host's network namespace. */
trib_status cluster_enter(const struct cluster_host *host);

#endif
