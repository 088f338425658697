/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks have joined: sizes and the multicast group are settled, lanes go to their threads. */
#ifndef TRIB_PLANE_MEMBERSHIP_COMM_START_H
#define TRIB_PLANE_MEMBERSHIP_COMM_START_H

#include "plane/core/aggregator_state.h"

#define COMM_WHY_MAX ENGINE_WHY_MAX

/* False: it cannot run here, and `why` says so. */
bool comm_start(struct aggregator *aggregator, struct comm *comm, char why[COMM_WHY_MAX]);

#endif
