/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tribd is that trib starts, and where that can listen. */
#ifndef TRIB_CLI_DAEMON_H
#define TRIB_CLI_DAEMON_H

#include "net/cluster.h"

#include <stddef.h>

/* tribd as it was built or installed with this trib, else whatever PATH has. */
void daemon_find(char *out, size_t room);

/*
 * A port of the address that is free for all lanes, with `tcp` for connections
 * as well; `host` is NULL on this machine. 0: there is none.
 */
unsigned daemon_port(const struct cluster_host *host, const char *address, bool tcp);

#endif
