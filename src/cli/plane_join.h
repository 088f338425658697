/* SPDX-License-Identifier: Apache-2.0 */
/* How all children of a load come in: as workers do, one after the other. */
#ifndef TRIB_CLI_PLANE_JOIN_H
#define TRIB_CLI_PLANE_JOIN_H

#include "cli/plane_load.h"
#include "wire/packet.h"

#define PLANE_JOB 1
#define PLANE_COOKIE 0x7472696275746172ull

/* Opens options->fds, a socket a lane and child on its host, and joins. */
trib_status plane_join(struct load_options *options, struct wire_welcome *welcome);
/* A child is here, and needs nothing below `ack`. */
void plane_report(int fd, bool tcp, const struct wire_welcome *welcome, unsigned child,
                  unsigned lane, uint64_t ack);

#endif
