/* SPDX-License-Identifier: Apache-2.0 */
/* From options to hosts, before anything is made. */
#ifndef TRIB_NET_PLAN_H
#define TRIB_NET_PLAN_H

#include "net/cluster.h"
#include "net/link.h"

trib_status plan_make(const struct cluster_options *options, unsigned subnet, struct cluster *out);
bool plan_has_faults(const struct cluster_options *options);

/* The link that host `i` is behind: its own end, and the port at the bridge. */
void plan_host_end(const struct cluster *cluster, unsigned i, struct link_end *end);
void plan_port_end(const struct cluster *cluster, unsigned i, struct link_end *end);

/*
 * Where links are cut in two (relay.h), whether that of host `i` is one of
 * them, and the ends there: the one next to the host, and the one next to its
 * port.
 */
bool plan_is_relayed(const struct cluster *cluster, unsigned i);
void plan_relay_namespace(const struct cluster *cluster, char out[64]);
void plan_relay_ends(const struct cluster *cluster, unsigned i, struct link_end *near,
                     struct link_end *far);

/* Where the ports are. */
void plan_bridge_namespace(const struct cluster *cluster, char out[64]);

#endif
