/* SPDX-License-Identifier: Apache-2.0 */
/* wiring: creates the planned namespaces, bridge, links and addresses. */
#ifndef TRIB_NET_WIRING_H
#define TRIB_NET_WIRING_H

#include "net/cluster.h"

/* After an error, the parts created so far remain. */
trib_status wiring_make(const struct cluster_options *options, const struct cluster *cluster);

#endif
