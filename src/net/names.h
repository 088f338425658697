/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: a namespace is named CLUSTER-HOST. A host's name has no dash, so the last dash
 * separates the two.
 */
#ifndef TRIB_NET_NAMES_H
#define TRIB_NET_NAMES_H

#include "base/status.h"

#include <stdint.h>

#define NAMES_DEFAULT "trib"
#define NAMES_HUB "net"   /* the namespace of the bridge, if no server is the switch */
#define NAMES_LEAF "leaf" /* leaf1, spine1: the namespaces of a fabric's routers */
#define NAMES_SPINE "spine"
#define NAMES_WORKERS_MAX 99
#define NAMES_SERVER_BASE 100 /* s1 has the address .101 */

/* NULL: the default name. */
trib_status names_check(const char *name);
void names_namespace(char out[64], const char *name, const char *host);

/* Calls `visit` for each namespace of the cluster until one returns an error. */
trib_status names_each_namespace(const char *name,
                                 trib_status (*visit)(void *context, const char *namespace),
                                 void *context);

/* The first x to try when looking for a free subnet 10.84.x.0/24. */
unsigned names_subnet_hint(const char *name);

#endif
