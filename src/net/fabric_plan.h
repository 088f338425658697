/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_plan: the names and addresses of a leaf-spine fabric, and which spines lead from one leaf
 * to another. Pure. Leafs and spines are counted from 1.
 *
 * 10.84.x.y is a host, 10.(84+k).x.y its alias k. 10.83.x.l is leaf l, at each of its links, and
 * 10.83.x.(100+s) is spine s.
 */
#ifndef TRIB_NET_FABRIC_PLAN_H
#define TRIB_NET_FABRIC_PLAN_H

#include "net/cluster.h"
#include "net/kernel/link.h"

trib_status fabric_check(const struct cluster_options *options);
/* Deals the hosts over the leafs: blocks of workers, and blocks of servers. */
void fabric_deal(struct cluster *cluster);

/* Addresses in network order. Address 0 of a host is its own, address k is its alias k. */
uint32_t fabric_host_address(const struct cluster *cluster, unsigned i, unsigned k);
uint32_t fabric_alias_network(const struct cluster *cluster, unsigned k); /* its first 24 bits */
uint32_t fabric_leaf_address(const struct cluster *cluster, unsigned leaf);
uint32_t fabric_spine_address(const struct cluster *cluster, unsigned spine);

void fabric_leaf_namespace(const struct cluster *cluster, unsigned leaf, char out[64]);
void fabric_spine_namespace(const struct cluster *cluster, unsigned spine, char out[64]);
/* The namespace of a router by its name: leaf1, spine2. False: there is none. */
bool fabric_find_router(const struct cluster *cluster, const char *name, char out[64]);

/* Is link number `link` one of the fabric? If so, its leaf and spine. */
bool fabric_is_core(const struct cluster *cluster, unsigned link, unsigned *leaf, unsigned *spine);
/* The two ends of a link of the fabric. */
void fabric_leaf_end(const struct cluster *cluster, unsigned leaf, unsigned spine,
                     struct link_end *end);
void fabric_spine_end(const struct cluster *cluster, unsigned leaf, unsigned spine,
                      struct link_end *end);

/* The spine of alias k with static routes. */
unsigned fabric_alias_spine(const struct cluster *cluster, unsigned k);
/* May packets from one leaf to another take this spine? Not if one of the two links is down. */
bool fabric_spine_leads(const struct cluster *cluster, unsigned from, unsigned to, unsigned spine);

#endif
