/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that introduce themselves by an allgather of the program's own (trib_options.exchange). */
#ifndef TRIB_WORKER_API_INTRODUCE_H
#define TRIB_WORKER_API_INTRODUCE_H

#include "worker/comm/comm.h"

/*
 * `status`: what this rank found in its settings. Afterwards all ranks agree that settings and
 * versions fit, and, if no aggregator is named, where each rank listens: in `config`. If a rank
 * has failed, all fail, and the error names it. `config` has rank and size in any case, and not
 * more ranks than WIRE_CHILDREN_MAX.
 */
trib_status introduce(const trib_options *options, trib_status status, struct comm_config *config);
/* Has each rank done it? An error names a rank that has not. */
trib_status introduce_agree(const trib_options *options, trib_status status,
                            const struct comm_config *config);

#endif
