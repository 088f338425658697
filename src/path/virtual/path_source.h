/* SPDX-License-Identifier: Apache-2.0 */
/* path_source: from which own address and port a new flow takes a path that is already known. */
#ifndef TRIB_PATH_VIRTUAL_PATH_SOURCE_H
#define TRIB_PATH_VIRTUAL_PATH_SOURCE_H

#include "path/virtual/virtual_path.h"

#define SOURCE_TRIES 16u           /* ports that are tried */
#define SOURCE_SILENT 2u           /* routers that do not answer: give up */
#define SOURCE_WAIT_NS 10000000ull /* 10 ms: the wait for the answer of a router */

/*
 * Fills *from for a flow to `to` that leaves the first router as `like` does. Where routers are
 * traced, each port is tried by a probe, so this waits for their answers. If routers are not
 * traced, the address alone is the path, and the port is 0. False: no such source was found.
 */
bool path_source_find(const struct udp_address *to, const struct virtual_path *like,
                      struct udp_address *from);
/* Gives path->from a free port by which the flow takes path `k` of `paths`, by XOR. */
bool path_source_compute(struct virtual_path *path, unsigned paths, unsigned k);

#endif
