/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net owns the virtual cluster on one machine: namespaces as hosts, veth pairs as links,
 * shaped in both directions. Tests, the demonstration and benchmarks use it. It must not
 * touch aggregation, and aggregation must not use it.
 *
 * Workers are h1..hN, servers s1..sM. Without `is_switch` each host has a link to one bridge.
 * With `is_switch`, server s1 has a port for each worker, and a bridge in s1's namespace
 * carries its address. With `is_routed` as well, s1 has no bridge: each port carries its
 * address, workers reach s1 only, and nothing is between the wire and the aggregator.
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
	uint64_t rate_bps; /* rate of its link in each direction; 0: not shaped */
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
	bool is_framed;    /* a relay (relay.h) sits in the middle of links: with is_switch and
	                      is_routed those of workers, without a switch those of servers */
	unsigned mtu;      /* 0: 1500 */
	uint64_t rate_bps; /* rate of every link; 0: not shaped */
	struct {
		char host[16];
		uint64_t rate_bps;
	} unlike[CLUSTER_HOSTS_MAX]; /* links with a rate of their own */
	unsigned n_unlike;
	double loss, dup, reorder, corrupt; /* probabilities on every link, in each direction */
	uint64_t seed;
	bool no_offload; /* packets cross singly, as on a wire; faults imply it */
};

trib_status cluster_up(const struct cluster_options *options, struct cluster *out);
/* Removes the cluster of this name, also what a crash left behind. */
trib_status cluster_down(const char *name);
trib_status cluster_load(const char *name, struct cluster *out);
const struct cluster_host *cluster_find(const struct cluster *cluster, const char *host);
/* Changes the rate of a host's link while it is in use. Only for clusters with one bridge. */
trib_status cluster_shape(const struct cluster *cluster, const char *host, uint64_t bps,
                          bool batches);
/* Moves the calling thread into the host's network namespace. */
trib_status cluster_enter(const struct cluster_host *host);

#endif
