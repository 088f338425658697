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
 *
 * With `fabric`, hosts hang below leafs, and each leaf has a link to each spine. Leafs and spines
 * are routers: namespaces of their own that forward packets.
 */
#ifndef TRIB_NET_CLUSTER_H
#define TRIB_NET_CLUSTER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_HOSTS_MAX 128
#define CLUSTER_LEAFS_MAX 8
#define CLUSTER_SPINES_MAX 8
#define CLUSTER_PATHS_MAX 8
#define CLUSTER_LINKS_MAX (CLUSTER_HOSTS_MAX + CLUSTER_LEAFS_MAX * CLUSTER_SPINES_MAX)
#define CLUSTER_LINK_NAME_BYTES 24
#define CLUSTER_FAULTY_MAX 64
#define CLUSTER_RATE_MIN 8000 /* bits per second of a shaped link */

enum cluster_fault { FAULT_LOSS, FAULT_DUP, FAULT_REORDER, FAULT_CORRUPT, FAULT_KINDS };

/* A leaf-spine fabric between the hosts. All zero: there is none. */
struct cluster_fabric {
	unsigned leafs, spines;
	unsigned paths; /* alias addresses of each host; 0 in options: one for each spine */
	bool is_static; /* alias k takes spine k; false: a hash of the packet chooses the spine */
	bool hash_l3;   /* the hash covers addresses; false: addresses and ports */
	uint64_t core_bps; /* rate of each link between leafs and spines; 0: not shaped */
};

struct cluster_host {
	char name[16];     /* h1, s1 */
	char ns[64];       /* its namespace, below /run/netns */
	char address[40];  /* IPv4, dotted */
	uint64_t rate_bps; /* rate of its link in each direction; 0: not shaped */
	bool is_server;
	unsigned leaf; /* counted from 1; 0: there is no fabric */
};

/* LINK_CUT: packets vanish. LINK_DOWN: packets vanish, and leafs route around the link. */
enum link_cut { LINK_WHOLE, LINK_CUT, LINK_DOWN };

/* Changes of a link since the cluster was made. */
struct link_change {
	uint64_t slow_bps; /* 0: the rate that it was made with */
	enum link_cut cut;
};

struct cluster {
	char name[32];
	unsigned subnet; /* x in 10.84.x.0/24 */
	bool is_switch;
	bool is_single; /* packets cross links singly, as on a wire */
	unsigned mtu;
	struct cluster_fabric fabric;
	unsigned n; /* workers first, then servers */
	struct cluster_host hosts[CLUSTER_HOSTS_MAX];
	struct link_change changes[CLUSTER_LINKS_MAX]; /* by the number of a link */
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
	double faults[FAULT_KINDS]; /* probabilities on every link, in each direction */
	struct {
		char link[CLUSTER_LINK_NAME_BYTES];
		enum cluster_fault kind;
		double probability;
	} faulty[CLUSTER_FAULTY_MAX]; /* links with a probability of their own */
	unsigned n_faulty;
	uint64_t seed;
	bool loses_all;  /* loss strikes TCP, too; other faults are for UDP */
	bool no_offload; /* packets cross singly, as on a wire; faults imply it */
	struct cluster_fabric fabric;
};

trib_status cluster_up(const struct cluster_options *options, struct cluster *out);
/* Removes the cluster of this name, also what a crash left behind. */
trib_status cluster_down(const char *name);
trib_status cluster_load(const char *name, struct cluster *out);
const struct cluster_host *cluster_find(const struct cluster *cluster, const char *host);
/* Changes the rate of a host's link while it is in use. Only for clusters with one bridge. */
trib_status cluster_shape(const struct cluster *cluster, const char *host, uint64_t bps,
                          bool batches);

/*
 * Links have numbers: link i is that of host i. Those of the fabric follow, in the order
 * leaf1-spine1, leaf1-spine2, ... A host's link has the name of the host.
 */
unsigned cluster_links(const struct cluster *cluster);
void cluster_link_name(const struct cluster *cluster, unsigned link,
                       char out[CLUSTER_LINK_NAME_BYTES]);
/* The rate that the link has now; 0: not shaped. */
uint64_t cluster_link_rate(const struct cluster *cluster, unsigned link);
trib_status cluster_link_find(const struct cluster *cluster, const char *name, unsigned *out);

/*
 * Change a link in both directions while it is in use, and record that. If a link is cut, packets
 * in its queues are lost. LINK_DOWN is for links of the fabric. Packets that an
 * XDP program sends pass no queue, so these functions do not act on them.
 */
trib_status cluster_link_cut(struct cluster *cluster, unsigned link, enum link_cut cut);
trib_status cluster_link_slow(struct cluster *cluster, unsigned link, uint64_t bps);
/* Undoes both. */
trib_status cluster_link_restore(struct cluster *cluster, unsigned link);

/* Alias address k of host i, k from 1 to fabric.paths. With is_static it takes spine k. */
void cluster_alias(const struct cluster *cluster, unsigned i, unsigned k, char out[40]);

/* Moves the calling thread into the host's network namespace. */
trib_status cluster_enter(const struct cluster_host *host);

#endif
