/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what was planned: namespaces, the bridge, links and addresses. */
#ifndef TRIB_NET_WIRING_H
#define TRIB_NET_WIRING_H

#include "net/cluster.h"

/* After an error, what was made so far is still there. */
trib_status wiring_make(const struct cluster_options *options, const struct cluster *cluster);

#endif
