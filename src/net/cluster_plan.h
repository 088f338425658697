/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_plan: turns options into hosts, before anything is created. */
#ifndef TRIB_NET_CLUSTER_PLAN_H
#define TRIB_NET_CLUSTER_PLAN_H

#include "net/cluster.h"
#include "net/kernel/link.h"

trib_status plan_make(const struct cluster_options *options, unsigned subnet, struct cluster *out);
bool plan_has_faults(const struct cluster_options *options);
/* The probabilities on a link. False: it has no faults. */
bool plan_link_faults(const struct cluster_options *options, const struct cluster *cluster,
                      unsigned link, double out[FAULT_KINDS]);

/* The two ends of host i's link: at the host, and the port at the bridge. */
void plan_host_end(const struct cluster *cluster, unsigned i, struct link_end *end);
void plan_port_end(const struct cluster *cluster, unsigned i, struct link_end *end);

/*
 * Does a relay (relay.h) sit in the middle of host i's link? If so, its two ends: the one
 * towards the host, and the one towards its port.
 */
bool plan_is_relayed(const struct cluster *cluster, unsigned i);
void plan_relay_namespace(const struct cluster *cluster, char out[64]);
void plan_relay_ends(const struct cluster *cluster, unsigned i, struct link_end *near,
                     struct link_end *far);

/* The namespace of host i's port, and that of the bridge, which has the ports without a fabric. */
void plan_port_namespace(const struct cluster *cluster, unsigned i, char out[64]);
void plan_bridge_namespace(const struct cluster *cluster, char out[64]);

#endif
