/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of all threads and of the kernel part, added up. */
#ifndef TRIB_PLANE_STATS_TOTALS_H
#define TRIB_PLANE_STATS_TOTALS_H

#include "plane/core/aggregator_state.h"

/* Any thread may call it: threads publish their counts every tick. */
void totals_read(struct aggregator *aggregator, struct totals *totals);
/* The plane that sums: "udp", "tcp", "xdp", "tc" or "pisa". */
const char *plane_name(const struct aggregator *aggregator);

#endif
