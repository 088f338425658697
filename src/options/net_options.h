/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_OPTIONS_NET_OPTIONS_H
#define TRIB_OPTIONS_NET_OPTIONS_H

#include "net/cluster.h"

/*
 * Hooks for options. net_link_take stores "1gbit" or "h2=500mbit" into a struct
 * cluster_options; net_probability_take stores "0.01" or "1%" into a double.
 */
trib_status net_link_take(void *target, const char *text);
trib_status net_probability_take(void *target, const char *text);

/* For net_fault_take: "0.01" is for every link, "leaf1-spine2=0.01" for that one. */
struct net_fault {
	struct cluster_options *options;
	enum cluster_fault kind;
};
trib_status net_fault_take(void *target, const char *text);

/* Into a struct cluster_fabric: "ecmp" or "static"; "l4" or "l3". */
trib_status net_route_take(void *target, const char *text);
trib_status net_hash_take(void *target, const char *text);

#endif
