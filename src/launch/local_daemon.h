/* SPDX-License-Identifier: Apache-2.0 */
/* Finds programs that trib starts, itself and tribd, and a port for tribd. */
#ifndef TRIB_LAUNCH_LOCAL_DAEMON_H
#define TRIB_LAUNCH_LOCAL_DAEMON_H

#include "net/cluster.h"

#include <stdbool.h>
#include <stddef.h>

/* The path of this program. False: it is not known, and `out` is "". */
bool self_find(char *out, size_t room);
/* The tribd that was built or installed with this trib, else the one in PATH. */
void daemon_find(char *out, size_t room);

/*
 * A port of the address that is free for all lanes; with `tcp`, for connections as well. `host`
 * is NULL on this machine. 0: there is none.
 */
unsigned daemon_port(const struct cluster_host *host, const char *address, bool tcp);

#endif
