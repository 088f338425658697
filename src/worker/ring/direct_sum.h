/* SPDX-License-Identifier: Apache-2.0 */
/* direct_sum: the sum of a vector whose parts of all ranks have come (ring/direct.h). Pure. */
#ifndef TRIB_WORKER_RING_DIRECT_SUM_H
#define TRIB_WORKER_RING_DIRECT_SUM_H

#include "worker/ring/direct.h"

/* Writes the sum to the vector's target. */
trib_status direct_sum(const struct direct *direct, const struct direct_call *call,
                       const struct round_spec *vector);

#endif
