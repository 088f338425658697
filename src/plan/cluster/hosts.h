/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts: reads the text form of a cluster. One line describes one host; # starts a comment.
 *
 *     # name  address         in[/out]      cores  memory   rank  more
 *     h1      10.0.0.1:7700   10gbit        4      16G/64G  0     round=0.25
 *     s1      10.0.0.9:7700   40gbit/25gbit 16     -        -
 *     sw      10.0.0.254:7700 10gbit        8      -        -     switch
 *
 * Rates and cores are the idle ones. Memory is used/total or the total; -: unknown. Rank -:
 * no worker. More: `switch` (a port for each neighbour), `never` (must not aggregate),
 * `round=SECONDS` (duration of its first round).
 */
#ifndef TRIB_PLAN_CLUSTER_HOSTS_H
#define TRIB_PLAN_CLUSTER_HOSTS_H

#include "plan/cluster/plan.h"

/*
 * Reads up to `max` hosts. It modifies the text, and names point into it. `order` has room
 * for `max`. An error names the line and the reason.
 */
trib_status hosts_parse(char *text, struct plan_host *hosts, unsigned max, uint32_t *order,
                        unsigned *n);

#endif
