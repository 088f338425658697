/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_NET_H
#define TRIB_CLI_NET_H

#include "net/cluster.h"

int net_list(int argc, char **argv);
/* Prints the thread's error sentence; returns the exit code 1. */
int net_fail(const char *command);

/* Hooks for options: "1gbit" or "h2=500mbit" into a struct cluster_options; "0.01" or "1%" into a
 * double. */
trib_status net_link_take(void *target, const char *text);
trib_status net_probability_take(void *target, const char *text);

#endif
