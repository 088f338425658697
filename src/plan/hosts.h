/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a cluster: a line a host, # begins a comment.
 *
 *     # name  address         in[/out]      cores  memory   rank  more
 *     h1      10.0.0.1:7700   10gbit        4      16G/64G  0     round=0.25
 *     s1      10.0.0.9:7700   40gbit/25gbit 16     -        -
 *     sw      10.0.0.254:7700 10gbit        8      -        -     switch
 *
 * Rates and cores are the idle ones. Memory is used/total or the total; - is
 * not known. A rank of - is no worker. More: `switch` (a port for each
 * neighbour), `never` (no aggregator here), `round=SECONDS` (its first round).
 */
#ifndef TRIB_PLAN_HOSTS_H
#define TRIB_PLAN_HOSTS_H

#include "plan/plan.h"

/*
 * Reads up to `max` hosts. Their names point into the text, which is changed;
 * `order` has room for max. An error says which line is wrong, and why.
 */
trib_status hosts_parse(char *text, struct plan_host *hosts, unsigned max, uint32_t *order,
                        unsigned *n);

#endif
