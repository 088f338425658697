/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_routes: gives the hosts and routers of a fabric their addresses, neighbours and routes,
 * when the links are there. There is no routing protocol: the plan says which links are down.
 */
#ifndef TRIB_NET_FABRIC_ROUTES_H
#define TRIB_NET_FABRIC_ROUTES_H

#include "net/cluster.h"
#include "net/kernel/link.h"

/* Makes a new namespace a router. It must not have links yet. */
trib_status fabric_router(const struct cluster *cluster, const struct netns *ns);
/* The link between host i and its leaf. */
trib_status fabric_host_link(const struct cluster *cluster, unsigned i, const struct link_end *host,
                             const struct link_end *port);
trib_status fabric_core_link(const struct cluster *cluster, unsigned leaf, unsigned spine,
                             const struct link_end *at_leaf, const struct link_end *at_spine);

/* Routes from a router to the hosts of other leafs. May be called again if links go down or up. */
trib_status fabric_leaf_routes(const struct cluster *cluster, unsigned leaf,
                               const struct netns *ns);
trib_status fabric_spine_routes(const struct cluster *cluster, unsigned spine,
                                const struct netns *ns);
/* With static routes: which addresses take which spine. */
trib_status fabric_leaf_rules(const struct cluster *cluster, const struct netns *ns);

#endif
