/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks have joined: sizes and the multicast group are settled, lanes go to their threads. */
#ifndef TRIB_PLANE_MEMBERSHIP_COMM_START_H
#define TRIB_PLANE_MEMBERSHIP_COMM_START_H

#include "plane/membership/comm_table.h"

/* False: it cannot run here, and `why` says so. */
bool comm_start(struct aggregator *aggregator, struct comm *comm, char why[COMM_WHY_MAX]);

#endif
